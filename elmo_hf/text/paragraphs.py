# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Raw text as paragraphs, which splitters make into sentences, without losing a character."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from elmo_hf.english_splitting import is_blank
from elmo_hf.text.lines import BadLineError, Line, LineSource, RawLine, RawSource
from elmo_hf.text_lines import LONGEST_LINE
from elmo_hf.text_splitting import SplitSentence

# a paragraph is a line; or it is all lines up to a blank one
PARAGRAPHS = ("line", "blank")
Split = Callable[[str], Iterable[SplitSentence]]


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
    lines: list[RawLine] = []
    is_filled = is_over = False
    start = 0
    for line in source.lines:
        blank = is_blank(line.text)
        if is_over and not blank or is_filled and line.is_first:
            yield (paragraph := join(lines, start))
            start += len(paragraph.text)
            lines, is_filled, is_over = [], False, False
        lines.append(line)
        is_filled = is_filled or not blank
        is_over = is_filled and (kind == "line" or blank)
        if is_over and source.is_stream:
            yield (paragraph := join(lines, start))
            start += len(paragraph.text)
            lines, is_filled, is_over = [], False, False
    if is_filled:
        yield join(lines, start)


def check_paragraphs(kind: str) -> None:
    if kind not in PARAGRAPHS:
        raise ValueError(f"`paragraphs` is {kind!r} but must be {' or '.join(PARAGRAPHS)}.")


def join(lines: list[RawLine], start: int) -> Paragraph:
    size = sum(line.size for line in lines)
    if size > LONGEST_LINE:
        raise BadLineError(
            f"{lines[0].place}: a paragraph begins that has more than {LONGEST_LINE:,} bytes; put "
            "blank lines between paragraphs."
        )
    return Paragraph("".join(line.text for line in lines), start, size)


def split_paragraph(paragraph: Paragraph, split: Split) -> Iterator[TextSentence]:
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


def sentence_source(source: RawSource, split: Split, kind: str = "line") -> LineSource:
    """
    Raw text as tokenised sentences, numbered one after the other: the text of each is its words
    with blanks between them.
    """
    return LineSource(source.name, split_lines(join_lines(source, kind), split), source.total, "B")


def split_lines(paragraphs: Iterable[Paragraph], split: Split) -> Iterator[Line]:
    number = 0
    for paragraph in paragraphs:
        size = paragraph.size
        for sentence in split(paragraph.text):
            yield Line(number, " ".join(sentence.words), sentence.words, size)
            # a paragraph counts once
            number, size = number + 1, 0
