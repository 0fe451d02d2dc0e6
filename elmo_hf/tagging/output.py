# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Tagged text to print, in one of several formats; none of them loses the text's words."""

import json
from collections.abc import Callable, Iterable
from typing import NamedTuple

from elmo_hf.system.untrusted import printable
from elmo_hf.tagging.conllu import format_text_sentence
from elmo_hf.tagging.tagger import TaggedSentence
from elmo_hf.text.paragraphs import TextSentence


class Tagged(NamedTuple):
    """A sentence of a text with its tags."""

    sentence: TextSentence
    tags: TaggedSentence
    # counted from 1, through the whole text
    number: int


# a sentence as text; the labels are those of the tagger
Show = Callable[[Tagged], str]


def as_conllu(tagged: Tagged) -> str:
    return format_text_sentence(tagged.sentence, tagged.tags.tags, tagged.number)


def as_tsv(tagged: Tagged) -> str:
    """A row per word, with its tag, its probability and its place in the text; then a blank row."""
    start = tagged.sentence.paragraph.start
    words, tags, scores, _ = tagged.tags
    spans = tagged.sentence.split.spans
    rows = [
        f"{word}\t{tag}\t{score:.4f}\t{start + first}\t{start + end}\n"
        for word, tag, score, (first, end) in zip(words, tags, scores, spans, strict=True)
    ]
    return "".join(rows) + "\n"


def as_jsonl(tagged: Tagged) -> str:
    """
    One object per paragraph, with its text and its sentences. It is printed sentence by sentence,
    so that a long paragraph needs no memory.
    """
    sentence, (words, tags, scores, _) = tagged.sentence, tagged.tags
    found = {
        "words": words,
        "spans": sentence.split.spans,
        "tags": tags,
        "scores": [round(score, 4) for score in scores],
    }
    text = json.dumps(found, ensure_ascii=False)
    if sentence.is_first:
        paragraph = json.dumps(sentence.paragraph.text, ensure_ascii=False)
        text = f'{{"text": {paragraph}, "sentences": [{text}'
    else:
        text = f", {text}"
    return text + ("]}\n" if sentence.is_last else "")


def colour_painter(labels: Iterable[str]) -> Show:
    """One line per sentence, with every tag in a colour of its own."""
    names = sorted(labels)
    # bright ones of the terminal's 256 colours, as far from one another as their number allows
    colours = {tag: 17 + 211 * number // len(names) for number, tag in enumerate(names)}

    def paint(tagged: Tagged) -> str:
        pairs = zip(tagged.tags.words, tagged.tags.tags, strict=True)
        shown = [f"{printable(word)}\033[38;5;{colours[tag]}m/{tag}\033[0m" for word, tag in pairs]
        return " ".join(shown) + "\n"

    return paint


FORMATS = ("conllu", "tsv", "jsonl", "colour")


def find_format(name: str, labels: Iterable[str]) -> Show:
    if name not in FORMATS:
        raise ValueError(f"--format is {name!r} but must be one of {', '.join(FORMATS)}.")
    shows = {"conllu": as_conllu, "tsv": as_tsv, "jsonl": as_jsonl}
    return shows.get(name) or colour_painter(labels)
