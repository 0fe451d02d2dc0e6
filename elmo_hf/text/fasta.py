# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""FASTA files of proteins: one record is one line, whose words are its residues."""

import re
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from elmo_hf.text.files import all_end_in, find_files
from elmo_hf.text.lines import (
    STANDARD_INPUT,
    BadLineError,
    Line,
    LineSource,
    RawLine,
    RawSource,
    file_lines,
    raw_source,
    stop_or_skip,
)
from elmo_hf.text_lines import LONGEST_LINE

ENDINGS = (".fasta", ".fa", ".faa")
# the splitter that makes words of residues
RESIDUES = "characters"
# `*` is a stop codon, `-` a gap
NO_RESIDUE = re.compile("[^A-Za-z*-]")


class Record(NamedTuple):
    """What a header and the lines below it say."""

    key: str
    sequence: str
    # bytes of all its lines
    size: int
    # where its header is
    place: str


def is_fasta(pattern: str) -> bool:
    """Whether the names of these files say that they are FASTA; refuses a mixture."""
    return pattern != STANDARD_INPUT and all_end_in(pattern, ENDINGS, "FASTA")


def refuse_headers(source: RawSource) -> RawSource:
    """The same lines of a text; one that begins like FASTA is refused when it is read."""

    def lines() -> Iterator[RawLine]:
        for line in source.lines:
            if line.is_first and line.text.startswith(">"):
                raise ValueError(
                    f"{line.place}: this is the header of a FASTA file, and would be read as "
                    f"residues; give the file a name that ends in {', '.join(ENDINGS)}."
                )
            yield line

    return source._replace(lines=lines())


def fasta_source(pattern: str, on_error: str = "stop", shared: bool = False) -> LineSource:
    """
    The records of a FASTA file, or of all files of a glob in the order of their names. A line's
    words are the residues, its text is these with blanks between them, and its key is the id.

    With `on_error="skip"` a record without a sequence is reported and counts as an empty line.
    Anything else that cannot be read is an error: the vectors of half a protein would be wrong.
    """
    source = raw_source(pattern, on_error, shared)
    lines = record_lines(find_files(pattern), on_error)
    return LineSource(source.name, lines, source.total, "B")


def record_lines(files: Sequence[Path], on_error: str) -> Iterator[Line]:
    # ids as a file of vectors can have them; all that grows with the number of records
    seen: set[str] = set()
    for file in files:
        for record in read_records(unskipped_lines(file)):
            key = record.key.replace("/", "_")
            if key in seen:
                raise ValueError(
                    f"{record.place}: the id {record.key!r} occurs twice, where / and _ count as "
                    "the same; give every record an id of its own."
                )
            seen.add(key)
            if not record.sequence:
                error = f"{record.place}: the record {record.key!r} has no sequence; delete it."
                stop_or_skip(BadLineError(error), on_error)
            words = list(record.sequence)
            yield Line(len(seen) - 1, " ".join(words), words, record.size, record.key)


def unskipped_lines(file: Path) -> Iterator[RawLine]:
    try:
        yield from file_lines([file], "stop")
    # which promises that the line can be skipped
    except BadLineError as error:
        raise ValueError(str(error)) from error


def read_records(lines: Iterable[RawLine]) -> Iterator[Record]:
    """The records of one file, one at a time in memory."""
    header: RawLine | None = None
    # not a list of lines, which takes many times the room if they are short
    sequence, size = StringIO(), 0
    for line in lines:
        if line.text.startswith(">"):
            if header is not None:
                yield make_record(header, sequence, size)
            header, sequence, size = line, StringIO(), 0
            read_id(header)
        elif line.text.strip():
            if header is None:
                raise ValueError(
                    f"{line.place}: there is text before the first header, a line that begins "
                    "with >; is this a FASTA file?"
                )
            sequence.write(read_residues(line))
            if sequence.tell() > LONGEST_LINE:
                raise ValueError(
                    f"{line.place}: the sequence has more than {LONGEST_LINE:,} residues; split it."
                )
        size += line.size
    if header is not None:
        yield make_record(header, sequence, size)


def make_record(header: RawLine, sequence: StringIO, size: int) -> Record:
    # the stop codon at the end is no residue
    return Record(read_id(header), sequence.getvalue().rstrip("*"), size, header.place)


def read_id(header: RawLine) -> str:
    """The first word of a header."""
    words = header.text[1:].split(maxsplit=1)
    if not words:
        raise ValueError(f"{header.place}: the header has no id; write one after the >.")
    if not words[0].isprintable():
        raise ValueError(f"{header.place}: the id {words[0]!r:.80} is not text; give another one.")
    return words[0]


def read_residues(line: RawLine) -> str:
    residues = "".join(line.text.split())
    odd = NO_RESIDUE.search(residues)
    if odd is not None:
        raise ValueError(
            f"{line.place}: {odd.group()!r} is not a residue; a sequence consists of letters, - "
            "and *."
        )
    return residues
