# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`Elmo`, `ElmoTokenEmbedder` and `batch_to_ids`, as AllenNLP had them."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import nn

from elmo_hf.characters import DEFAULT_WIDTH
from elmo_hf.standin.bilm import _ElmoBiLm
from elmo_hf.standin.boundaries import remove_sentence_boundaries
from elmo_hf.standin.errors import ConfigurationError
from elmo_hf.standin.indexer import ELMoCharacterMapper, padded
from elmo_hf.standin.scalar_mix import ScalarMix


class Elmo(nn.Module):
    """Representations of words: mixes of the layers of a biLM."""

    def __init__(
        self,
        options_file: Any,
        weight_file: Any,
        num_output_representations: int,
        requires_grad: bool = False,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        vocab_to_cache: list[str] | None = None,
        keep_sentence_boundaries: bool = False,
        scalar_mix_parameters: list[float] | None = None,
        module: Any = None,
    ):
        super().__init__()
        if module is None:
            module = _ElmoBiLm(options_file, weight_file, requires_grad, vocab_to_cache)
        elif options_file is not None or weight_file is not None:
            raise ConfigurationError("Give either `module` or the files, not both.")
        self._elmo_lstm = module
        self._has_cached_vocab = vocab_to_cache is not None
        self._keep_sentence_boundaries = keep_sentence_boundaries
        self._dropout = nn.Dropout(p=dropout)
        self._scalar_mixes = []
        for number in range(num_output_representations):
            mix = ScalarMix(
                self._elmo_lstm.num_layers,
                do_layer_norm=do_layer_norm,
                initial_scalar_parameters=scalar_mix_parameters,
                trainable=scalar_mix_parameters is None,
            )
            self.add_module(f"scalar_mix_{number}", mix)
            self._scalar_mixes.append(mix)

    def get_output_dim(self) -> int:
        return self._elmo_lstm.get_output_dim()

    def forward(
        self, inputs: torch.Tensor, word_inputs: torch.Tensor | None = None
    ) -> dict[str, Any]:
        """
        (..., words, 50) character ids, and for cached words their numbers (..., words), to
        `elmo_representations`, a list of (..., words, size), and `mask` (..., words).
        """
        shape = inputs.shape[:-1]
        if inputs.dim() > 3:
            inputs = inputs.flatten(0, -3)
        if word_inputs is not None:
            if self._has_cached_vocab:
                shape = word_inputs.shape
                word_inputs = word_inputs.flatten(0, -2)
            else:
                word_inputs = None
        read = self._elmo_lstm(inputs, word_inputs)
        mask, representations = read["mask"], []
        for number in range(len(self._scalar_mixes)):
            # by its name: a copy of a module may have another one there than in the list
            mixed = getattr(self, f"scalar_mix_{number}")(read["activations"], read["mask"])
            if not self._keep_sentence_boundaries:
                mixed, mask = remove_sentence_boundaries(mixed, read["mask"])
            representations.append(self._dropout(mixed))
        if len(shape) > 2:
            mask = mask.view(*shape[:-1], -1)
            representations = [part.view(*mask.shape, -1) for part in representations]
        return {"elmo_representations": representations, "mask": mask}


class ElmoTokenEmbedder(nn.Module):
    """One representation of each word, projected if `projection_dim` is given."""

    def __init__(
        self,
        options_file: Any,
        weight_file: Any,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        requires_grad: bool = False,
        projection_dim: int | None = None,
        vocab_to_cache: list[str] | None = None,
        scalar_mix_parameters: list[float] | None = None,
    ):
        super().__init__()
        self._elmo = Elmo(
            options_file,
            weight_file,
            1,
            do_layer_norm=do_layer_norm,
            dropout=dropout,
            requires_grad=requires_grad,
            vocab_to_cache=vocab_to_cache,
            scalar_mix_parameters=scalar_mix_parameters,
        )
        self.output_dim = self._elmo.get_output_dim()
        self._projection: nn.Linear | None = None
        if projection_dim:
            self._projection = nn.Linear(self.output_dim, projection_dim)
            self.output_dim = projection_dim

    def get_output_dim(self) -> int:
        return self.output_dim

    def forward(
        self, inputs: torch.Tensor, word_inputs: torch.Tensor | None = None
    ) -> torch.Tensor:
        representation = self._elmo(inputs, word_inputs)["elmo_representations"][0]
        return representation if self._projection is None else self._projection(representation)


def batch_to_ids(batch: Iterable[Sequence[str]]) -> torch.Tensor:
    """Character ids of sentences, (sentences, words, 50); a string is read letter by letter."""
    mapper = ELMoCharacterMapper()
    sentences = [[mapper.convert_word_to_char_ids(word) for word in words] for words in batch]
    longest = max(map(len, sentences), default=0)
    if not sentences:
        return torch.zeros(0, 0, DEFAULT_WIDTH, dtype=torch.long)
    return torch.stack([padded(rows, longest) for rows in sentences])
