# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`_ElmoCharacterEncoder`: characters of words to vectors, under AllenNLP's names."""

from typing import Any

import torch
from torch import nn

from elmo_hf.characters import BEGIN_SENTENCE, END_SENTENCE, boundary_row
from elmo_hf.configuration_elmo import ElmoConfig
from elmo_hf.packing import distinct_rows, select_rows
from elmo_hf.standin.boundaries import add_sentence_boundary_token_ids, make_mask
from elmo_hf.standin.network import OurNetwork, TokenEncoderPart
from elmo_hf.standin.weights import fill, read_config


class HighwayWeights(nn.Module):
    """Where AllenNLP has the weights of its highway layers."""

    def __init__(self, width: int, num_layers: int):
        super().__init__()
        self._layers = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(num_layers))


class _ElmoCharacterEncoder(nn.Module):
    """Vectors of words that do not depend on their sentence."""

    def __init__(self, options_file: Any, weight_file: Any, requires_grad: bool = False):
        super().__init__()
        config = read_config(options_file, weight_file)
        self.output_dim = config.projection_size
        self.requires_grad = requires_grad
        self._weight_file = weight_file
        self._network = OurNetwork(TokenEncoderPart, config)
        with torch.device("meta"):
            self._make_modules(config)
        fill(self, self._network.pairs, options_file, weight_file)
        self.requires_grad_(requires_grad)

    def _make_modules(self, config: ElmoConfig) -> None:
        # in the order in which AllenNLP has its parameters
        self._char_embedding_weights = nn.Parameter(
            torch.empty(config.vocab_size, config.char_embedding_size)
        )
        self._convolutions = []
        for number, (width, count) in enumerate(config.char_filters):
            convolution = nn.Conv1d(config.char_embedding_size, count, width)
            self.add_module(f"char_conv_{number}", convolution)
            self._convolutions.append(convolution)
        self._highways = HighwayWeights(config.num_filters, config.num_highway_layers)
        if config.use_char_projection:
            self._projection = nn.Linear(config.num_filters, config.projection_size)

    def get_output_dim(self) -> int:
        return self.output_dim

    def forward(self, inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        """(batch, words, 50) character ids to vectors, with the two boundaries of each sentence."""
        if inputs.dim() != 3 or not len(inputs):
            raise ValueError(
                "Character ids are (batch, words, 50), of at least one sentence, but these are "
                f"{tuple(inputs.shape)}; make them with `batch_to_ids`."
            )
        width = inputs.shape[-1]
        ids, mask = add_sentence_boundary_token_ids(
            inputs,
            make_mask((inputs > 0).any(dim=-1)),
            torch.tensor(boundary_row(BEGIN_SENTENCE, width)),
            torch.tensor(boundary_row(END_SENTENCE, width)),
        )
        vectors = self._embed_rows(ids.flatten(0, 1))
        return {"mask": mask, "token_embedding": vectors.view(*ids.shape[:2], -1)}

    def _embed_rows(self, rows: torch.Tensor) -> torch.Tensor:
        """(words, characters) to (words, size); each distinct word is encoded once."""
        distinct, number = distinct_rows(rows.long())
        return select_rows(self._network(self, distinct), number)
