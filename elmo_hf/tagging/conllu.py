# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""CoNLL-U, the format of Universal Dependencies: one word per line, ten columns between tabs."""

import re
from collections.abc import Iterator, Sequence

from elmo_hf.tagging.spaces import escape_spaces
from elmo_hf.text.paragraphs import TextSentence

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
    rows = enumerate(zip(words, tags, notes, strict=True), start=1)
    return "".join(format_row(str(number), *row) for number, row in rows) + "\n"


def format_row(number: str, word: str, tag: str = "_", note: str = "_") -> str:
    return "\t".join([number, cell(word), "_", cell(tag), *["_"] * 5, cell(note)]) + "\n"


def format_text_sentence(sentence: TextSentence, tags: Sequence[str], number: int) -> str:
    """
    A sentence of raw text with its tags as UPOS, from which the text can be rebuilt: the last
    column says where words have no blank, or not a single one, between them. Words that are written
    together, as in "don't", are one multiword token.
    """
    words, after = sentence.split.words, sentence.after
    lines = ["# newpar\n"] if sentence.is_first else []
    lines.append(f"# sent_id = {number}\n")
    blanks = (" " if spaces else "" for spaces in [*after[:-1], ""])
    lines.append(f"# text = {''.join(map(str.__add__, words, blanks))}\n")
    for first, last in find_tokens(len(words), sentence.split.attached):
        note = describe_spaces(after[last], "" if first else sentence.before)
        if first == last:
            lines.append(format_row(str(first + 1), words[first], tags[first], note))
            continue
        together = "".join(words[first : last + 1])
        lines.append(format_row(f"{first + 1}-{last + 1}", together, note=note))
        lines += [
            format_row(str(place + 1), words[place], tags[place])
            for place in range(first, last + 1)
        ]
    return "".join(lines) + "\n"


def find_tokens(count: int, attached: frozenset[int]) -> Iterator[tuple[int, int]]:
    """The first and the last word of each token: a word, and those attached to it."""
    starts = [place for place in range(count) if place not in attached]
    for start, following in zip(starts, [*starts[1:], count], strict=True):
        yield start, following - 1


def describe_spaces(after: str, before: str) -> str:
    """The blanks around a token in the last column, as UDPipe writes them."""
    notes = [f"SpacesBefore={escape_spaces(before)}"] if before else []
    if not after:
        notes.append("SpaceAfter=No")
    elif after != " ":
        notes.append(f"SpacesAfter={escape_spaces(after)}")
    return "|".join(notes) or "_"


def cell(text: str) -> str:
    """A text that can stand between two tabs; `_` stands for nothing."""
    return BREAKS.sub(" ", text).strip(" ") or "_"
