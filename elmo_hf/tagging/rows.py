# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Lines of files of columns, with or without their line ends, and the errors about them."""

import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from elmo_hf.text_lines import decode_line, raw_lines

# with its end: of Unix, of Windows, of old Macs, or several kinds in one file
LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n)|([^\r\n]+)")
NAMES = {"\t": "tab", " ": "space"}


class WholeLine(NamedTuple):
    """A line of a file; joined, its parts are exactly what the file has."""

    # counted from 1
    number: int
    # a byte order mark, or nothing
    lead: str
    text: str
    end: str

    def with_text(self, text: str) -> str:
        return f"{self.lead}{text}{self.end}"


def whole_lines(path: Path) -> Iterator[WholeLine]:
    """All lines of a file, with whatever is around their texts."""
    number = 0
    for count, (raw, _) in enumerate(raw_lines(path), start=1):
        is_marked = count == 1 and raw.startswith(codecs.BOM_UTF8)
        # a byte order mark alone is a line without text
        parts = LINE.findall(decode_line(raw, path, count)) or [("", "", "")]
        for place, (text, end, last) in enumerate(parts):
            number += 1
            yield WholeLine(number, "\ufeff" if is_marked and place == 0 else "", text or last, end)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of all lines, numbered from 1."""
    return ((line.number, line.text) for line in whole_lines(path))


def wrong_width(where: str, found: int, separator: str, wanted: str) -> ValueError:
    """The error of a line whose number of columns is wrong."""
    noun = "column" if found == 1 else "columns"
    return ValueError(
        f"{where}: {found} {NAMES[separator]}-separated {noun}, but {wanted}; correct this line."
    )


def wrong_id(where: str, found: str) -> ValueError:
    return ValueError(
        f"{where}: {found!r:.50} is not the number of a word, as in 1, 1-2 or 1.1; correct it."
    )


def empty_column(where: str, place: int) -> ValueError:
    return ValueError(f"{where}: column {place + 1} is empty; correct this line.")
