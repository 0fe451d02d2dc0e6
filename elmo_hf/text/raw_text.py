# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Raw text as documents: files, or rows of a dataset."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from elmo_hf.system.failures import describe
from elmo_hf.text.dataset_rows import check_column, load_dataset, readable_rows
from elmo_hf.text.fasta import RESIDUES, refuse_headers
from elmo_hf.text.files import size_of
from elmo_hf.text.lines import (
    BadLineError,
    Line,
    LineSource,
    RawLine,
    RawSource,
    check_on_error,
    file_lines,
    stop_or_skip,
)
from elmo_hf.text.paragraphs import join_lines
from elmo_hf.text_splitting import find_splitter


class RawText(NamedTuple):
    """A text that may be read more than once, document by document."""

    # as an error message calls it
    name: str
    open: Callable[[], Iterator[RawSource]]
    # the sum of the sizes of all lines
    total: int
    unit: str


def raw_files(files: Sequence[Path]) -> RawText:
    """Every file is a document."""

    def documents() -> Iterator[RawSource]:
        for file in files:
            yield RawSource(str(file), file_as_text(file), None, False)

    return RawText(", ".join(map(str, files)), documents, size_of(files), "B")


def file_as_text(file: Path) -> Iterator[RawLine]:
    try:
        yield from file_lines([file], "stop")
    # not to be mistaken for an error of the file that is written meanwhile
    except OSError as error:
        raise ValueError(describe(error)) from error


def raw_rows(rows: Any, column: str, name: str, on_error: str = "stop") -> RawText:
    """Every row of a dataset is a document; `column` has its text."""
    where = f"The dataset {name!r}"
    check_column(rows, column, where)
    texts = rows.select_columns([column])

    def documents() -> Iterator[RawSource]:
        for number, row in enumerate(readable_rows(texts, where)):
            place = f"{where}, row {number}"
            lines = lines_of_row(row[column], place, column, on_error)
            yield RawSource(place, lines, None, False)

    return RawText(where, documents, len(rows), "row")


def lines_of_row(text: Any, place: str, column: str, on_error: str) -> Iterator[RawLine]:
    """The lines of a row, the first of which counts for the whole row."""
    if not isinstance(text, str):
        error = BadLineError(
            f"{place}: {column!r} should be raw text, not {text!r:.50}; leave --split out if the "
            "words are split already."
        )
        stop_or_skip(error, on_error)
        text = ""
    # only these ends of lines, as in files
    lines = list(io.StringIO(text, newline="\n")) or [""]
    for number, line in enumerate(lines):
        yield RawLine(number, line, int(number == 0), place, number == 0)


def dataset_sentences(
    name: str,
    config: str | None,
    dataset_split: str,
    column: str,
    on_error: str,
    split: str,
    paragraphs: str,
) -> LineSource:
    """The rows of a dataset as tokenised sentences, like `sentence_source` of a file."""
    check_on_error(on_error)
    text = raw_rows(load_dataset(name, config, dataset_split), column, name, on_error)
    return LineSource(name, number_sentences(text, split, paragraphs), text.total, text.unit)


def number_sentences(text: RawText, split: str, paragraphs: str) -> Iterator[Line]:
    number = size = 0
    for document in text.open():
        size += 1
        for words in split_documents([document], split, paragraphs):
            yield Line(number, " ".join(words), words, size)
            number, size = number + 1, 0


def split_documents(
    documents: Iterable[RawSource],
    split: str,
    paragraphs: str,
    seen: Callable[[RawLine], object] = lambda line: None,
) -> Iterator[list[str]]:
    """
    The words of each sentence; `split` is the name of a splitter. A paragraph ends where its
    document ends. `seen` is called with every line when it has been read.
    """
    splitter = find_splitter(split)

    def watched(lines: Iterable[RawLine]) -> Iterator[RawLine]:
        for line in lines:
            seen(line)
            yield line

    for document in documents:
        source = document._replace(lines=watched(document.lines))
        source = refuse_headers(source) if split == RESIDUES else source
        for paragraph in join_lines(source, paragraphs):
            for sentence in splitter(paragraph.text):
                yield sentence.words
