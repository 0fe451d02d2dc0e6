# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Tags for raw text of any size: a file in bounded memory, a stream as its lines come."""

from collections.abc import Callable, Iterable, Iterator

from elmo_hf.tagging.output import Tagged
from elmo_hf.tagging.tagger import ElmoTagger, tag_groups
from elmo_hf.text.lines import RawSource
from elmo_hf.text.paragraphs import Paragraph, TextSentence, join_lines, split_paragraph
from elmo_hf.text.streams import as_they_come

# Paragraphs of a stream that are tagged together if they have come already.
PARAGRAPHS_AT_ONCE = 256


def tag_text(
    tagger: ElmoTagger,
    source: RawSource,
    paragraphs: str = "line",
    progress: Callable[[int], object] = lambda size: None,
) -> Iterator[Iterator[Tagged]]:
    """
    The sentences of a text in groups, each to be read before the next: of a file there is a single
    group, of a stream one for whatever has come so far.
    """
    joined = join_lines(source, paragraphs)
    groups: Iterable[Iterable[Paragraph]] = [joined]
    if source.is_stream:
        groups = as_they_come(joined, PARAGRAPHS_AT_ONCE)
    number = 0

    def sentences(group: Iterable[Paragraph]) -> Iterator[TextSentence]:
        for paragraph in group:
            progress(paragraph.size)
            yield from split_paragraph(paragraph, tagger.split)

    def tag(group: Iterable[Paragraph]) -> Iterator[Tagged]:
        nonlocal number
        found = ((sentence, [sentence.split.words]) for sentence in sentences(group))
        for sentence, [tags] in tag_groups(tagger, found):
            number += 1
            yield Tagged(sentence, tags, number)

    return map(tag, groups)
