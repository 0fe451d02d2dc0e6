# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The parts of ELMo's network in reading order: a word's characters, a direction, a layer, a mix.

Inside the model there is no padding. The live tokens of a batch lie in two streams, one per reading
direction, time step by time step and longest sentence first, so that each step multiplies only the
rows still alive (`ElmoPacking`). Each distinct word of a batch is encoded once, and only as many of
its characters as can matter. The models made of these parts are in `modeling_elmo`.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import cast

import torch
from torch import nn
from transformers.modeling_layers import GradientCheckpointingLayer

from .character_tables import make_tables, pool_characters
from .characters import PADDING, VOCAB_SIZE
from .configuration_elmo import ElmoConfig
from .fast_inference import (
    CharacterTables,
    PackedWeight,
    PairedWeights,
    SingleWeights,
    copy_recurrent,
    pack,
    read_streams,
    runs_plainly,
    tabulate,
    usable,
)
from .fast_training import BothDirections

# Words of about one length that are convolved together on a CPU.
WORDS_AT_ONCE = 128


@dataclass
class ElmoPacking:
    """
    Where the live tokens of a padded batch stand in the streams the LSTMs read.

    A stream lists the first token of every sentence, then the second of every sentence that has
    one, and so on, longest sentence first, with `<S>` and `</S>`. The backward stream does the same
    with each sentence turned round, so both directions have as many live rows at each step.
    """

    # live rows at each time step
    batch_sizes: list[int]
    # (batch,) the sentences, longest first
    order: torch.Tensor
    # (words,) place of each live word in the flattened (batch, words) grid
    words: torch.Tensor
    # (tokens,) what stands at each place of the forward stream: the number of a live word, or
    # len(words) for `<S>` and len(words) + 1 for `</S>`
    tokens: torch.Tensor
    # (tokens,) what stands there in the backward stream
    backward_tokens: torch.Tensor
    # (tokens,) the same token's place in the backward stream; applied twice it changes nothing
    reverse: torch.Tensor
    # (tokens,) the same token's place in the flattened (batch, words + 2) grid with the boundaries
    cells: torch.Tensor
    # (pairs,) all places whose sentence goes on, and the place of the token that comes next
    current: torch.Tensor
    following: torch.Tensor

    @classmethod
    def of(cls, mask: torch.Tensor, to_the_end: bool = True) -> "ElmoPacking":
        """
        The packing of the words where `mask` (batch, words) is set; padding may be anywhere.

        The last token of a stream, forward `</S>` and backward `<S>`, tells nothing of the words.
        Not `to_the_end`, it is not read, and what the places of `<S>` give is of no meaning.
        """
        # On the host: the time loop needs the sizes there, and the arithmetic is tiny.
        device, mask = mask.device, mask.cpu()
        num_sentences, width = mask.shape
        lengths = mask.sum(dim=1)
        words = mask.flatten().nonzero().squeeze(1)
        order = lengths.argsort(descending=True, stable=True)
        lasts = lengths[order] + 1  # the time of `</S>`
        ends = lasts if to_the_end else lasts - 1
        num_steps = int(ends[0]) + 1
        ascending = ends.flip(0).tolist()
        batch_sizes = [num_sentences - bisect_left(ascending, time) for time in range(num_steps)]

        time, rank = (torch.arange(num_steps).unsqueeze(1) <= ends).nonzero(as_tuple=True)
        sentence, last = order[rank], lasts[rank]  # (tokens,)
        starts = torch.tensor([0, *batch_sizes]).cumsum(0)
        is_begin, is_end = time == 0, time == last
        turned = last - time
        if not to_the_end:
            turned[is_begin] = 0
        reverse = starts[turned] + rank

        first_word = lengths.cumsum(0) - lengths
        is_word = ~(is_begin | is_end)
        tokens = first_word[sentence] + time - 1
        tokens[is_begin], tokens[is_end] = len(words), len(words) + 1
        backward_tokens = tokens[reverse]
        backward_tokens[is_begin] = len(words) + 1

        # `<S>` stands just before its sentence's first word and `</S>` just after the last one
        numbers = torch.arange(width).expand_as(mask)
        first = numbers.masked_fill(~mask, width).amin(dim=1) if width else lengths
        last = numbers.masked_fill(~mask, -1).amax(dim=1) if width else lengths - 1
        columns = torch.zeros_like(time)
        columns[is_begin] = first.masked_fill(lengths == 0, 0)[sentence[is_begin]]
        columns[is_end] = last[sentence[is_end]] + 2
        columns[is_word] = words[tokens[is_word]] % max(width, 1) + 1
        cells = sentence * (width + 2) + columns

        current = (time < ends[rank]).nonzero().squeeze(1)
        following = starts[time[current] + 1] + rank[current]

        indices = (order, words, tokens, backward_tokens, reverse, cells, current, following)
        return cls(batch_sizes, *(index.to(device) for index in indices))

    @classmethod
    def of_streams(cls, batch: int, steps: int, device: torch.device) -> "ElmoPacking":
        """The packing of rows that are streams already: nothing to add, nothing to turn round."""
        everyone = torch.arange(batch * steps, device=device)
        return cls(
            batch_sizes=[batch] * steps,
            order=everyone[:batch],
            words=everyone,
            tokens=everyone,
            backward_tokens=everyone,
            reverse=everyone,
            cells=everyone,
            current=everyone[:0],
            following=everyone[:0],
        )

    def join(self, forward: torch.Tensor, backward: torch.Tensor) -> torch.Tensor:
        """Both directions' streams side by side, as a forward stream."""
        return torch.cat([forward, backward[self.reverse.to(backward.device)]], dim=-1)

    def unpack(
        self, stream: torch.Tensor, grid_shape: torch.Size, boundaries: bool
    ) -> torch.Tensor:
        """A forward stream (tokens, size) as (batch, words, size), zeros where there is no word."""
        batch, words = grid_shape
        if boundaries:
            grid = stream.new_zeros(batch * (words + 2), stream.shape[1])
            return grid.index_copy(0, self.cells, stream).view(batch, words + 2, -1)
        is_word = self.tokens < len(self.words)
        grid = stream.new_zeros(batch * words, stream.shape[1])
        places = self.words[self.tokens[is_word]]
        return grid.index_copy(0, places, stream[is_word]).view(batch, words, stream.shape[1])


