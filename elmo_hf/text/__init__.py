# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Text from files, standard input or a dataset: lines, paragraphs, sentences, and batches."""

from elmo_hf.text.batching import batches_by_length, map_by_length
from elmo_hf.text.dataset_rows import dataset_source
from elmo_hf.text.fasta import fasta_source
from elmo_hf.text.files import find_files, size_of
from elmo_hf.text.lines import (
    BadLineError,
    Line,
    LineSource,
    RawSource,
    raw_source,
    text_source,
)
from elmo_hf.text.paragraphs import Paragraph, TextSentence, join_lines, sentence_source
from elmo_hf.text.raw_text import (
    RawText,
    raw_files,
    raw_rows,
    split_documents,
)
from elmo_hf.text.split_option import check_split, splitter_name

__all__ = [
    "BadLineError",
    "Line",
    "LineSource",
    "Paragraph",
    "RawSource",
    "RawText",
    "TextSentence",
    "batches_by_length",
    "check_split",
    "dataset_source",
    "fasta_source",
    "find_files",
    "join_lines",
    "map_by_length",
    "raw_files",
    "raw_rows",
    "raw_source",
    "sentence_source",
    "size_of",
    "split_documents",
    "splitter_name",
    "text_source",
]
