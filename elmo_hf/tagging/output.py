# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Tagged text to print, in one of several formats; all but `spans` keep the text's words."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from elmo_hf.system.untrusted import printable
from elmo_hf.tagging.conllu import format_text_sentence
from elmo_hf.tagging.spans import are_of_spans, find_spans
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


def as_spans(tagged: Tagged) -> str:
    """
    A row per name: its place in the text, its kind, the lowest probability of its words, and the
    text itself, with single blanks.
    """
    paragraph, spans = tagged.sentence.paragraph, tagged.sentence.split.spans
    rows = ""
    for kind, start, end in find_spans(tagged.tags.tags):
        first, last = spans[start][0], spans[end - 1][1]
        score = min(tagged.tags.scores[start:end])
        name = " ".join(paragraph.text[first:last].split())
        place = f"{paragraph.start + first}\t{paragraph.start + last}"
        rows += f"{place}\t{kind}\t{score:.4f}\t{name}\n"
    return rows


def choose_colours(names: Iterable[str]) -> dict[str, int]:
    """Bright ones of a terminal's 256, as far from one another as their number allows."""
    names = sorted(names)
    return {name: 17 + 211 * number // len(names) for number, name in enumerate(names)}


def painted(text: str, colour: int) -> str:
    return f"\033[38;5;{colour}m{text}\033[0m"


def tag_painter(labels: Iterable[str]) -> Show:
    """One line per sentence, with every tag in a colour of its own."""
    colours = choose_colours(labels)

    def paint(tagged: Tagged) -> str:
        pairs = zip(tagged.tags.words, tagged.tags.tags, strict=True)
        shown = [printable(word) + painted(f"/{tag}", colours[tag]) for word, tag in pairs]
        return " ".join(shown) + "\n"

    return paint


def span_painter(labels: Iterable[str]) -> Show:
    """One line per sentence, with every name in the colour of its kind."""
    colours = choose_colours({label.partition("-")[2] for label in labels} - {""})

    def paint(tagged: Tagged) -> str:
        words = [printable(word) for word in tagged.tags.words]
        # from the last on, so that places before it stay
        for kind, start, end in reversed(list(find_spans(tagged.tags.tags))):
            words[start:end] = [painted(f"{' '.join(words[start:end])}/{kind}", colours[kind])]
        return " ".join(words) + "\n"

    return paint


FORMATS = ("conllu", "tsv", "jsonl", "spans", "colour")


def check_format(name: str) -> None:
    if name not in FORMATS:
        raise ValueError(f"--format is {name!r} but must be one of {', '.join(FORMATS)}.")


def default_format(labels: Sequence[str]) -> str:
    """What is printed where there is no terminal; names have no place in CoNLL-U."""
    return "spans" if are_of_spans(labels) else "conllu"


def find_format(name: str, labels: Sequence[str]) -> Show:
    check_format(name)
    finds_names = are_of_spans(labels)
    if name == "spans" and not finds_names:
        raise ValueError(
            f"--format spans is for taggers of names, and this one has tags such as {labels[0]!r}."
        )
    if name == "colour":
        return span_painter(labels) if finds_names else tag_painter(labels)
    return {"conllu": as_conllu, "tsv": as_tsv, "jsonl": as_jsonl, "spans": as_spans}[name]
