# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Text as lines of words, from files, standard input or a dataset, and batches of sentences."""

from elmo_hf.text.batching import batches_by_length, map_by_length
from elmo_hf.text.dataset_rows import dataset_source
from elmo_hf.text.files import find_files, size_of
from elmo_hf.text.lines import BadLineError, Line, LineSource, text_source

__all__ = [
    "BadLineError",
    "Line",
    "LineSource",
    "batches_by_length",
    "dataset_source",
    "find_files",
    "map_by_length",
    "size_of",
    "text_source",
]
