# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The raw text of a treebank, rebuilt from its words, and where its tokens and words are in it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from elmo_hf.tagging.spaces import unescape_spaces
from elmo_hf.tagging.treebank import UPOS, Row, TreebankSentence, read_treebank
from elmo_hf.word_encoding import Span

NEW_PARAGRAPH = re.compile(r"#\s*(newpar|newdoc)\b")
# Characters of a paragraph, beyond which the end of a sentence ends it: a treebank may mark none.
LONGEST_PARAGRAPH = 1 << 20


class Word(NamedTuple):
    """A word with its tag, and the span of the token it belongs to: of "don't" for `n't`."""

    form: str
    tag: str
    span: Span
    # whether its token has several words
    is_part: bool


@dataclass
class Analysis:
    """What a text consists of, as people or a program have split and tagged it."""

    # what lies between blanks or touches: "don't" is one token of two words
    tokens: list[Span] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    sentences: list[Span] = field(default_factory=list)

    def add_token(self, span: Span, forms: list[str], tags: list[str], several: bool) -> None:
        self.tokens.append(span)
        self.words += [
            Word(form, tag, span, several) for form, tag in zip(forms, tags, strict=True)
        ]

    def end_sentence(self, first: int) -> None:
        """Makes a sentence of all tokens from the token with this number."""
        self.sentences.append((self.tokens[first][0], self.tokens[-1][1]))


class GoldParagraph(NamedTuple):
    text: str
    gold: Analysis


def read_paragraphs(path: Path) -> Iterator[GoldParagraph]:
    """The paragraphs of a CoNLL-U file; one begins wherever `# newpar` or `# newdoc` says so."""
    builder = GoldBuilder()
    for sentence in read_treebank(path):
        is_new = any(NEW_PARAGRAPH.match(comment) for comment in sentence.comments)
        if builder.gold.tokens and (is_new or builder.length > LONGEST_PARAGRAPH):
            yield builder.build()
            builder = GoldBuilder()
        if sentence.words:
            builder.add(sentence)
    if builder.gold.tokens:
        yield builder.build()


class GoldBuilder:
    """Grows a text and its gold analysis sentence by sentence."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.length = 0
        self.gold = Analysis()

    def add(self, sentence: TreebankSentence) -> None:
        first = len(self.gold.tokens)
        for token, words in surface(sentence):
            before, after = blanks_around(token)
            self._write(before)
            span = (self.length, self.length + len(token.form))
            self._write(token.form + after)
            forms, tags = [word.form for word in words], [word.columns[UPOS] for word in words]
            self.gold.add_token(span, forms, tags, several=token is not words[0])
        self.gold.end_sentence(first)

    def build(self) -> GoldParagraph:
        return GoldParagraph("".join(self.parts), self.gold)

    def _write(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)


def surface(sentence: TreebankSentence) -> Iterator[tuple[Row, list[Row]]]:
    """What is written in the text, ranges and words outside of them, each with its words."""
    ranges = {row.first: row for row in sentence.ranges}
    place = 0
    while place < len(sentence.words):
        token = ranges.get(place + 1, sentence.words[place])
        yield token, sentence.words[place : token.last]
        place = token.last


def blanks_around(token: Row) -> tuple[str, str]:
    """The blanks before and after a token, as its last column gives them; usually one after it."""
    notes = dict(note.partition("=")[::2] for note in token.misc.split("|"))
    usual = "" if notes.get("SpaceAfter") == "No" else " "
    after = notes.get("SpacesAfter")
    return (
        unescape_spaces(notes.get("SpacesBefore", "")),
        usual if after is None else unescape_spaces(after),
    )
