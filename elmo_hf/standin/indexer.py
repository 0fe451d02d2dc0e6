# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Words to character ids: AllenNLP's mapper and its indexer, of 0.9 and of 2.10."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from elmo_hf.characters import (
    BEGIN_SENTENCE,
    BEGIN_WORD,
    DEFAULT_WIDTH,
    END_SENTENCE,
    END_WORD,
    PADDING,
    boundary_row,
    encode_word,
)
from elmo_hf.standin.data import Token, Vocabulary
from elmo_hf.standin.errors import ConfigurationError

# the name of the ids in AllenNLP since 1.0
TOKENS = "elmo_tokens"


def before_masking(row: list[int]) -> list[int]:
    """AllenNLP numbers characters from 0, and adds 1 at the end, so that 0 is no word."""
    return [number - 1 for number in row]


class OnTheClassToo:
    """A method that may also be called on its class, as some old code does with the mapper's."""

    def __init__(self, method: Callable):
        self.method = method

    def __get__(self, instance: Any, owner: type) -> Callable:
        return functools.partial(self.method, owner() if instance is None else instance)


class ELMoCharacterMapper:
    """One word to 50 character ids; `tokens_to_add` are words with an id of their own."""

    max_word_length = DEFAULT_WIDTH
    beginning_of_sentence_character = BEGIN_SENTENCE - 1
    end_of_sentence_character = END_SENTENCE - 1
    beginning_of_word_character = BEGIN_WORD - 1
    end_of_word_character = END_WORD - 1
    padding_character = PADDING - 1
    beginning_of_sentence_characters = before_masking(boundary_row(BEGIN_SENTENCE))
    end_of_sentence_characters = before_masking(boundary_row(END_SENTENCE))
    bos_token = "<S>"
    eos_token = "</S>"

    def __init__(self, tokens_to_add: Mapping[str, int] | None = None):
        self.tokens_to_add = tokens_to_add or {}

    @OnTheClassToo
    def convert_word_to_char_ids(self, word: str) -> list[int]:
        if not isinstance(word, str):
            raise TypeError(f"A word is a string, not {word!r:.100}.")
        if word in self.tokens_to_add:
            return boundary_row(self.tokens_to_add[word] + 1)
        if word == self.bos_token:
            return boundary_row(BEGIN_SENTENCE)
        if word == self.eos_token:
            return boundary_row(END_SENTENCE)
        return encode_word(word)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ELMoCharacterMapper):
            return self.tokens_to_add == other.tokens_to_add
        return NotImplemented


class ELMoTokenCharactersIndexer:
    """Words of a `TextField` to rows of character ids."""

    def __init__(
        self,
        namespace: str = "elmo_characters",
        tokens_to_add: Mapping[str, int] | None = None,
        token_min_padding_length: int = 0,
    ):
        self._namespace = namespace
        self._mapper = ELMoCharacterMapper(tokens_to_add)
        self._token_min_padding_length = token_min_padding_length

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ELMoTokenCharactersIndexer):
            return vars(self) == vars(other)
        return NotImplemented

    def count_vocab_items(self, token: Token, counter: Any) -> None:
        """Characters need no vocabulary."""

    def tokens_to_indices(
        self, tokens: Sequence[Token], vocabulary: Vocabulary | None, index_name: str | None = None
    ) -> dict[str, list[list[int]]]:
        """Rows under `index_name`, or without one, as since AllenNLP 1.0, under `elmo_tokens`."""
        if any(token.text is None for token in tokens):
            raise ConfigurationError("The indexer of ELMo needs tokens that have their text.")
        rows = [self._mapper.convert_word_to_char_ids(token.text) for token in tokens]
        return {TOKENS if index_name is None else index_name: rows}

    def get_padding_lengths(self, token: Any) -> dict[str, int]:
        """Nothing that a row is padded to, or since 1.0 how many rows there are."""
        if isinstance(token, Mapping):
            return {TOKENS: max(len(token[TOKENS]), self._token_min_padding_length)}
        return {}

    def get_token_min_padding_length(self) -> int:
        return self._token_min_padding_length

    def get_keys(self, index_name: str) -> list[str]:
        return [index_name]

    def get_empty_token_list(self) -> dict[str, list]:
        return {TOKENS: []}

    def as_padded_tensor(
        self,
        tokens: Mapping[str, Sequence[list[int]]],
        desired_num_tokens: Mapping[str, int],
        padding_lengths: Mapping[str, int],
    ) -> dict[str, torch.Tensor]:
        """As before AllenNLP 1.0: rows of zeros where there is no word."""
        return {name: padded(rows, desired_num_tokens[name]) for name, rows in tokens.items()}

    def as_padded_tensor_dict(
        self, tokens: Mapping[str, Sequence[list[int]]], padding_lengths: Mapping[str, int]
    ) -> dict[str, torch.Tensor]:
        """The same since AllenNLP 1.0."""
        return {TOKENS: padded(tokens[TOKENS], padding_lengths[TOKENS])}


def padded(rows: Sequence[list[int]], length: int) -> torch.Tensor:
    """(length, 50)"""
    tensor = torch.zeros(length, DEFAULT_WIDTH, dtype=torch.long)
    given = torch.tensor(list(rows)[:length], dtype=torch.long).view(-1, DEFAULT_WIDTH)
    tensor[: len(given)] = given
    return tensor
