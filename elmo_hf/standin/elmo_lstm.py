# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`ElmoLstm`: the LSTMs and what they remember from call to call, under AllenNLP's names."""

from typing import Any

import torch
from torch import nn
from transformers.utils import logging

from elmo_hf.configuration_elmo import ElmoConfig
from elmo_hf.outputs_elmo import ElmoState
from elmo_hf.packing import ElmoPacking
from elmo_hf.standin.network import LayersPart, OurNetwork
from elmo_hf.standin.settings import starts_fresh
from elmo_hf.standin.weights import fill

logger = logging.get_logger(__name__)

NOTICE = (
    "As in AllenNLP, each call starts from the state in which the call before ended, so a sentence "
    "gets different vectors on the second call. For the same vectors every time, run the program "
    "with `python -m elmo_hf.standin --state fresh`, or call `reset_states()`."
)


class LstmWeights(nn.Module):
    """Where AllenNLP has the weights of one LSTM in one direction."""

    def __init__(self, config: ElmoConfig, go_forward: bool):
        super().__init__()
        self.input_size = self.hidden_size = config.projection_size
        self.cell_size = config.cell_size
        self.go_forward = go_forward
        gates = 4 * config.cell_size
        self.input_linearity = nn.Linear(config.projection_size, gates, bias=False)
        self.state_linearity = nn.Linear(config.projection_size, gates)
        if config.use_cell_projection:
            self.state_projection = nn.Linear(config.cell_size, config.projection_size, bias=False)


class ElmoLstm(nn.Module):
    """
    All layers in both directions.

    `_states` is what they remember, outputs (layers, sentences, 2 * hidden_size) and memory cells
    (layers, sentences, 2 * cell_size), or None.
    """

    def __init__(self, config: ElmoConfig, requires_grad: bool = False):
        super().__init__()
        self.input_size = self.hidden_size = config.projection_size
        self.cell_size = config.cell_size
        self.num_layers = config.num_hidden_layers
        self.requires_grad = requires_grad
        self.stateful = not starts_fresh()
        self._states: tuple[torch.Tensor, ...] | None = None
        self._network = OurNetwork(LayersPart, config)
        self.forward_layers, self.backward_layers = [], []
        for number in range(self.num_layers):
            forward, backward = (LstmWeights(config, forwards) for forwards in (True, False))
            self.add_module(f"forward_layer_{number}", forward)
            self.add_module(f"backward_layer_{number}", backward)
            self.forward_layers.append(forward)
            self.backward_layers.append(backward)

    @classmethod
    def from_files(
        cls, config: ElmoConfig, options_file: Any, weight_file: Any, requires_grad: bool
    ) -> "ElmoLstm":
        with torch.device("meta"):
            lstm = cls(config, requires_grad)
        fill(lstm, lstm._network.pairs, options_file, weight_file)
        lstm.requires_grad_(requires_grad)
        return lstm

    def forward(self, inputs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """(batch, tokens, size) to all layers, (layers, batch, tokens, 2 * hidden_size)."""
        batch, tokens, _ = inputs.shape
        # sentences without any token keep what is remembered of them
        live = mask.any(dim=1).nonzero().squeeze(1)
        layers = inputs.new_zeros(self.num_layers, batch * tokens, 2 * self.hidden_size)
        if len(live):
            packing = pack_tokens(mask, live)
            rows, start = inputs.flatten(0, 1)[packing.cells], self._start(batch, live, inputs)
            streams, state = self._network(self, rows, packing, start)
            self._remember(batch, live, state)
            read = torch.stack([packing.join(*pair) for pair in streams])
            layers = layers.to(read.dtype).index_copy(1, packing.cells, read)
        return layers.view(self.num_layers, batch, tokens, -1)

    def _start(self, batch: int, live: torch.Tensor, inputs: torch.Tensor) -> ElmoState | None:
        if not self.stateful or self._states is None:
            return None
        logger.warning_once(NOTICE)
        parts = [for_sentences(part.to(inputs), batch)[:, live] for part in self._states]
        return ElmoState(*(part.unflatten(2, (2, -1)).transpose(0, 1) for part in parts))

    def _remember(self, batch: int, live: torch.Tensor, state: ElmoState) -> None:
        parts = [part.detach().transpose(0, 1).flatten(2) for part in state.values()]
        before = self._states or [part[:, :0] for part in parts]
        states = []
        for old, new in zip(before, parts, strict=True):
            states.append(for_sentences(old.to(new), batch).index_copy(1, live, new))
        self._states = tuple(states)

    def reset_states(self, mask: torch.Tensor | None = None) -> None:
        """Forgets everything, or what is remembered of the sentences where `mask` is 1."""
        if mask is None or self._states is None:
            self._states = None
            return
        known = self._states[0].shape[1]
        if len(mask) != known:
            raise ValueError(
                f"`mask` is of {len(mask)} sentences but the states are of {known} sentences."
            )
        kept = (1 - mask.float()).view(1, -1, 1)
        self._states = tuple(part * kept.to(part) for part in self._states)


def for_sentences(part: torch.Tensor, batch: int) -> torch.Tensor:
    """A part of the state with zeros for sentences that it has nothing of yet."""
    return nn.functional.pad(part, (0, 0, 0, max(0, batch - part.shape[1])))


def pack_tokens(mask: torch.Tensor, live: torch.Tensor) -> ElmoPacking:
    """The packing of the tokens at the beginning of each live sentence; there is nothing to add."""
    lengths = mask.sum(dim=1).long()[live].cpu()
    order = lengths.argsort(descending=True, stable=True)
    ordered = lengths[order]
    is_read = torch.arange(int(ordered[0])).unsqueeze(1) < ordered
    batch_sizes = is_read.sum(dim=1)
    time, rank = is_read.nonzero(as_tuple=True)
    starts = batch_sizes.cumsum(0) - batch_sizes
    reverse = starts[ordered[rank] - 1 - time] + rank
    cells = live.cpu()[order[rank]] * mask.shape[1] + time
    unused = cells[:0]
    indices = (order, cells, unused, unused, reverse, cells, unused, unused)
    return ElmoPacking(batch_sizes.tolist(), *(index.to(mask.device) for index in indices))
