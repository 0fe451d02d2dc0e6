# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Text files as lines of UTF-8: gzipped or not, of any size, with errors that name the line."""

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

# Bytes of a line, its end included. A line is a sentence, a paragraph, at most several books; the
# vectors of this many words would take tens of gigabytes. A damaged or hostile file may have one
# line without end.
LONGEST_LINE = 1 << 25


def is_gzipped(file: Path) -> bool:
    return file.suffix.lower() == ".gz"


def open_text(file: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(file, "rb") if is_gzipped(file) else file.open("rb"))


def raw_lines(file: Path) -> Iterator[tuple[bytes, int]]:
    """A file's lines, and how many bytes of the file each one took, compressed or not."""
    count = read = 0
    with file.open("rb") as raw:
        if not is_gzipped(file):
            # counted by length, because a pipe has no position
            yield from ((line, len(line)) for line in bounded_lines(raw))
            return
        try:
            for line in bounded_lines(cast(BinaryIO, gzip.GzipFile(fileobj=raw))):
                yield line, raw.tell() - read
                read = raw.tell()
                count += 1
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{str(file)!r} is damaged or truncated after line {count}; create it again."
            ) from error


def bounded_lines(file: BinaryIO) -> Iterator[bytes]:
    """A file's lines; of one that is too long only the beginning, which `decode_line` refuses."""
    while line := file.readline(LONGEST_LINE + 1):
        yield line
        while len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            line = file.readline(LONGEST_LINE + 1)


def decode_line(line: bytes, file: Path | str, number: int) -> str:
    """One line of a file, numbered from 1; a byte order mark before the first is dropped."""
    if len(line) > LONGEST_LINE:
        raise ValueError(
            f"{str(file)!r}, line {number}: it has more than {LONGEST_LINE:,} bytes; write one "
            "sentence per line."
        )
    if number == 1:
        line = line.removeprefix(codecs.BOM_UTF8)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = line[error.start]
        raise ValueError(
            f"{str(file)!r}, line {number}: the byte 0x{byte:02x} is not UTF-8; convert the file "
            "to UTF-8 first."
        ) from error


def read_lines(file: Path) -> Iterator[str]:
    r"""A file's lines without their line ends, `\n` or `\r\n`."""
    for number, (line, _) in enumerate(raw_lines(file), start=1):
        yield decode_line(line, file, number).removesuffix("\n").removesuffix("\r")
