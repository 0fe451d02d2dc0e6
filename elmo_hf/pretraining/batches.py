# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Tokens become what `ElmoForPreTraining` reads: character ids, and numbers of words to predict."""

import functools
from collections.abc import Sequence

import numpy as np
import torch

from elmo_hf.characters import WordRows
from elmo_hf.modeling_elmo import ElmoForPreTraining
from elmo_hf.pretraining.streams import PackedStream
from elmo_hf.word_vocabulary import BEGIN, END, WordVocabulary

# holds the id of any character or word
ROW_TYPE = np.dtype(np.int32)


def encode_tokens(tokens: Sequence[Sequence[str]], steps: int, word_rows: WordRows) -> torch.Tensor:
    """Ids (rows, steps, row_width) of rows of tokens; zeros where a row has ended."""
    # every distinct token has a number from 1 on, in the order of first occurrence; 0 is no token
    numbers: dict[str, int] = {}
    places = [[numbers.setdefault(token, len(numbers) + 1) for token in row] for row in tokens]
    rows, width = [encode_token(token, word_rows) for token in numbers], word_rows.width
    table = np.frombuffer(bytes(ROW_TYPE.itemsize * width) + b"".join(rows), ROW_TYPE)
    padded = [row + [0] * (steps - len(row)) for row in places]
    return torch.from_numpy(table.reshape(-1, width)[np.array(padded, np.int64)].astype(np.int64))


# Bounded, because frequent words make up most of any text.
@functools.lru_cache(maxsize=1 << 14)
def encode_token(token: str, word_rows: WordRows) -> bytes:
    """The ids of one token; a word spelled like a boundary is one, as in bilm-tf."""
    # streams have these names for the boundaries, whatever the model's dictionaries say
    boundaries = dict(zip((BEGIN, END), word_rows.boundaries.values(), strict=True))
    row = (boundaries | word_rows.boundaries).get(token) or word_rows.encode(token)
    return np.array(row, ROW_TYPE).tobytes()


def number_tokens(
    tokens: Sequence[Sequence[str]], steps: int, vocabulary: WordVocabulary
) -> torch.Tensor:
    """Word numbers (rows, steps) of rows of tokens; -100 where a row has ended."""
    rows = [[vocabulary.number(token) for token in row] for row in tokens]
    padded = [row + [-100] * (steps - len(row)) for row in rows]
    return torch.tensor(padded, dtype=torch.long)


def stream_batch(
    forward: PackedStream, backward: PackedStream, vocabulary: WordVocabulary, rows: WordRows
) -> dict[str, torch.Tensor]:
    """The next inputs of `ElmoForPreTraining`."""
    batch = {}
    for stream, suffix in ((forward, ""), (backward, "_backward")):
        inputs, targets = next(stream)
        batch[f"input_ids{suffix}"] = encode_tokens(inputs, stream.steps, rows)
        batch[f"labels{suffix}"] = number_tokens(targets, stream.steps, vocabulary)
    return batch


def next_batch(
    model: ElmoForPreTraining, streams: Sequence[PackedStream]
) -> dict[str, torch.Tensor]:
    """The next inputs of this model, on its device."""
    forward, backward = streams
    batch = stream_batch(forward, backward, known_words(model), model.word_rows)
    return {name: part.to(model.device) for name, part in batch.items()}


def known_words(model: ElmoForPreTraining) -> WordVocabulary:
    """The words of the model's softmax; a model that does not know them is refused."""
    if model.vocabulary is None:
        raise ValueError(
            "This model has no vocabulary: set `model.vocabulary = WordVocabulary.load(FILE)`."
        )
    return model.vocabulary
