# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What `BatchEncoding` asks of an encoded sentence, where every token is a whole word."""

from dataclasses import dataclass
from typing import Any, ClassVar

Span = tuple[int, int]


def pad_list(values: list, fill: Any, absent: tuple[int, int]) -> list:
    """A list with `absent` fills before and after it."""
    before, after = absent
    return [fill] * before + values + [fill] * after


def depth(ids: Any) -> int:
    """0 for an id, 1 for a row, 2 for a sentence, 3 for a batch; [] is a sentence without words."""
    if not isinstance(ids, (list, tuple)):
        return getattr(ids, "ndim", 0)
    if not ids:
        return 2
    filled = (item for item in ids if not isinstance(item, (list, tuple)) or item)
    return 1 + depth(next(filled, []))


def check_words(words: Any, number: int) -> list[str]:
    if not isinstance(words, (list, tuple)):
        raise ValueError(f"Sentence {number} of the batch is {words!r}; give a list of words.")
    # a set of types, because asking every word takes twice as long
    if not all(issubclass(kind, str) for kind in set(map(type, words))):
        place = next(place for place, word in enumerate(words) if not isinstance(word, str))
        raise ValueError(f"Word {place} of sentence {number} is {words[place]!r}; give a string.")
    return list(words)


@dataclass(slots=True)
class SentenceEncoding:
    """
    The methods of a Rust `tokenizers.Encoding`.

    The argument for the sequence of a pair changes nothing, as in Rust for a single sentence.
    """

    words: list[str]
    spans: list[Span]
    first: int  # the place of `words[0]` in the sentence before truncation
    absent: tuple[int, int]  # how many absent words are before and after
    pad_token: str
    n_sequences: ClassVar[int] = 1

    @property
    def tokens(self) -> list[str]:
        return pad_list(self.words, self.pad_token, self.absent)

    @property
    def word_ids(self) -> list[int | None]:
        return pad_list(list(range(self.first, self.first + len(self.words))), None, self.absent)

    @property
    def sequence_ids(self) -> list[int | None]:
        return pad_list([0] * len(self.words), None, self.absent)

    @property
    def offsets(self) -> list[Span]:
        return pad_list(self.spans, (0, 0), self.absent)

    @property
    def attention_mask(self) -> list[int]:
        return pad_list([1] * len(self.words), 0, self.absent)

    @property
    def special_tokens_mask(self) -> list[int]:
        return pad_list([0] * len(self.words), 1, self.absent)

    def token_to_word(self, token: int) -> int | None:
        return dict(enumerate(self.word_ids)).get(token)

    def token_to_sequence(self, token: int) -> int | None:
        return dict(enumerate(self.sequence_ids)).get(token)

    def token_to_chars(self, token: int) -> Span | None:
        return None if self.token_to_word(token) is None else self.offsets[token]

    def word_to_tokens(self, word: int, sequence: int = 0) -> Span | None:
        token = self.absent[0] + word - self.first
        return (token, token + 1) if word in self.word_ids else None

    def word_to_chars(self, word: int, sequence: int = 0) -> Span | None:
        return self.spans[word - self.first] if word in self.word_ids else None

    def char_to_token(self, char: int, sequence: int = 0) -> int | None:
        tokens = enumerate(self.offsets)
        return next((token for token, (start, end) in tokens if start <= char < end), None)

    def char_to_word(self, char: int, sequence: int = 0) -> int | None:
        token = self.char_to_token(char)
        return None if token is None else self.word_ids[token]
