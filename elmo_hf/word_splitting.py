# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""How a string becomes words, each with its span in the string."""

from .extras import require
from .word_encoding import Span

# by whitespace alone, or with Moses' rules, like the training text of the published English models
SPLITTERS = ("whitespace", "moses")


def split_words(
    texts: list[str], splitter: str, language: str
) -> tuple[list[list[str]], list[list[Span]]]:
    """The words of each text, and where they are in it."""
    if splitter == "whitespace":
        words = [text.split() for text in texts]
        return words, list(map(find_words, texts, words))
    moses = require("sacremoses", "The word splitter 'moses'").MosesTokenizer(lang=language)
    words = [moses.tokenize(text, escape=False) for text in texts]
    return words, list(map(find_moses_words, texts, words))


def find_words(text: str, words: list[str]) -> list[Span]:
    """Where the words of `text.split()` are."""
    spans, end = [], 0
    for word in words:
        start = text.index(word, end)
        end = start + len(word)
        spans.append((start, end))
    return spans


def find_moses_words(text: str, words: list[str]) -> list[Span]:
    """Where Moses' words are: it drops blanks and control characters of a text, nothing else."""
    spans, end = [], 0
    for word in words:
        places = []
        for character in word:
            places.append(text.find(character, end))
            if places[-1] < 0:
                raise ValueError(
                    f"Moses made the word {word!r}, which is not in {text!r}; "
                    "split the words yourself and pass `is_split_into_words=True`."
                )
            end = places[-1] + 1
        spans.append((places[0], end))
    return spans
