# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""How much of a text was split and tagged rightly, as the shared task CoNLL 2018 counts it.

Tokens and sentences are right if their spans are, blanks not counted. So are words, except where a
token has several words: their forms need not be in the text, so the words of both sides there are
aligned by the longest sequence of forms that they share.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from elmo_hf.tagging.gold_text import Analysis, Word
from elmo_hf.word_encoding import Span

# Pairs of words in a token of several words. Real ones have a dozen; a damaged file may have a
# token of any length.
MOST_PAIRS = 1 << 20


@dataclass
class Count:
    """How many parts of a kind there are, how many were found, and how many of those are right."""

    gold: int = 0
    found: int = 0
    right: int = 0

    def add(self, gold: int, found: int, right: int) -> None:
        self.gold += gold
        self.found += found
        self.right += right

    def figures(self) -> dict[str, float | int]:
        return {
            "f1": 2 * self.right / max(1, self.gold + self.found),
            "precision": self.right / max(1, self.found),
            "recall": self.right / max(1, self.gold),
            "number": self.gold,
        }


class Counts:
    """The counts of a text, which comes paragraph by paragraph."""

    def __init__(self) -> None:
        self.by_kind = {kind: Count() for kind in ("tokens", "sentences", "words", "upos")}

    def add(self, text: str, gold: Analysis, found: Analysis) -> None:
        # how many characters but blanks are before each place of the text
        places = [0, *accumulate(not sign.isspace() for sign in text)]
        gold, found = without_blanks(gold, places), without_blanks(found, places)
        for kind, one, other in (
            ("tokens", gold.tokens, found.tokens),
            ("sentences", gold.sentences, found.sentences),
        ):
            self.by_kind[kind].add(len(one), len(other), len({*one} & {*other}))
        pairs = list(align(gold.words, found.words))
        same_tag = sum(one.tag == other.tag for one, other in pairs)
        for kind, right in (("words", len(pairs)), ("upos", same_tag)):
            self.by_kind[kind].add(len(gold.words), len(found.words), right)

    def figures(self) -> dict[str, dict[str, float | int]]:
        return {kind: count.figures() for kind, count in self.by_kind.items()}


def without_blanks(analysis: Analysis, places: Sequence[int]) -> Analysis:
    """The same, its spans counted in characters that are not blank."""

    def move(span: Span) -> Span:
        return places[span[0]], places[span[1]]

    return Analysis(
        [move(span) for span in analysis.tokens],
        [word._replace(span=move(word.span)) for word in analysis.words],
        [move(span) for span in analysis.sentences],
    )


def align(gold: Sequence[Word], found: Sequence[Word]) -> Iterator[tuple[Word, Word]]:
    """Pairs of words that are the same, in the order of the text within each of the two kinds."""
    areas = [*joined(word.span for word in (*gold, *found) if word.is_part)]
    inside, outside = divide(gold, areas)
    found_inside, found_outside = divide(found, areas)
    by_span = {word.span: word for word in found_outside}
    yield from ((word, by_span[word.span]) for word in outside if word.span in by_span)
    for one, other in zip(inside, found_inside, strict=True):
        yield from longest_common(one, other)


def joined(spans: Iterable[Span]) -> Iterator[Span]:
    """The areas that some spans cover; spans that only touch stay apart."""
    area: Span | None = None
    for start, end in sorted(spans):
        if area is not None and start < area[1]:
            area = (area[0], max(area[1], end))
            continue
        if area is not None:
            yield area
        area = (start, end)
    if area is not None:
        yield area


def divide(words: Sequence[Word], areas: Sequence[Span]) -> tuple[list[list[Word]], list[Word]]:
    """The words in each area, and all others; one that is partly in an area is not in it."""
    inside: list[list[Word]] = [[] for _ in areas]
    outside, place = [], 0
    for word in words:
        start, end = word.span
        while place < len(areas) and areas[place][1] <= start:
            place += 1
        if place < len(areas) and areas[place][0] <= start and end <= areas[place][1]:
            inside[place].append(word)
        else:
            outside.append(word)
    return inside, outside


def longest_common(gold: Sequence[Word], found: Sequence[Word]) -> Iterator[tuple[Word, Word]]:
    """Pairs of words with the same forms, in order, and as many as possible."""
    one, other = [word.form.lower() for word in gold], [word.form.lower() for word in found]
    if len(one) * len(other) > MOST_PAIRS:
        raise ValueError(
            f"The gold text has {len(one)} words in one token, which begins with "
            f"{gold[0].form!r:.50}, and {len(other)} were found there; that is too much to "
            "compare, so correct its range."
        )
    # most[i][j]: how many pairs the words from i and from j on have
    most = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i in reversed(range(len(one))):
        for j in reversed(range(len(other))):
            longer = max(most[i + 1][j], most[i][j + 1])
            most[i][j] = 1 + most[i + 1][j + 1] if one[i] == other[j] else longer
    i = j = 0
    while i < len(one) and j < len(other):
        if one[i] == other[j]:
            yield gold[i], found[j]
            i, j = i + 1, j + 1
        elif most[i + 1][j] == most[i][j]:
            i += 1
        else:
            j += 1
