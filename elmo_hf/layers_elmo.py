# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The parts of ELMo's network in reading order: a word's characters, a direction, a layer, a mix.

How a layer's LSTMs are read is chosen in `recurrence`; the models made of these parts are in
`bilm_elmo`, `modeling_elmo` and `language_model_elmo`.
"""

from collections.abc import Callable
from typing import cast

import torch
from torch import nn
from transformers.modeling_layers import GradientCheckpointingLayer

from .character_tables import make_tables, pool_characters
from .characters import PADDING
from .configuration_elmo import ElmoConfig
from .initial_weights import glorot, highway_gate, lstm_gates, scaled_normal
from .packing import row_hashes, select_rows
from .prepared_weights import (
    CharacterTables,
    PackedWeight,
    copy_convolutions,
    copy_linear,
    is_plain_cpu,
    usable_copy,
)
from .private_interfaces import has_hooks
from .recurrence import read_layer
from .recurrence_interface import LayerInput
from .recurrence_prepared import PairedWeights, SingleWeights, copy_recurrent

# Words of about one length that are convolved together on a CPU.
WORDS_AT_ONCE = 128


class ElmoLinear(nn.Linear):
    """
    A linear layer that knows how its weights start.

    transformers initialises only the leaves of a model outside its own package, never the module
    that holds them, so the leaf itself must know.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        start: Callable[[nn.Linear], None],
        bias: bool = True,
    ):
        self.start = start
        super().__init__(in_features, out_features, bias=bias)


class PackedLinear(ElmoLinear):
    """A linear layer that may have a packed copy of its weight, for inference on a CPU."""

    packed: PackedWeight | None = None

    def prepare(self) -> None:
        self.packed = copy_linear(self.weight)

    def drop_copies(self) -> None:
        self.packed = None

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        packed = usable_copy(self.packed, self.weight)
        return super().forward(input) if packed is None else packed(input, self.bias)


class ElmoHighway(nn.Module):
    """y = g * relu(T x) + (1 - g) * x with g = sigmoid(C x); bilm-tf calls this gate "carry"."""

    def __init__(self, width: int):
        super().__init__()
        self.carry = PackedLinear(width, width, highway_gate)
        self.transform = PackedLinear(width, width, scaled_normal)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(self.carry(hidden))
        transformed = torch.relu(self.transform(hidden))
        # under autocast only the products are in low precision
        return torch.lerp(hidden.to(transformed.dtype), transformed, gate)


