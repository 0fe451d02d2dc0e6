# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Raw text as paragraphs, which splitters make into sentences, without losing a character."""

from collections.abc import Iterable, Iterator
from io import StringIO
from typing import NamedTuple

from elmo_hf.text.lines import Line, LineSource, RawLine, RawSource
from elmo_hf.text_lines import LONGEST_LINE
from elmo_hf.text_splitting import SplitSentence, Splitter

# a paragraph is a line; or it is all lines up to a blank one
PARAGRAPHS = ("line", "blank")


class Paragraph(NamedTuple):
    """A piece of text as it is, with the blank lines around it."""

    text: str
    # how many characters of the source are before it
    start: int
    # its share of the source's total
    size: int


class TextSentence(NamedTuple):
    """A sentence of a paragraph, and the blanks between its words."""

    paragraph: Paragraph
    split: SplitSentence
    # before the first word, if this is the paragraph's first sentence
    before: str
    # after each word, up to the next one or to the paragraph's end
    after: list[str]
    is_first: bool
    is_last: bool


def join_lines(source: RawSource, kind: str = "line") -> Iterator[Paragraph]:
    """
    The paragraphs of some lines, none of them without words; none crosses the end of a file.
    Together they are the whole text, but for blank lines at the end of a stream: there, a paragraph
    does not wait for the next line.
    """
    check_paragraphs(kind)
    building = ParagraphBuilder()
    for line in source.lines:
        is_blank = not line.text.strip()
        begins = line.is_first or (building.is_over and not is_blank)
        # blank lines without end would take memory without end
        if building.is_filled and (begins or (building.is_over and building.size > LONGEST_LINE)):
            yield building.build()
        building.add(line, is_blank)
        building.is_over = building.is_filled and (kind == "line" or is_blank)
        if building.is_over and source.is_stream:
            yield building.build()
    if building.is_filled:
        yield building.build()


class ParagraphBuilder:
    """Joins lines to one paragraph after the other."""

    def __init__(self) -> None:
        self.start = 0
        self._begin()

    def _begin(self) -> None:
        # not a list of lines, which takes many times the room if they are short
        self.text = StringIO()
        self.size = 0
        self.is_filled = self.is_over = False

    def add(self, line: RawLine, is_blank: bool) -> None:
        self.text.write(line.text)
        self.size += line.size
        self.is_filled = self.is_filled or not is_blank
        if self.size > LONGEST_LINE and not self.is_over:
            raise ValueError(
                f"{line.place}: a paragraph of more than {LONGEST_LINE:,} bytes ends nowhere; put "
                "blank lines between paragraphs, or pass --paragraphs line."
            )

    def build(self) -> Paragraph:
        """The paragraph of all lines so far; another one begins."""
        paragraph = Paragraph(self.text.getvalue(), self.start, self.size)
        self.start += len(paragraph.text)
        self._begin()
        return paragraph


def check_paragraphs(kind: str) -> None:
    if kind not in PARAGRAPHS:
        raise ValueError(f"`paragraphs` is {kind!r} but must be {' or '.join(PARAGRAPHS)}.")


def split_paragraph(paragraph: Paragraph, split: Splitter) -> Iterator[TextSentence]:
    """The sentences of a paragraph; each needs the next one, for the blanks between the two."""
    sentences = iter(split(paragraph.text))
    sentence, end = next(sentences, None), 0
    while sentence is not None:
        following = next(sentences, None)
        limit = following.spans[0][0] if following else len(paragraph.text)
        starts = [start for start, _ in sentence.spans[1:]] + [limit]
        ends = [stop for _, stop in sentence.spans]
        after = [paragraph.text[a:b] for a, b in zip(ends, starts, strict=True)]
        before = "" if end else paragraph.text[: sentence.spans[0][0]]
        yield TextSentence(paragraph, sentence, before, after, not end, following is None)
        sentence, end = following, ends[-1]


def sentence_source(source: RawSource, split: Splitter, kind: str = "line") -> LineSource:
    """
    Raw text as tokenised sentences, numbered one after the other: the text of each is its words
    with blanks between them.
    """
    return LineSource(source.name, split_lines(join_lines(source, kind), split), source.total, "B")


def split_lines(paragraphs: Iterable[Paragraph], split: Splitter) -> Iterator[Line]:
    number = 0
    for paragraph in paragraphs:
        size = paragraph.size
        for sentence in split(paragraph.text):
            yield Line(number, " ".join(sentence.words), sentence.words, size)
            # a paragraph counts once
            number, size = number + 1, 0