def row_hashes(rows: torch.Tensor) -> torch.Tensor:
    """A number for each row of character ids: polynomials that wrap around at 64 bits."""
    # the base is odd and has no other meaning
    powers = [pow(0x9E3779B97F4A7C15, power, 1 << 64) for power in range(1, rows.shape[-1] + 1)]
    signed = [power - (1 << 64) if power >> 63 else power for power in powers]
    return ((rows + 1) * torch.tensor(signed, device=rows.device)).sum(dim=-1)


def distinct_rows(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """
    The distinct rows of `rows` (n, characters), and for each row its number among them.

    Sorting one hash a row is far cheaper than sorting rows. Whether two different rows share a hash
    is checked, and then every row counts as distinct, so the result is always right.
    """
    hashes = row_hashes(rows)
    values, number = hashes.unique(return_inverse=True)
    everyone = torch.arange(len(rows), device=rows.device)
    distinct = rows[torch.empty_like(values).scatter_(0, number, everyone)]
    if torch.equal(distinct[number], rows):
        return distinct, number
    return rows, everyone


def take(rows: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """`rows[index]`, with a cheaper gradient."""
    return nn.functional.embedding(index, rows)


class ElmoLinear(nn.Linear):
    """
    A linear layer that knows what it is for, and may have a packed copy of its weight.

    transformers initialises only the leaves of a model outside its own package, never the module
    that holds them, so the leaf itself must know how it starts.
    """

    packed: PackedWeight | None = None

    def __init__(self, in_features: int, out_features: int, role: str, bias: bool = True):
        self.role = role
        super().__init__(in_features, out_features, bias=bias)

    def prepare(self, wanted: bool):
        """Makes or drops the packed copy."""
        # the recurrent weights and the projections are copied by the layer, for both directions
        wanted = wanted and self.role not in ("recurrent", "cell_projection")
        self.packed = pack(self.weight) if wanted else None

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        packed = usable(self.packed, self.weight)
        if packed is None or len(input) >= PackedWeight.MANY_ROWS:
            return super().forward(input)
        return packed(input, self.bias)


def has_hooks(module: nn.Module) -> bool:
    """Whether something other than the module's own `forward` runs when it is called."""
    return bool(
        "forward" in vars(module)
        or module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )


class ElmoHighway(nn.Module):
    """y = g * relu(T x) + (1 - g) * x with g = sigmoid(C x); bilm-tf calls this gate "carry"."""

    def __init__(self, width: int):
        super().__init__()
        self.carry = ElmoLinear(width, width, role="carry")
        self.transform = ElmoLinear(width, width, role="transform")

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(self.carry(hidden))
        transformed = torch.relu(self.transform(hidden))
        # under autocast only the products are in low precision
        return torch.lerp(hidden.to(transformed.dtype), transformed, gate)


class ElmoTokenEncoder(nn.Module):
    """A word's characters -> convolutions -> maximum over positions -> highways -> projection."""

    def __init__(self, config: ElmoConfig):
        super().__init__()
        size, filters = config.char_embedding_size, config.char_filters
        self.char_embeddings = nn.Embedding(config.vocab_size, size, padding_idx=0)
        self.convolutions = nn.ModuleList(nn.Conv1d(size, count, width) for width, count in filters)
        self.widest_filter = max(width for width, _ in filters)
        self.activation = torch.tanh if config.char_activation == "tanh" else torch.relu
        highways = range(config.num_highway_layers)
        self.highways = nn.ModuleList(ElmoHighway(config.num_filters) for _ in highways)
        self.projection = None
        # all published models have it; bilm-tf leaves it out where the filters have this width
        if config.use_char_projection:
            role = "char_projection"
            self.projection = ElmoLinear(config.num_filters, config.projection_size, role=role)
        self.tables: CharacterTables | None = None

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Vectors (words, projection_size) of rows of character ids, (words, characters)."""
        # Past the longest word there is only padding. One window of nothing but padding stays for
        # every filter, because the maximum may be there; more of them would only repeat it. Short
        # words go together, so that few of them are as long as the longest beside them.
        places = torch.arange(1, rows.shape[1] + 1, device=rows.device)
        lengths, order = ((rows != PADDING) * places).amax(dim=1).sort()
        # a GPU would rather do all at once
        size = WORDS_AT_ONCE if rows.device.type == "cpu" else len(rows)
        tables = self.current_tables()
        groups = [
            (rows[some], int(ascending[-1]))
            for some, ascending in zip(order.split(size), lengths.split(size), strict=True)
        ]
        if tables is None:
            trimmed = [group[:, : longest + self.widest_filter] for group, longest in groups]
            pooled = torch.cat([self.pool(self.char_embeddings(group)) for group in trimmed])
        else:
            biases = [cast(torch.Tensor, conv.bias) for conv in self.convolutions]
            pooled = self.activation(pool_characters(tables, biases, VOCAB_SIZE, groups))
        return self.project(take(pooled, order.argsort()))

    def encode_embedded(self, embedded: torch.Tensor) -> torch.Tensor:
        """The same from embedded characters, (words, characters, char_embedding_size)."""
        return self.project(self.pool(embedded))

    def pool(self, embedded: torch.Tensor) -> torch.Tensor:
        """(words, characters, char_embedding_size) -> (words, num_filters)."""
        channels = embedded.transpose(1, 2)
        # pool before the activation: relu and tanh are monotonic, so the result is the same
        pooled = [convolution(channels).amax(dim=-1) for convolution in self.convolutions]
        return self.activation(torch.cat(pooled, dim=-1))

    def project(self, hidden: torch.Tensor) -> torch.Tensor:
        """(words, num_filters) -> (words, projection_size)."""
        for highway in self.highways:
            hidden = highway(hidden)
        return hidden if self.projection is None else self.projection(hidden)

    def prepare(self, wanted: bool):
        """Makes or drops the tables that stand for the convolutions."""
        self.tables = tabulate(*self.table_weights()) if wanted else None

    def current_tables(self) -> list[torch.Tensor] | None:
        """The prepared tables, or new ones; None where they cannot stand for the convolutions."""
        weights = self.table_weights()
        prepared = usable(self.tables, *weights)
        if prepared is not None:
            return prepared.tables
        if not weights or not runs_plainly(*weights):
            return None
        return make_tables(weights[0], weights[1:])

    def table_weights(self) -> list[torch.Tensor]:
        """What the tables are made of; nothing when an adapter stands in a module's place."""
        modules = [self.char_embeddings, *self.convolutions]
        if any(type(module) not in (nn.Embedding, nn.Conv1d) for module in modules):
            return []
        return [cast(torch.Tensor, module.weight) for module in modules]


class ElmoLstmCell(nn.Module):
    """
    An LSTM in one direction, with clipped memory cell and clipped, projected output.

    The gates lie in the order input, forget, output, candidate: one sigmoid serves the first three.
    """

    def __init__(self, config: ElmoConfig):
        super().__init__()
        size, width = config.cell_size, config.projection_size
        self.cell_size = size
        self.cell_clip = config.cell_clip
        # as in TensorFlow, what is not projected is not clipped either
        self.projection_clip = config.projection_clip if config.use_cell_projection else None
        # the bias sits on the input side, whose product is made for all time steps at once
        self.input_linear = ElmoLinear(width, 4 * size, role="gates")
        self.recurrent_linear = ElmoLinear(width, 4 * size, role="recurrent", bias=False)
        self.projection = None
        # all published models have it; bilm-tf leaves it out where the cell has this width
        if config.use_cell_projection:
            self.projection = ElmoLinear(size, width, role="cell_projection", bias=False)

    def forward(
        self,
        inputs: torch.Tensor,
        batch_sizes: list[int],
        state: tuple[torch.Tensor, torch.Tensor] | None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """
        Reads a stream from what `input_linear` made of it, (tokens, 4 * cell_size), and the
        state, (1, batch, projection_size) and (1, batch, cell_size), or zeros; returns its outputs
        as a stream, and the state of each sentence after its last token.
        """
        output, cell = (None, None) if state is None else (part[0] for part in state)
        outputs, ended = [], []
        for gates, alive in zip(inputs.split(batch_sizes), batch_sizes, strict=True):
            if output is not None and cell is not None:
                if alive < len(output):
                    ended.append((output[alive:], cell[alive:]))
                    output, cell = output[:alive], cell[:alive]
                gates = gates + self.recurrent_linear(output)  # (alive, 4 * cell_size)
            output, cell = self.advance(gates, cell)
            outputs.append(output)
        # sentences end shortest first, and the shortest comes last
        finals = zip((output, cell), *reversed(ended), strict=True)
        final_output, final_cell = (torch.cat(parts).unsqueeze(0) for parts in finals)
        return torch.cat(outputs).unsqueeze(0), final_output, final_cell

    def advance(
        self, gates: torch.Tensor, cell: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One step from what is under the gates, (rows, 4 * cell_size): output and memory cell."""
        sigmoids, candidate = gates.split([3 * self.cell_size, self.cell_size], dim=1)
        input_gate, forget_gate, output_gate = torch.sigmoid(sigmoids).chunk(3, dim=1)
        kept = 0.0 if cell is None else forget_gate * cell
        cell = input_gate * torch.tanh(candidate) + kept
        if self.cell_clip is not None:
            cell = cell.clamp(-self.cell_clip, self.cell_clip)
        output = output_gate * torch.tanh(cell)  # (rows, cell_size)
        if self.projection is not None:
            output = self.projection(output)  # (rows, projection_size)
        if self.projection_clip is not None:
            output = output.clamp(-self.projection_clip, self.projection_clip)
        return output, cell


class ElmoLayer(GradientCheckpointingLayer):
    """One LSTM per direction. They never see each other: they meet only in the hidden states."""

    def __init__(self, config: ElmoConfig, layer_index: int):
        super().__init__()
        self.forward_cell = ElmoLstmCell(config)
        self.backward_cell = ElmoLstmCell(config)
        # all published models have skip connections; bilm-tf's own test fixture has not
        self.use_skip_connection = config.use_skip_connections and layer_index > 0
        self.dropout = nn.Dropout(config.hidden_dropout)
        # fast copies of weights, by the directions they serve
        self.copies: dict[tuple[int, ...], PairedWeights | SingleWeights] = {}

    def forward(
        self,
        forward_rows: torch.Tensor,
        backward_rows: torch.Tensor,
        places: tuple[torch.Tensor | None, torch.Tensor | None],
        batch_sizes: list[int],
        state: tuple[torch.Tensor, torch.Tensor] | None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """
        Reads each direction's stream, its `rows[places]`, or its rows themselves; returns the two
        streams it makes of them, and the state after them: (2, batch, projection_size) and
        (2, batch, cell_size), as the one given.
        """
        if self.training and self.dropout.p:
            # a mask for every token, not one for every distinct word; the skip connection adds what
            # is left, as in bilm-tf
            forward_rows, backward_rows = (
                self.dropout(rows if index is None else take(rows, index))
                for rows, index in zip((forward_rows, backward_rows), places, strict=True)
            )
            places = (None, None)
        rows = (forward_rows, backward_rows)
        weights = self.plain_weights() if self.training else None
        if weights is not None and runs_plainly(forward_rows, *weights):
            streams, outputs, memories = self.read_both(weights, rows, places, batch_sizes, state)
        else:
            read = [
                self.read(directions, copy, rows, places, batch_sizes, state)
                for directions, copy in self.usable_copies().items()
            ]
            streams, outputs, memories = (torch.cat(parts) for parts in zip(*read, strict=True))
        if self.use_skip_connection:
            # added to what is handed on, never to what the LSTMs themselves remember
            return streams[0] + forward_rows, streams[1] + backward_rows, outputs, memories
        return streams[0], streams[1], outputs, memories

    def read(
        self,
        directions: tuple[int, ...],
        copy: PairedWeights | SingleWeights | None,
        rows: tuple[torch.Tensor, torch.Tensor],
        places: tuple[torch.Tensor | None, torch.Tensor | None],
        batch_sizes: list[int],
        state: tuple[torch.Tensor, torch.Tensor] | None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The same for one direction, or for both by their fast copy; the axis in front counts."""
        cells = [(self.forward_cell, self.backward_cell)[direction] for direction in directions]
        streams = [rows[direction] for direction in directions]
        index = [places[direction] for direction in directions]
        if state is not None:
            state = (state[0][list(directions)], state[1][list(directions)])
        if copy is None:
            # each distinct row is multiplied once, however often it stands in the stream
            inputs = cells[0].input_linear(streams[0])
            return cells[0](inputs if index[0] is None else inputs[index[0]], batch_sizes, state)
        linears = [cell.input_linear for cell in cells]
        clips = (cells[0].cell_clip, cells[0].projection_clip)
        return read_streams(linears, streams, index, batch_sizes, state, copy, *clips)

    def read_both(
        self,
        weights: list[torch.Tensor],
        rows: tuple[torch.Tensor, torch.Tensor],
        places: tuple[torch.Tensor | None, torch.Tensor | None],
        batch_sizes: list[int],
        state: tuple[torch.Tensor, torch.Tensor] | None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The same for both directions, in training."""
        streams = [
            some if index is None else take(some, index)
            for some, index in zip(rows, places, strict=True)
        ]
        clips = (self.forward_cell.cell_clip, self.forward_cell.projection_clip)
        return BothDirections.apply(
            *streams, *(state or (None, None)), batch_sizes, clips, *weights
        )

    def plain_weights(self) -> list[torch.Tensor] | None:
        """
        For each direction input weight, bias, recurrent weight and projection; None when an
        adapter or a hook stands in a module's place.
        """
        weights = []
        for cell in (self.forward_cell, self.backward_cell):
            linears = (cell.input_linear, cell.recurrent_linear, cell.projection)
            for linear in linears:
                if linear is None:
                    continue
                if type(linear) is not ElmoLinear or has_hooks(linear):
                    return None
                weights += [weight for weight in (linear.weight, linear.bias) if weight is not None]
        return weights

    def prepare(self, wanted: bool):
        """Makes or drops the fast copies of the weights."""
        weights = self.recurrent_weights()
        self.copies = copy_recurrent(*weights) if wanted and weights is not None else {}

    def usable_copies(self) -> dict[tuple[int, ...], PairedWeights | SingleWeights | None]:
        """The directions that are read together, and their fast copy, if there is a usable one."""
        weights = self.recurrent_weights()
        if (
            weights is not None
            and self.copies
            and all(
                usable(copy, *(part[d] for part in weights if part for d in directions))
                for directions, copy in self.copies.items()
            )
        ):
            return {**self.copies}
        return {(0,): None, (1,): None}

    def recurrent_weights(self) -> tuple[list[torch.Tensor], list[torch.Tensor]] | None:
        """Recurrent weights and projections; None when an adapter stands in a module's place."""
        cells = (self.forward_cell, self.backward_cell)
        recurrent = [cell.recurrent_linear for cell in cells]
        projections = [cell.projection for cell in cells if cell.projection is not None]
        if not all(isinstance(linear, ElmoLinear) for linear in (*recurrent, *projections)):
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
