# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""CoNLL-U, the format of Universal Dependencies: one word per line, ten columns between tabs."""

import re
from collections.abc import Sequence

COLUMNS = ["id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"]
WORD, TAG = "form", "upos"
BREAKS = re.compile(r"[\t\r\n]")
ID = re.compile(r"\d+([-.]\d+)?")


def is_conllu(row: list[str]) -> bool:
    """Whether this can be a row of CoNLL-U: a word, a range of words or an empty node."""
    return len(row) == len(COLUMNS) and ID.fullmatch(row[0]) is not None


def is_comment(line: str) -> bool:
    return line.startswith("#")


def is_word(row: list[str]) -> bool:
    """Whether a row is a word of its sentence, rather than a range of words or an empty node."""
    return row[0].isdecimal()


def format_sentence(
    words: Sequence[str], tags: Sequence[str], notes: Sequence[str] | None = None
) -> str:
    """
    A sentence with its tags as UPOS, its notes in the last column, and a blank line after it. Tabs
    and line ends, which JSON and parquet can have inside words and tags, become spaces.
    """
    notes = notes or ["_"] * len(words)
    rows = zip(words, tags, notes, strict=True)
    lines = [
        "\t".join([str(number), cell(word), "_", cell(tag), *["_"] * 5, cell(note)]) + "\n"
        for number, (word, tag, note) in enumerate(rows, start=1)
    ]
    return "".join(lines) + "\n"


def cell(text: str) -> str:
    """A text that can stand between two tabs; `_` stands for nothing."""
    return BREAKS.sub(" ", text).strip() or "_"
