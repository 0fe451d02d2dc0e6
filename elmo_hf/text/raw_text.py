# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Raw text as documents, files or rows of a dataset, and what the options about it may be."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from elmo_hf.system.failures import describe
from elmo_hf.text.dataset_rows import check_column, readable_rows
from elmo_hf.text.files import size_of
from elmo_hf.text.lines import BadLineError, RawLine, RawSource, file_lines
from elmo_hf.text.paragraphs import PARAGRAPHS, Split, check_paragraphs, join_lines
from elmo_hf.text_splitting import SPLITTERS, WHITESPACE, find_splitter

# the splitter of text that is tokenised: a line is a sentence, with blanks between its words
NONE = "none"


class RawText(NamedTuple):
    """A text that may be read more than once, document by document."""

    # as an error message calls it
    name: str
    open: Callable[[], Iterator[RawSource]]
    # the sum of the sizes of all lines
    total: int
    unit: str


def splitter_name(split: str) -> str:
    """The `word_splitter` of a tokenizer that `split`, the value of an option, asks for."""
    if split == NONE:
        return WHITESPACE
    try:
        find_splitter(split)
    except ValueError as error:
        names = ", ".join((NONE, *SPLITTERS))
        raise ValueError(f"`split` is {split!r} but must be one of {names}.") from error
    return split


def check_split(split: str, paragraphs: str) -> None:
    """Refuses options about raw text that are unknown, or do not go together."""
    splitter_name(split)
    check_paragraphs(paragraphs)
    if split == NONE and paragraphs != PARAGRAPHS[0]:
        raise ValueError(
            f"`paragraphs` is {paragraphs!r}, but in tokenised text every line is a sentence; name "
            "a splitter for raw text, as in --split english."
        )


def raw_files(files: Sequence[Path]) -> RawText:
    """Every file is a document."""

    def documents() -> Iterator[RawSource]:
        for file in files:
            yield RawSource(str(file), readable_lines(file), None, False)

    return RawText(", ".join(map(str, files)), documents, size_of(files), "B")


def readable_lines(file: Path) -> Iterator[RawLine]:
    try:
        yield from file_lines([file], "stop")
    # not to be mistaken for an error of the file that is written meanwhile
    except OSError as error:
        raise ValueError(describe(error)) from error


def raw_rows(rows: Any, column: str, name: str) -> RawText:
    """Every row of a dataset is a document; `column` has its text."""
    where = f"The dataset {name!r}"
    check_column(rows, column, where)
    texts = rows.select_columns([column])

    def documents() -> Iterator[RawSource]:
        for number, row in enumerate(readable_rows(texts, where)):
            place = f"{where}, row {number}"
            yield RawSource(place, row_lines(row[column], place, column), None, False)

    return RawText(where, documents, len(rows), "row")


def row_lines(text: Any, place: str, column: str) -> Iterator[RawLine]:
    """The lines of a row, the first of which counts for the whole row."""
    if not isinstance(text, str):
        raise BadLineError(
            f"{place}: {column!r} should be raw text, not {text!r:.50}; leave --split out if the "
            "words are split already."
        )
    # only these ends of lines, as in files
    lines = list(io.StringIO(text, newline="\n")) or [""]
    for number, line in enumerate(lines):
        yield RawLine(number, line, int(number == 0), place)


def split_documents(
    documents: Iterable[RawSource],
    split: Split,
    paragraphs: str,
    seen: Callable[[RawLine], object] = lambda line: None,
) -> Iterator[list[str]]:
    """
    The words of each sentence. A paragraph ends where its document ends. `seen` is called with
    every line when it has been read.
    """

    def watched(lines: Iterable[RawLine]) -> Iterator[RawLine]:
        for line in lines:
            seen(line)
            yield line

    for document in documents:
        for paragraph in join_lines(document._replace(lines=watched(document.lines)), paragraphs):
            for sentence in split(paragraph.text):
                yield sentence.words
