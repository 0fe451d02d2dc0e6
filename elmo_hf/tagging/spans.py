# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Tags such as B-person and I-person as spans of words: the names of a sentence."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from elmo_hf.crf_constraints import find_odd_label


class Span(NamedTuple):
    """A name: its kind, its first word, and the word after its last one."""

    kind: str
    start: int
    end: int


def are_of_spans(labels: Iterable[str]) -> bool:
    """Whether these are labels of BIO, IOB1 or BIOUL."""
    labels = list(labels)
    return labels != ["O"] and find_odd_label("BIOUL", labels) is None


def find_spans(tags: Sequence[str]) -> Iterator[Span]:
    """
    The spans of a sentence's tags in any of these schemes. A tagger may put I where nothing is open
    that could go on: there a span begins as well, as in seqeval.
    """
    start, kind = 0, ""
    # the end closes what is open
    for place, tag in enumerate([*tags, "O"]):
        letter, _, own = tag.partition("-")
        goes_on = (
            bool(kind) and own == kind and letter not in "BU" and tags[place - 1][0] not in "LU"
        )
        if not goes_on:
            if kind:
                yield Span(kind, start, place)
            start, kind = place, own