class ElmoTokenEncoder(nn.Module):
    """
    A word's characters -> convolutions -> maximum over positions -> highways -> projection.

    Where words have ids of their own, a vector by this id comes before the filters in front of the
    projection; without characters it is all there is.
    """

    def __init__(self, config: ElmoConfig):
        super().__init__()
        size, filters = config.char_embedding_size, config.char_filters
        self.vocab_size = config.vocab_size
        self.padding = config.char_markers[4] if config.char_markers else PADDING
        # a table of bytes is small; that of a dictionary may have thousands of characters
        self.uses_tables = config.char_ids == "bytes"
        self.word_embeddings = self.char_embeddings = None
        if config.word_vocab_size:
            count = config.word_vocab_size
            self.word_embeddings = nn.Embedding(count, config.word_embedding_size, padding_idx=0)
        if config.char_ids == "none":
            filters = []
        else:
            self.char_embeddings = nn.Embedding(config.vocab_size, size, padding_idx=0)
        self.convolutions = nn.ModuleList(nn.Conv1d(size, count, width) for width, count in filters)
        self.widest_filter = max((width for width, _ in filters), default=0)
        self.activation = torch.tanh if config.char_activation == "tanh" else torch.relu
        highways = range(config.num_highway_layers if filters else 0)
        self.highways = nn.ModuleList(ElmoHighway(config.num_filters) for _ in highways)
        self.projection = None
        # all published models have it; bilm-tf leaves it out where the filters have this width
        if config.use_char_projection:
            self.projection = PackedLinear(config.token_size, config.projection_size, scaled_normal)
        self.tables: CharacterTables | None = None

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Vectors (words, projection_size) of rows of ids, (words, row_width)."""
        words, characters = self.split_rows(rows)
        return self.project(words, None if characters is None else self.pool_rows(characters))

    def split_rows(self, rows: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """The words' own ids (words,) and those of their characters, as far as there are any."""
        if self.word_embeddings is None:
            return None, rows
        return rows[:, 0], None if self.char_embeddings is None else rows[:, 1:]

    def pool_rows(self, rows: torch.Tensor) -> torch.Tensor:
        """(words, num_filters) of rows of character ids, (words, characters)."""
        # Past the longest word there is only padding. One window of nothing but padding stays for
        # every filter, because the maximum may be there; more of them would only repeat it. Short
        # words go together, so that few of them are as long as the longest beside them.
        places = torch.arange(1, rows.shape[1] + 1, device=rows.device)
        lengths, order = ((rows != self.padding) * places).amax(dim=1).sort()
        # a GPU would rather do all at once
        size = WORDS_AT_ONCE if rows.device.type == "cpu" else len(rows)
        tables = self.current_tables()
        groups = [
            (rows[some], int(ascending[-1]))
            for some, ascending in zip(order.split(size), lengths.split(size), strict=True)
        ]
        if tables is None:
            embed = cast(nn.Embedding, self.char_embeddings)
            trimmed = [group[:, : longest + self.widest_filter] for group, longest in groups]
            pooled = torch.cat([self.pool(embed(group)) for group in trimmed])
        else:
            biases = [cast(torch.Tensor, conv.bias) for conv in self.convolutions]
            pooled = self.activation(pool_characters(tables, biases, self.vocab_size, groups))
        return select_rows(pooled, order.argsort())

    def encode_whole_rows(self, rows: torch.Tensor) -> torch.Tensor:
        """The same as `forward`, but no shape depends on the values."""
        words, characters = self.split_rows(rows)
        if characters is None:
            return self.project(words, None)
        return self.project(words, self.pool(cast(nn.Embedding, self.char_embeddings)(characters)))

    def encode_embedded(self, embedded: torch.Tensor) -> torch.Tensor:
        """The same from embedded characters, (words, characters, char_embedding_size)."""
        return self.project(None, self.pool(embedded))

    def pool(self, embedded: torch.Tensor) -> torch.Tensor:
        """(words, characters, char_embedding_size) -> (words, num_filters)."""
        channels = embedded.transpose(1, 2)
        # pool before the activation: relu and tanh are monotonic, so the result is the same
        pooled = [convolution(channels).amax(dim=-1) for convolution in self.convolutions]
        return self.activation(torch.cat(pooled, dim=-1))

    def project(self, words: torch.Tensor | None, pooled: torch.Tensor | None) -> torch.Tensor:
        """Ids of words (words,) and (words, num_filters) -> (words, projection_size)."""
        parts = []
        if words is not None and self.word_embeddings is not None:
            parts.append(self.word_embeddings(words))
        if pooled is not None:
            for highway in self.highways:
                pooled = highway(pooled)
            parts.append(pooled)
        # under autocast only the products are in low precision
        kind = parts[-1].dtype
        hidden = parts[0] if len(parts) == 1 else torch.cat([p.to(kind) for p in parts], dim=-1)
        return hidden if self.projection is None else self.projection(hidden)

    def prepare(self) -> None:
        self.tables = copy_convolutions(*self.table_weights())

    def drop_copies(self) -> None:
        self.tables = None

    def current_tables(self) -> list[torch.Tensor] | None:
        """The prepared tables, or new ones; None where they cannot replace the convolutions."""
        weights = self.table_weights()
        prepared = usable_copy(self.tables, *weights)
        if prepared is not None:
            return prepared.tables
        if not weights or not is_plain_cpu(*weights):
            return None
        return make_tables(weights[0], weights[1:])

    def table_weights(self) -> list[torch.Tensor]:
        """
        What the tables are made of; nothing when an adapter has replaced a module or somebody hooks
        into it, or when there would be too many characters.
        """
        if not self.uses_tables:
            return []
        modules = [self.char_embeddings, *self.convolutions]
        plain = (nn.Embedding, nn.Conv1d)
        if any(type(module) not in plain or has_hooks(module) for module in modules):
            return []
        return [cast(torch.Tensor, module.weight) for module in modules]


class ElmoLstmCell(nn.Module):
    """
    The weights of an LSTM in one direction, with clipped memory cell and clipped, projected output.

    The gates lie in the order input, forget, output, candidate: one sigmoid serves the first three.
    """

    def __init__(self, config: ElmoConfig):
        super().__init__()
        size, width = config.cell_size, config.projection_size
        self.cell_size = size
        self.cell_clip = config.cell_clip
        # as in TensorFlow, an output that is not projected is not clipped either
        self.projection_clip = config.projection_clip if config.use_cell_projection else None
        # the bias sits on the input side, whose product is made for all time steps at once
        self.input_linear = PackedLinear(width, 4 * size, lstm_gates)
        self.recurrent_linear = ElmoLinear(width, 4 * size, lstm_gates, bias=False)
        self.projection = None
        # all published models have it; bilm-tf leaves it out where the cell has this width
        if config.use_cell_projection:
            self.projection = ElmoLinear(size, width, glorot, bias=False)


