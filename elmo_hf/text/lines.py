# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Lines of files or of standard input, split into words."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tqdm.auto import tqdm

from elmo_hf.text.files import find_files, size_of
from elmo_hf.text_lines import bounded_lines, decode_line, raw_lines

STANDARD_INPUT = "-"
# what to do with a line that cannot be read
ON_ERROR = ("stop", "skip")


class Line(NamedTuple):
    """One line of a text and its words."""

    # counted from 0, through all files of a source
    number: int
    text: str
    words: list[str]
    # its share of the source's total
    size: int


class LineSource(NamedTuple):
    """Lines that can be read once, and what a progress bar shows of them."""

    # as an error message calls it
    name: str
    lines: Iterator[Line]
    # the sum of the lines' sizes, if it is known beforehand
    total: int | None
    unit: str


class BadLineError(ValueError):
    """A line is not readable text."""


def text_source(pattern: str, on_error: str = "stop", shared: bool = False) -> LineSource:
    """
    The lines of a file, of all files of a glob in the order of their names, or, for "-", of
    standard input.

    With `on_error="skip"` a line that cannot be read is reported and counts as an empty one.
    Several processes that read the same source pass `shared=True`; they need files.
    """
    check_on_error(on_error)
    files = [] if pattern == STANDARD_INPUT else find_files(pattern)
    if shared and not (files and all(file.is_file() for file in files)):
        raise ValueError("Several processes cannot share standard input or a pipe; name a file.")
    if pattern == STANDARD_INPUT:
        return LineSource("standard input", standard_input(on_error), None, "B")
    # a pipe has no size
    return LineSource(pattern, file_lines(files, on_error), size_of(files) or None, "B")


def file_lines(files: Sequence[Path], on_error: str) -> Iterator[Line]:
    """The lines of some files, numbered from the first file to the last."""
    count = 0
    for path in files:
        for line in split_lines(raw_lines(path), str(path), on_error):
            yield line._replace(number=count)
            count += 1


def standard_input(on_error: str) -> Iterator[Line]:
    if sys.stdin is None:
        raise ValueError("There is no standard input; name a file with --input.")
    lines = ((raw, len(raw)) for raw in bounded_lines(sys.stdin.buffer))
    return split_lines(lines, "standard input", on_error)


def split_lines(source: Iterable[tuple[bytes, int]], name: str, on_error: str) -> Iterator[Line]:
    for number, (raw, size) in enumerate(source):
        text = ""
        try:
            text = decode_line(raw, name, number + 1).strip()
        except ValueError as error:
            stop_or_skip(BadLineError(str(error)), on_error)
        yield Line(number, text, text.split(), size)


def stop_or_skip(error: BadLineError | MemoryError, on_error: str) -> None:
    """A bad line ends the run with its error, or is reported and counts as an empty line."""
    if on_error == "stop":
        raise error
    tqdm.write(f"{error} The line counts as an empty line.", file=sys.stderr)


def check_on_error(on_error: str) -> None:
    if on_error not in ON_ERROR:
        raise ValueError(f"`on_error` is {on_error!r} but must be one of {', '.join(ON_ERROR)}.")
