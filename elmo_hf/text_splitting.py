# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Raw text to sentences and words, each word with its span: splitters, chosen by name.

whitespace   words between blanks; the whole text is one sentence
english      the words of Universal Dependencies' English treebanks: `do n't`
moses        the words of the Moses scripts, which the published English models read: `don 't`
characters   one word per character, as in protein sequences; the whole text is one sentence
spacy:LANG   spaCy's rules for a language, as in spacy:fi

In Python a splitter may also be a function from a text to words, or to sentences of words.
"""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .english_splitting import LONGEST_SENTENCE, EnglishWord, split_english
from .extras import require
from .word_encoding import Span

# for text that is tokenised already
WHITESPACE = "whitespace"
SPACY = "spacy:"
# Characters that spaCy reads at once, so that memory does not grow with the text.
SPACY_PIECE = 1 << 16
# where a text may be cut; rarer ones need not be known
BLANKS = " \n\t"
# Moses removes them, also from inside a word.
CONTROLS = re.compile("[\x00-\x1f]")


class SplitSentence(NamedTuple):
    """The words of a sentence, and where they are in the text it comes from."""

    words: list[str]
    spans: list[Span]
    # places of words that are written together with the word before them: `n't` of "don't"
    attached: frozenset[int] = frozenset()


Words = Sequence[str]
# what users may write: a text's words, or its sentences
SplitFunction = Callable[[str], Sequence[str] | Sequence[Words]]
Splitter = Callable[[str], Iterable[SplitSentence]]


def find_splitter(name: str | SplitFunction, language: str = "en") -> Splitter:
    """The splitter of this name; `language` matters to Moses only."""
    if callable(name):
        split: Splitter = functools.partial(by_function, split=name)
    elif name == "moses":
        split = functools.partial(by_moses, language=language)
    elif isinstance(name, str) and name.startswith(SPACY) and len(name) > len(SPACY):
        split = functools.partial(by_spacy, language=name.removeprefix(SPACY))
    elif name in BY_NAME:
        split = BY_NAME[name]
    else:
        raise ValueError(f"`word_splitter` is {name!r}; choose {', '.join(SPLITTERS)}.")
    return functools.partial(split_checked, split=split)


def split_checked(text: str, split: Splitter) -> Iterable[SplitSentence]:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"Character {error.start} of the text is half of a character, {text[error.start]!r}; "
            "decode the text again."
        ) from error
    return split(text)


def by_whitespace(text: str) -> list[SplitSentence]:
    words = text.split()
    return [SplitSentence(words, find_words(text, words))] if words else []


def by_english_rules(text: str) -> Iterator[SplitSentence]:
    sentence: list[EnglishWord] = []
    for sentence in split_english(text):
        attached = frozenset(place for place, word in enumerate(sentence) if word.is_attached)
        spans = [(word.start, word.end) for word in sentence]
        yield SplitSentence([word.form for word in sentence], spans, attached)
    if not sentence:
        # characters without width, alone
        yield from by_whitespace(text)


def by_characters(text: str) -> list[SplitSentence]:
    spans = [(place, place + 1) for place, sign in enumerate(text) if not sign.isspace()]
    return [SplitSentence([text[start] for start, _ in spans], spans)] if spans else []


def by_moses(text: str, language: str) -> Iterator[SplitSentence]:
    """Sentences by the English rules, words by Moses."""
    tokenize = moses_tokenizer(language).tokenize
    sentence: list[EnglishWord] = []
    for sentence in split_english(CONTROLS.sub(" ", text)):
        first, end = sentence[0].start, sentence[-1].end
        part = CONTROLS.sub(" ", text[first:end])
        words = tokenize(part, escape=False)
        spans = [(first + start, first + stop) for start, stop in find_words(part, words)]
        yield SplitSentence(words, spans)
    if not sentence:
        yield from by_whitespace(text)


@functools.lru_cache(maxsize=8)
def moses_tokenizer(language: str) -> Any:
    return require("sacremoses", "The word splitter 'moses'").MosesTokenizer(lang=language)


def by_spacy(text: str, language: str) -> Iterator[SplitSentence]:
    """Piece by piece; a sentence that a piece cuts off begins the next one."""
    pipeline = spacy_pipeline(language)
    start = 0
    while start < len(text):
        end = piece_end(text, start)
        doc = pipeline(text[start:end])
        sentences = [spans for sent in doc.sents if (spans := spans_of(sent, start))]
        is_last = end == len(text)
        if not is_last and len(sentences) > 1:
            sentences, end = sentences[:-1], sentences[-1][0][0]
        for spans in sentences:
            for first in range(0, len(spans), LONGEST_SENTENCE):
                some = spans[first : first + LONGEST_SENTENCE]
                yield SplitSentence([text[a:b] for a, b in some], some)
        start = end


def piece_end(text: str, start: int) -> int:
    """At a blank if there is one: a sentence may be longer than a piece, and no word is cut."""
    end = start + SPACY_PIECE
    if end >= len(text):
        return len(text)
    blank = max(text.rfind(sign, start, end) for sign in BLANKS)
    return blank if blank > start else end


def spans_of(sentence: Any, start: int) -> list[Span]:
    """The spans of spaCy's words but blanks, which it counts as words."""
    words = [word for word in sentence if not word.is_space]
    return [(start + word.idx, start + word.idx + len(word.text)) for word in words]


@functools.lru_cache(maxsize=8)
def spacy_pipeline(language: str) -> Any:
    spacy = require("spacy", f"The word splitter '{SPACY}{language}'")
    try:
        pipeline = spacy.blank(language)
    # some languages need one more library, which spaCy names in an error of several lines
    except (ImportError, ValueError, OSError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ValueError(
            f"spaCy cannot split the language {language!r}: {reason:.300}; its languages and what "
            "they need are listed on https://spacy.io/usage/models#languages."
        ) from error
    pipeline.add_pipe("sentencizer")
    return pipeline


def by_function(text: str, split: SplitFunction) -> Iterator[SplitSentence]:
    """The words that a user's function finds; they must be in the text, in this order."""
    found: Any = split(text)
    if not isinstance(found, (list, tuple)):
        found = [found]
    sentences = [found] if all(isinstance(part, str) for part in found) else found
    end = 0
    for given in sentences:
        words: list[Any] = list(given) if isinstance(given, (list, tuple)) else [None]
        if not all(isinstance(word, str) and word for word in words):
            raise ValueError(
                f"The word splitter returned {found!r:.80}; it must return a list of words or of "
                "sentences."
            )
        spans = find_words(text, words, end)
        if words:
            end = spans[-1][1]
            yield SplitSentence(words, spans)


def find_words(text: str, words: Words, end: int = 0) -> list[Span]:
    """Where some words are in a text after `end`, in their order."""
    spans = []
    for word in words:
        start = text.find(word, end)
        if start < 0:
            raise ValueError(
                f"The word splitter made the word {word!r}, which is not in {text!r:.80}; split "
                "the words yourself and pass `is_split_into_words=True`."
            )
        end = start + len(word)
        spans.append((start, end))
    return spans


BY_NAME: dict[str, Splitter] = {
    WHITESPACE: by_whitespace,
    "english": by_english_rules,
    "characters": by_characters,
}
SPLITTERS = (*BY_NAME, "moses", f"{SPACY}LANG")
