# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`ElmoModel` of simple_elmo, with the results that its documentation describes."""

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmo_hf.conversion.building import add_softmax, load_converted
from elmo_hf.conversion.source import open_source
from elmo_hf.language_model_elmo import ElmoForPreTraining
from elmo_hf.modeling_elmo import ElmoModel as Network
from elmo_hf.outputs_elmo import ElmoState
from elmo_hf.standin.settings import starts_fresh
from elmo_hf.tokenization_elmo import ElmoTokenizer
from elmo_hf.word_vocabulary import BEGIN, END

LAYERS = ("average", "top", "all")


def divide_chunks(data: Sequence[Any], n: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(data), n):
        yield data[start : start + n]


def with_rows(part: torch.Tensor, count: int) -> torch.Tensor:
    """A part of the state with zeros for rows that it does not have yet."""
    return torch.cat([part, part.new_zeros(max(0, count - len(part)), *part.shape[1:])])


class ElmoModel:
    """Vectors of sentences, and words that would fit into them."""

    def __init__(self) -> None:
        self.batch_size: int | None = None
        self.max_chars: Any = None
        self.vector_size: int | None = None
        self.n_layers: int | None = None
        self.vocab: Any = None
        self.model: Network | ElmoForPreTraining | None = None
        self.logger = logging.getLogger(__name__)
        self._state: ElmoState | None = None

    def load(
        self,
        directory: str | os.PathLike,
        max_batch_size: int = 32,
        limit: int = 100,
        full: bool = False,
    ) -> str:
        """
        Reads the model of a folder or an archive, with `full` its softmax over words as well.
        `limit` is accepted; what it limits is not needed here.
        """
        if not os.path.exists(directory):
            raise SystemExit(f"Error: there is no folder or archive {os.fspath(directory)!r}.")
        # as simple_elmo, which has the softmax of a checkpoint only
        plain = Path(directory) / "model.hdf5"
        named = {"weight_file": plain} if plain.is_file() and not full else {}
        with open_source(os.fspath(directory), **named) as weights:
            if weights.dictionaries is not None:
                raise ValueError(
                    "simple_elmo reads models of characters only; convert this one with "
                    "`elmo-hf convert`."
                )
            bilm, _ = load_converted(weights)
            self.model = add_softmax(bilm, weights) if full else bilm
        if self.model is None:
            raise SystemExit(
                f"Error: {os.fspath(directory)!r} holds no softmax, which `full=True` needs."
            )
        self.model.prepare_for_inference()
        config = bilm.config
        self.batch_size = max_batch_size
        self.max_chars = config.max_characters_per_token
        self.vector_size = config.hidden_size
        self.n_layers = config.num_hidden_layers + 1
        self.vocab = getattr(self.model, "vocabulary", None)
        return "The model is now loaded."

    def get_elmo_vectors(
        self,
        texts: Sequence[Sequence[str]],
        warmup: bool = True,
        layers: str = "average",
        session: Any = None,
    ) -> np.ndarray:
        """
        (texts, words, size), or with `all` layers (texts, layers, words, size); zeros after the
        words of shorter sentences. With a `session`, the state of the last call is carried on.
        """
        batches = list(self._read(texts, warmup, layers, session))
        longest = max(map(len, texts))
        first = batches[0]
        vectors = np.zeros((len(texts), *first.shape[1:-2], longest, first.shape[-1]))
        done = 0
        for batch in batches:
            vectors[done : done + len(batch), ..., : batch.shape[-2], :] = batch
            done += len(batch)
        return vectors

    def get_elmo_vector_average(
        self,
        texts: Sequence[Sequence[str]],
        warmup: bool = True,
        layers: str = "average",
        session: Any = None,
    ) -> np.ndarray:
        """
        The mean of each sentence's words scaled to length 1, (texts, size), or with `all` layers
        (texts, layers, size), which have that length together; zeros for a sentence without words.
        """
        averages, done = [], 0
        for batch in self._read(texts, warmup, layers, session):
            for vectors in batch:
                words = vectors[..., : len(texts[done]), :]
                total = words.sum(axis=-2, dtype=np.float64)
                averages.append(total / (np.linalg.norm(total) or 1))
                done += 1
        return np.stack(averages)

    def _read(
        self, texts: Sequence[Sequence[str]], warmup: bool, layers: str, session: Any
    ) -> Iterator[np.ndarray]:
        """The chosen layers of each batch."""
        if layers not in LAYERS:
            raise ValueError(f"`layers` is {layers!r} but must be one of {', '.join(LAYERS)}.")
        model = self._loaded()
        if session is None:
            self._state = None
        bilm = model.elmo if isinstance(model, ElmoForPreTraining) else model
        chunks = list(divide_chunks(texts, self.batch_size or len(texts)))
        if warmup and not starts_fresh():
            self._read_batch(bilm, chunks[0])
        for chunk in chunks:
            read = torch.stack(self._read_batch(bilm, chunk), dim=1)
            if layers != "all":
                read = read[:, -1] if layers == "top" else read.mean(dim=1)
            yield read.numpy()

    @torch.no_grad()
    def _read_batch(
        self, bilm: Network, sentences: Sequence[Sequence[str]]
    ) -> tuple[torch.Tensor, ...]:
        """All layers; each row of a batch goes on where that row of the last batch ended."""
        count, state, rest = len(sentences), None, []
        if self._state is not None:
            known = [with_rows(part, count) for part in self._state.values()]
            state = ElmoState(*(part[:count] for part in known))
            # the rows that a smaller batch does not use keep theirs
            rest = [part[count:] for part in known]
        output = bilm(self._encode(sentences), state=state, output_hidden_states=True)
        if not starts_fresh():
            new = [*output.state.values()]
            parts = [torch.cat(pair) for pair in zip(new, rest, strict=True)] if rest else new
            self._state = ElmoState(*parts)
        return output.hidden_states

    def _encode(self, sentences: Sequence[Sequence[str]]) -> torch.Tensor:
        tokenizer = ElmoTokenizer(boundary_words=True, max_characters_per_token=self.max_chars)
        words = [list(sentence) for sentence in sentences]
        encoded = tokenizer(words, is_split_into_words=True, padding=True, return_tensors="pt")
        return encoded["input_ids"]

    @torch.no_grad()
    def get_elmo_substitutes(
        self, data: Sequence[str], topn: int = 3, nodelimiters: bool = True
    ) -> list[list[dict[str, Any]]]:
        """
        For each word of each sentence, a string of words, the `topn` words that fit best after
        those on its left (`forward`) and before those on its right (`backward`), the best first,
        with their numbers and logits.
        """
        model = self._loaded()
        if not isinstance(model, ElmoForPreTraining) or self.vocab is None:
            raise ValueError(
                "`get_elmo_substitutes` needs a model that was loaded with `full=True`, with its "
                "softmax and vocabulary."
            )
        found = []
        for sentence in data:
            words = sentence.split()
            output = model(self._encode([words]))
            both = (output.logits_forward[0], output.logits_backward[0])
            forward, backward = (self._best(logits, topn, nodelimiters) for logits in both)
            places = zip(words, forward, backward, strict=True)
            found.append([{"word": w, "forward": f, "backward": b} for w, f, b in places])
        return found

    def _best(
        self, logits: torch.Tensor, topn: int, nodelimiters: bool
    ) -> list[dict[str, list[Any]]]:
        """The best words of some places, from the logits (places, words of the vocabulary)."""
        logits = logits.clone()
        if nodelimiters:
            logits[:, [self.vocab.number(BEGIN), self.vocab.number(END)]] = float("-inf")
        values, numbers = logits.topk(topn)
        return [
            {
                "candidates": some,
                "candidate_words": [self.vocab.words[number] for number in some],
                "logp": [round(value, 4) for value in scores],
            }
            for some, scores in zip(numbers.tolist(), values.tolist(), strict=True)
        ]

    def _loaded(self) -> Network | ElmoForPreTraining:
        if self.model is None:
            raise ValueError("There is no model yet; call `load` first.")
        return self.model
