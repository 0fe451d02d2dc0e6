# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Lines of files or of standard input: as they are, or as tokenised sentences."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tqdm.auto import tqdm

from elmo_hf.text.files import find_files, size_of
from elmo_hf.text_lines import bounded_lines, decode_line, raw_lines

STANDARD_INPUT = "-"
# what to do with a line that cannot be read
ON_ERROR = ("stop", "skip")


class Line(NamedTuple):
    """One sentence of a text and its words."""

    # counted from 0, through all files of a source
    number: int
    text: str
    words: list[str]
    # its share of the source's total
    size: int
    # the name of its record, in formats that have names
    key: str | None = None


class LineSource(NamedTuple):
    """Lines that can be read once, and what a progress bar shows of them."""

    # as an error message calls it
    name: str
    lines: Iterator[Line]
    # the sum of the lines' sizes, if it is known beforehand
    total: int | None
    unit: str


class RawLine(NamedTuple):
    """One line of a text as it is, with its end."""

    number: int
    text: str
    size: int
    # where it is, to begin an error message: the file, and the number from 1
    place: str
    # whether a file begins with it
    is_first: bool = False


class RawSource(NamedTuple):
    """Like `LineSource`, of lines as they are."""

    name: str
    lines: Iterator[RawLine]
    total: int | None
    # whether more lines may come at any time, from a pipe or a terminal
    is_stream: bool


class BadLineError(ValueError):
    """A line is not readable text."""


def text_source(pattern: str, on_error: str = "stop", shared: bool = False) -> LineSource:
    """The lines of `raw_source` as tokenised sentences, whose words have blanks between them."""
    source = raw_source(pattern, on_error, shared)
    lines = (
        Line(line.number, line.text.strip(), line.text.split(), line.size) for line in source.lines
    )
    return LineSource(source.name, lines, source.total, "B")


def raw_source(pattern: str, on_error: str = "stop", shared: bool = False) -> RawSource:
    """
    The lines of a file, of all files of a glob in the order of their names, or, for "-", of
    standard input.

    With `on_error="skip"` a line that cannot be read is reported and counts as an empty one.
    Several processes that read the same source pass `shared=True`; they need files.
    """
    check_on_error(on_error)
    files = [] if pattern == STANDARD_INPUT else find_files(pattern)
    is_stream = not (files and all(file.is_file() for file in files))
    if shared and is_stream:
        raise ValueError("Several processes cannot share standard input or a pipe; name a file.")
    if pattern == STANDARD_INPUT:
        return RawSource("standard input", standard_input(on_error), None, is_open_ended())
    # a pipe has no size
    return RawSource(pattern, file_lines(files, on_error), size_of(files) or None, is_stream)


def file_lines(files: Sequence[Path], on_error: str) -> Iterator[RawLine]:
    """The lines of some files, numbered from the first file to the last."""
    count = 0
    for path in files:
        for line in decode_lines(raw_lines(path), str(path), on_error):
            yield line._replace(number=count)
            count += 1


def standard_input(on_error: str) -> Iterator[RawLine]:
    if sys.stdin is None:
        raise ValueError("There is no standard input; name a file with --input.")
    lines = ((raw, len(raw)) for raw in bounded_lines(open_standard_input()))
    return decode_lines(lines, "standard input", on_error)


def open_standard_input() -> BinaryIO:
    """
    Standard input with a buffer of its own: a program that ends while another thread waits for the
    next line could not close Python's own, and would crash.
    """
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    # Python code may put any object in its place
    except (OSError, ValueError):
        return sys.stdin.buffer


def is_open_ended() -> bool:
    """Whether standard input is a terminal or a pipe, rather than a file."""
    try:
        return not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
    # Python code may put any object in its place
    except (OSError, ValueError):
        return True


def decode_lines(
    source: Iterable[tuple[bytes, int]], name: str, on_error: str
) -> Iterator[RawLine]:
    for number, (raw, size) in enumerate(source):
        text = ""
        try:
            text = decode_line(raw, name, number + 1)
        except ValueError as error:
            stop_or_skip(BadLineError(str(error)), on_error)
        yield RawLine(number, text, size, f"{name!r}, line {number + 1}", number == 0)


def stop_or_skip(error: BadLineError | MemoryError, on_error: str) -> None:
    """A bad line ends the run with its error, or is reported and counts as an empty line."""
    if on_error == "stop":
        raise error
    tqdm.write(f"{error} The line counts as an empty line.", file=sys.stderr)


def check_on_error(on_error: str) -> None:
    if on_error not in ON_ERROR:
        raise ValueError(f"`on_error` is {on_error!r} but must be one of {', '.join(ON_ERROR)}.")
