# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""How good a splitter and a tagger are together, on the raw text of a treebank."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tqdm.auto import tqdm

from elmo_hf.tagging.alignment import Counts
from elmo_hf.tagging.conllu import find_tokens
from elmo_hf.tagging.gold_text import Analysis, GoldParagraph, read_paragraphs
from elmo_hf.tagging.tagger import ElmoTagger, tag_groups
from elmo_hf.text_splitting import SplitSentence

RawFigures = dict[str, dict[str, float | int]]
Guess = tuple[GoldParagraph, list[SplitSentence]]


def evaluate_raw(tagger: ElmoTagger, gold: Path) -> RawFigures:
    """
    F1, precision, recall and number of tokens, sentences, words, and words with the right tag
    (`upos`), by the rules of the shared task CoNLL 2018. `gold` is CoNLL-U, and its text is split
    by the tagger's splitter.
    """

    def groups() -> Iterator[tuple[Guess, list[list[str]]]]:
        for paragraph in read_paragraphs(gold):
            sentences = list(tagger.split(paragraph.text))
            yield (paragraph, sentences), [sentence.words for sentence in sentences]

    counts = Counts()
    with tqdm(unit="sentence") as bar:
        for (paragraph, sentences), tagged in tag_groups(tagger, groups()):
            tags = [sentence.tags for sentence in tagged]
            counts.add(paragraph.text, paragraph.gold, as_analysis(sentences, tags))
            bar.update(len(sentences))
    figures = counts.figures()
    if not figures["words"]["number"]:
        raise ValueError(f"There is no sentence in {str(gold)!r}; check that it is the right file.")
    return figures


def as_analysis(sentences: Sequence[SplitSentence], tags: Sequence[Sequence[str]]) -> Analysis:
    """What a splitter and a tagger found; words that are written together are one token."""
    found = Analysis()
    for sentence, some in zip(sentences, tags, strict=True):
        first = len(found.tokens)
        for start, last in find_tokens(len(some), sentence.attached):
            span = (sentence.spans[start][0], sentence.spans[last][1])
            words, own = sentence.words[start : last + 1], list(some[start : last + 1])
            found.add_token(span, words, own, several=last > start)
        if some:
            found.end_sentence(first)
    return found