class ElmoLayer(GradientCheckpointingLayer):
    """One LSTM per direction. They never see each other: they meet only in the hidden states."""

    def __init__(self, config: ElmoConfig, layer_index: int):
        super().__init__()
        self.forward_cell = ElmoLstmCell(config)
        self.backward_cell = ElmoLstmCell(config)
        # all published models have skip connections; bilm-tf's own test fixture has not
        self.use_skip_connection = config.use_skip_connections and layer_index > 0
        self.dropout = nn.Dropout(config.hidden_dropout)
        # of the prepared backend, by the directions that each copy serves
        self.copies: dict[tuple[int, ...], PairedWeights | SingleWeights] = {}

    def forward(
        self,
        forward_rows: torch.Tensor,
        backward_rows: torch.Tensor,
        positions: tuple[torch.Tensor | None, torch.Tensor | None],
        batch_sizes: list[int] | None,
        state: tuple[torch.Tensor, torch.Tensor] | None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """
        Reads a [`LayerInput`]; returns the streams of the two directions, and the state after them.
        """
        if self.training and self.dropout.p:
            # a mask for every token, not one for every distinct word; the skip connection adds what
            # is left, as in bilm-tf
            forward_rows, backward_rows = (
                self.dropout(rows if index is None else select_rows(rows, index))
                for rows, index in zip((forward_rows, backward_rows), positions, strict=True)
            )
            positions = (None, None)
        rows = (forward_rows, backward_rows)
        read = read_layer(self, LayerInput(rows, positions, batch_sizes, state))
        forward, backward = read.streams
        if self.use_skip_connection:
            # added to what is handed on, never to what the LSTMs themselves remember
            forward, backward = forward + forward_rows, backward + backward_rows
        return forward, backward, read.outputs, read.cells

    def prepare(self) -> None:
        weights = self.recurrent_weights()
        self.copies = {} if weights is None else copy_recurrent(*weights)

    def drop_copies(self) -> None:
        self.copies = {}

    def plain_weights(self) -> list[torch.Tensor] | None:
        """
        For each direction input weight, bias, recurrent weight and projection; None when an
        adapter has replaced a module or somebody hooks into it.
        """
        weights = []
        for cell in (self.forward_cell, self.backward_cell):
            for linear in (cell.input_linear, cell.recurrent_linear, cell.projection):
                if linear is None:
                    continue
                if type(linear) not in (ElmoLinear, PackedLinear) or has_hooks(linear):
                    return None
                weights += [weight for weight in (linear.weight, linear.bias) if weight is not None]
        return weights

    def recurrent_weights(self) -> tuple[list[torch.Tensor], list[torch.Tensor]] | None:
        """
        Recurrent weights and projections; None when an adapter has replaced a module or somebody
        hooks into it.
        """
        cells = (self.forward_cell, self.backward_cell)
        recurrent = [cell.recurrent_linear for cell in cells]
        projections = [cell.projection for cell in cells if cell.projection is not None]
        for linear in (*recurrent, *projections):
            if type(linear) is not ElmoLinear or has_hooks(linear):
                return None
        return [linear.weight for linear in recurrent], [linear.weight for linear in projections]


class ElmoScalarMix(nn.Module):
    """gamma * sum_j softmax(scalars)_j h_j, over the token layer and each biLSTM layer."""

    def __init__(self, config: ElmoConfig):
        super().__init__()
        self.scalars = nn.Parameter(torch.empty(config.num_hidden_layers + 1))
        self.gamma = nn.Parameter(torch.empty(1))

    def forward(self, layers: list[torch.Tensor]) -> torch.Tensor:
        weights = self.scalars.softmax(dim=0)
        mixed = torch.zeros_like(layers[0])
        for weight, layer in zip(weights, layers, strict=True):
            mixed = mixed + weight * layer
        return self.gamma * mixed


class ElmoWordVectors(nn.Module):
    """
    A vector of its own for each of a list of words, beside ELMo's; other words share one.

    The model sees characters only, so a word is known by the hash of its row.
    """

    hashes: torch.Tensor

    def __init__(self, config: ElmoConfig):
        super().__init__()
        count = config.num_word_vectors
        self.register_buffer("hashes", torch.zeros(count, dtype=torch.long))
        # the last row is for all other words
        self.embeddings = nn.Embedding(count + 1, config.word_vector_size)

    @torch.no_grad()
    def fill(self, rows: torch.Tensor, vectors: torch.Tensor):
        """Takes the vectors of words, given as rows of character ids, all different."""
        hashes, order = row_hashes(rows).sort()
        self.hashes.copy_(hashes)
        self.embeddings.weight[:-1] = vectors[order]
        self.embeddings.weight[-1] = vectors.mean(dim=0)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """(..., characters) -> (..., word_vector_size)."""
        hashes = row_hashes(rows)
        place = torch.searchsorted(self.hashes, hashes).clamp(max=len(self.hashes) - 1)
        known = self.hashes[place] == hashes
        return self.embeddings(place.where(known, len(self.hashes)))


def normalize(layers: list[torch.Tensor]) -> list[torch.Tensor]:
    """Zero mean and unit variance over all live tokens, boundaries included, as in AllenNLP."""
    return [nn.functional.layer_norm(layer, layer.shape, eps=1e-13) for layer in layers]
