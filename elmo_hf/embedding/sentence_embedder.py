# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Sentences to vectors with a loaded model: any number of sentences in bounded memory."""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch

from elmo_hf.bilm_elmo import evaluating
from elmo_hf.embedding.word_cache import WordCache
from elmo_hf.hub.loading import make_tokenizer
from elmo_hf.layers_elmo import normalize
from elmo_hf.modeling_elmo import ElmoModel
from elmo_hf.packing import ElmoPacking
from elmo_hf.pooling import POOLINGS, pool_words
from elmo_hf.text.batching import check_batch_size, map_by_length

# sentences that are sorted by length together
WINDOW = 1024
# words, padding included, that the model reads at once
WORDS_AT_ONCE = 4096
DTYPES = ("float32", "float16")
# the process that has imported this module, unlike those it forks
IMPORTING_PROCESS = os.getpid()
# how torch's allocator, oneDNN, C++ and cuBLAS report that memory is exhausted
OUT_OF_MEMORY = (
    "out of memory",
    "can't allocate memory",
    "could not create a primitive",
    "bad_alloc",
    "ALLOC_FAILED",
)


class SentenceTooLongError(MemoryError):
    """A single sentence does not fit into memory."""

    def __init__(self, sentence: Sequence[str]):
        super().__init__(f"A sentence of {len(sentence)} words does not fit into memory; split it.")
        self.sentence = sentence


class SentenceEmbedder:
    """A loaded biLM that turns a stream of sentences into arrays, in the sentences' order."""

    def __init__(self, model: ElmoModel, batch_size: int | None = None):
        """`batch_size`: the most sentences that the model reads at once, by default 256."""
        self.batch_size = check_batch_size(batch_size)
        self._use(model)

    def _use(self, model: ElmoModel) -> None:
        self.model = model.prepare_for_inference()
        self.word_cache = WordCache(self.model, make_tokenizer(model))

    def __getstate__(self) -> dict[str, Any]:
        """What decides the vectors and nothing else: `datasets` makes a fingerprint of it."""
        return {name: value for name, value in vars(self).items() if name != "word_cache"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if os.getpid() != IMPORTING_PROCESS:
            # A forked process has none of the threads that its parent's OpenMP counts on, and
            # would wait for them for ever.
            torch.set_num_threads(1)
        vars(self).update(state)
        # a copy of a model comes unprepared
        self._use(self.model)

    def embed_stream(
        self,
        sentences: Iterable[Sequence[str]],
        layers: str | int = "all",
        pooling: str = "none",
        dtype: str = "float32",
    ) -> Iterator[np.ndarray]:
        """Yields one array per sentence, in order; there may be any number of sentences."""
        choice = self.check(layers, pooling, dtype)

        def work(batch: list[Sequence[str]]) -> list[np.ndarray]:
            return self._embed_batch(batch, choice, pooling)

        for array in map_by_length(work, sentences, WINDOW, WORDS_AT_ONCE, self.batch_size):
            yield array.astype(dtype, copy=False)

    def check(self, layers: str | int, pooling: str, dtype: str) -> str | int:
        """Refuses unknown layers, poolings and number formats; returns the layers."""
        count = self.model.config.num_hidden_layers + 1
        choices = {
            "layers": (str(layers), ("all", "mix", "top", "mean", *map(str, range(count)))),
            "pooling": (pooling, ("none", *POOLINGS)),
            "dtype": (dtype, DTYPES),
        }
        for name, (value, known) in choices.items():
            if value not in known:
                raise ValueError(f"`{name}` is {value!r} but must be one of {', '.join(known)}.")
        if layers == "mix" and not self.model.mixes:
            raise ValueError(f"This model has no mix, only {self.model.output_layer!r}.")
        return int(layers) if str(layers).isdigit() else layers

    def forget_words(self) -> None:
        """
        Empties the cache of word vectors, so that earlier sentences cannot change later results,
        not even in the last bit.
        """
        self.word_cache.clear()

    def _embed_batch(
        self, sentences: list[Sequence[str]], layers: str | int, pooling: str
    ) -> list[np.ndarray]:
        """A batch that does not fit into memory is tried again in halves."""
        try:
            with evaluating(self.model):
                return self._embed_at_once(sentences, layers, pooling)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            if len(sentences) == 1:
                raise SentenceTooLongError(sentences[0]) from error
        half = len(sentences) // 2
        parts = (sentences[:half], sentences[half:])
        return [array for part in parts for array in self._embed_batch(part, layers, pooling)]

    @torch.inference_mode()
    def _embed_at_once(
        self, sentences: list[Sequence[str]], layers: str | int, pooling: str
    ) -> list[np.ndarray]:
        lengths = [len(words) for words in sentences]
        device = self.model.device
        steps = torch.arange(max(lengths), device=device)
        mask = steps < torch.tensor(lengths, device=device).unsqueeze(1)
        # only a mix with `mix_layer_norm` looks at the boundaries
        packing = ElmoPacking.of(mask, to_the_end=self._normalizes(layers))
        rows, number = self.word_cache.look_up(list(chain.from_iterable(sentences)))
        streams, _ = self.model.read_rows(rows, number, packing, None)
        # the words sentence by sentence
        count = sum(lengths)
        place = torch.empty(count, dtype=torch.long, device=device)
        is_word = packing.tokens < count
        place[packing.tokens[is_word]] = is_word.nonzero().squeeze(1)
        chosen = self._choose(streams, layers, place)
        parts = chosen.float().cpu().split(lengths, dim=-2)
        if pooling != "none":
            parts = tuple(pool_words(words, None, pooling) for words in parts)
        return [part.numpy() for part in parts]

    def _choose(
        self, streams: list[torch.Tensor], layers: str | int, place: torch.Tensor
    ) -> torch.Tensor:
        """
        (layers, words, size) for all layers, each as when it is chosen alone, else (words, size);
        words are at `place`.
        """
        if layers == "all":
            # into one tensor: for a sequence of 35,000 words a copy takes half a gigabyte
            chosen = streams[0].new_empty(len(streams), len(place), streams[0].shape[1])
            for number, words in enumerate(chosen):
                [stream] = self.model.combine(streams, number)
                torch.index_select(stream, 0, place, out=words)
            return chosen
        if self._normalizes(layers):
            streams = normalize(streams)
        return self.model.combine(streams, layers)[0].index_select(0, place)

    def _normalizes(self, layers: str | int) -> bool:
        return layers == "mix" and self.model.config.mix_layer_norm


def is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(
        phrase in str(error) for phrase in OUT_OF_MEMORY
    )
