# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""ELMo (Peters et al. 2018, https://arxiv.org/abs/1802.05365): a character CNN under a deep biLSTM.

What is unusual here:
- `input_ids` is three-dimensional, (batch, words, characters). The model puts `<S>` and `</S>`
  around each sentence and takes them off again, so every public tensor is aligned with the words.
- Inside, there is no padding. The live tokens of a batch lie in two streams, one per reading
  direction, time step by time step and longest sentence first, so that each step multiplies only
  the rows still alive (`ElmoPacking`).
- Each distinct word of a batch is encoded once, and only as many of its characters as can matter.
- The LSTM's state is an argument and a result. Nothing is remembered between calls.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Self, cast

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import initialization as init
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import ModelOutput, SequenceClassifierOutput
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import can_return_tuple, logging

from .characters import BEGIN_SENTENCE, END_SENTENCE, PADDING, boundary_row
from .configuration_elmo import ElmoConfig
from .fast_inference import (
    CharacterTables,
    PackedWeight,
    PairedWeights,
    SingleWeights,
    copy_recurrent,
    pack,
    read_streams,
    tabulate,
    usable,
)

logger = logging.get_logger(__name__)

# Words of about one length that are convolved together on a CPU.
WORDS_AT_ONCE = 64


@dataclass
class ElmoState(ModelOutput):
    """
    What the LSTMs remember after each sentence; the third axis is the direction, forward first.

    outputs: what they gave out last, (batch, layers, 2, projection_size).
    cells: their memory cells, (batch, layers, 2, cell_size).
    """

    outputs: torch.Tensor | None = None
    cells: torch.Tensor | None = None

    def detach(self) -> "ElmoState":
        """The same state without its history, to carry it on in training."""
        return ElmoState(**{name: tensor.detach() for name, tensor in self.items()})


@dataclass
class ElmoModelOutput(ModelOutput):
    """
    last_hidden_state: one vector a word, (batch, words, hidden_size), by `config.output_layer`.
    hidden_states: the token layer beside itself, then each biLSTM layer; each of the same shape.
    representations: all of them, (batch, words, num_output_representations, hidden_size).
    state: the LSTMs' state after each sentence, for the next call of who wants it carried on.
    """

    last_hidden_state: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    representations: torch.Tensor | None = None
    state: ElmoState | None = None


@dataclass
class ElmoTokenClassifierOutput(ModelOutput):
    """
    loss: cross-entropy over the words whose label is not -100.
    logits: scores before the softmax, (batch, words, num_labels).
    hidden_states, state: as in [`ElmoModelOutput`].
    """

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    state: ElmoState | None = None


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
    # (tokens,) the same token's place in the backward stream; applied twice it changes nothing
    reverse: torch.Tensor
    # (tokens,) the same token's place in the flattened (batch, words + 2) grid with the boundaries
    cells: torch.Tensor

    @classmethod
    def of(cls, mask: torch.Tensor) -> "ElmoPacking":
        """The packing of the words where `mask` (batch, words) is set; padding may be anywhere."""
        # On the host: the time loop needs the sizes there, and the arithmetic is tiny.
        device, mask = mask.device, mask.cpu()
        num_sentences, width = mask.shape
        lengths = mask.sum(dim=1)
        words = mask.flatten().nonzero().squeeze(1)
        order = lengths.argsort(descending=True, stable=True)
        ends = lengths[order] + 1  # the time of `</S>`
        num_steps = int(ends[0]) + 1
        ascending = ends.flip(0).tolist()
        batch_sizes = [num_sentences - bisect_left(ascending, time) for time in range(num_steps)]

        time, rank = (torch.arange(num_steps).unsqueeze(1) <= ends).nonzero(as_tuple=True)
        sentence, end = order[rank], ends[rank]  # (tokens,)
        starts = torch.tensor([0, *batch_sizes]).cumsum(0)
        reverse = starts[end - time] + rank

        first_word = lengths.cumsum(0) - lengths
        is_begin, is_end = time == 0, time == end
        is_word = ~(is_begin | is_end)
        tokens = first_word[sentence] + time - 1
        tokens[is_begin], tokens[is_end] = len(words), len(words) + 1

        # `<S>` stands just before its sentence's first word and `</S>` just after the last one
        numbers = torch.arange(width).expand_as(mask)
        first = numbers.masked_fill(~mask, width).amin(dim=1) if width else lengths
        last = numbers.masked_fill(~mask, -1).amax(dim=1) if width else lengths - 1
        columns = torch.zeros_like(time)
        columns[is_begin] = first.masked_fill(lengths == 0, 0)[sentence[is_begin]]
        columns[is_end] = last[sentence[is_end]] + 2
        columns[is_word] = words[tokens[is_word]] % max(width, 1) + 1
        cells = sentence * (width + 2) + columns

        on_device = (index.to(device) for index in (order, words, tokens, reverse, cells))
        return cls(batch_sizes, *on_device)

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


def distinct_rows(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """
    The distinct rows of `rows` (n, characters), and for each row its number among them.

    Sorting one hash a row is far cheaper than sorting rows. Whether two different rows share a hash
    is checked, and then every row counts as distinct, so the result is always right.
    """
    # a polynomial hash that wraps around at 64 bits; the base is odd and has no other meaning
    powers = [pow(0x9E3779B97F4A7C15, power, 1 << 64) for power in range(1, rows.shape[1] + 1)]
    signed = [power - (1 << 64) if power >> 63 else power for power in powers]
    hashes = ((rows + 1) * torch.tensor(signed, device=rows.device)).sum(dim=1)
    values, number = hashes.unique(return_inverse=True)
    everyone = torch.arange(len(rows), device=rows.device)
    distinct = rows[torch.empty_like(values).scatter_(0, number, everyone)]
    if torch.equal(distinct[number], rows):
        return distinct, number
    return rows, everyone


def one_input(input_ids: torch.Tensor | None, inputs_embeds: torch.Tensor | None) -> torch.Tensor:
    """Whichever of the two was given."""
    if input_ids is not None and inputs_embeds is None:
        return input_ids
    if inputs_embeds is not None and input_ids is None:
        return inputs_embeds
    raise ValueError("Give exactly one of `input_ids` and `inputs_embeds`.")


def word_mask(given: torch.Tensor, attention_mask: torch.Tensor | None) -> torch.Tensor:
    """(batch, words): where there is a word. `given` is `input_ids` or `inputs_embeds`."""
    if attention_mask is None:
        return given.flatten(2).any(dim=-1)
    if attention_mask.shape != given.shape[:2]:
        raise ValueError(
            f"`attention_mask` has shape {tuple(attention_mask.shape)} but the input has "
            f"{tuple(given.shape[:2])} sentences and words."
        )
    return attention_mask.bool()


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
        packed = usable(self.packed, self.weight) if len(input) < PackedWeight.MANY_ROWS else None
        return super().forward(input) if packed is None else packed.matrix(input, self.bias)


class ElmoConvolution(nn.Conv1d):
    """
    A convolution over a word's characters, (words, channels, characters) as usual.

    torch's own is slow on a CPU for so few channels; one matrix product over all windows is not.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if input.device.type != "cpu" or torch.compiler.is_exporting():
            return super().forward(input)
        words, channels, _ = input.shape
        (width,) = self.kernel_size
        flat = input.transpose(1, 2).reshape(words, -1)
        windows = flat.unfold(1, width * channels, channels)  # (words, positions, width * channels)
        kernel = self.weight.transpose(1, 2).reshape(self.out_channels, -1)
        convolved = nn.functional.linear(windows.flatten(0, 1), kernel, self.bias)
        return convolved.view(words, -1, self.out_channels).transpose(1, 2)


class ElmoHighway(nn.Module):
    """y = g * relu(T x) + (1 - g) * x with g = sigmoid(C x); bilm-tf calls this gate "carry"."""

    def __init__(self, width: int):
        super().__init__()
        self.carry = ElmoLinear(width, width, role="carry")
        self.transform = ElmoLinear(width, width, role="transform")

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(self.carry(hidden))
        return torch.lerp(hidden, torch.relu(self.transform(hidden)), gate)


class ElmoTokenEncoder(nn.Module):
    """A word's characters -> convolutions -> maximum over positions -> highways -> projection."""

    def __init__(self, config: ElmoConfig):
        super().__init__()
        size, filters = config.char_embedding_size, config.char_filters
        self.char_embeddings = nn.Embedding(config.vocab_size, size, padding_idx=0)
        self.convolutions = nn.ModuleList(
            ElmoConvolution(size, count, width) for width, count in filters
        )
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
        tables = usable(self.tables, *self.table_weights())
        pooled = []
        for some, ascending in zip(order.split(size), lengths.split(size), strict=True):
            longest = int(ascending[-1])
            if tables is None:
                embedded = self.char_embeddings(rows[some, : longest + self.widest_filter])
                pooled.append(self.pool(embedded))
            else:
                biases = [cast(torch.Tensor, conv.bias) for conv in self.convolutions]
                pooled.append(self.activation(tables.pool(rows[some], longest, biases)))
        return self.project(torch.cat(pooled)[order.argsort()])

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

    def table_weights(self) -> list[torch.Tensor]:
        """What the tables are made of; nothing when an adapter stands in a module's place."""
        if type(self.char_embeddings) is not nn.Embedding:
            return []
        kernels = [conv.weight for conv in self.convolutions if isinstance(conv, ElmoConvolution)]
        if len(kernels) < len(self.convolutions):
            return []
        return [self.char_embeddings.weight, *kernels]


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
            sigmoids, candidate = gates.split([3 * self.cell_size, self.cell_size], dim=1)
            input_gate, forget_gate, output_gate = torch.sigmoid(sigmoids).chunk(3, dim=1)
            kept = 0.0 if cell is None else forget_gate * cell
            cell = input_gate * torch.tanh(candidate) + kept
            if self.cell_clip is not None:
                cell = cell.clamp(-self.cell_clip, self.cell_clip)
            output = output_gate * torch.tanh(cell)  # (alive, cell_size)
            if self.projection is not None:
                output = self.projection(output)  # (alive, projection_size)
            if self.projection_clip is not None:
                output = output.clamp(-self.projection_clip, self.projection_clip)
            outputs.append(output)
        # sentences end shortest first, and the shortest comes last
        finals = zip((output, cell), *reversed(ended), strict=True)
        final_output, final_cell = (torch.cat(parts).unsqueeze(0) for parts in finals)
        return torch.cat(outputs).unsqueeze(0), final_output, final_cell


class ElmoLayer(GradientCheckpointingLayer):
    """One LSTM per direction. They never see each other: they meet only in the hidden states."""

    def __init__(self, config: ElmoConfig, layer_index: int):
        super().__init__()
        self.forward_cell = ElmoLstmCell(config)
        self.backward_cell = ElmoLstmCell(config)
        # all published models have skip connections; bilm-tf's own test fixture has not
        self.use_skip_connection = config.use_skip_connections and layer_index > 0
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
        rows = (forward_rows, backward_rows)
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


def normalize(layers: list[torch.Tensor]) -> list[torch.Tensor]:
    """Zero mean and unit variance over all live tokens, boundaries included, as in AllenNLP."""
    return [nn.functional.layer_norm(layer, layer.shape, eps=1e-13) for layer in layers]


class ElmoPreTrainedModel(PreTrainedModel):
    """What all ELMo models share; weights start as in bilm-tf."""

    config: ElmoConfig
    config_class = ElmoConfig
    base_model_prefix = "elmo"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _no_split_modules = ["ElmoTokenEncoder", "ElmoLayer"]

    @torch.no_grad()
    def _init_weights(self, module: nn.Module):
        super()._init_weights(module)
        if isinstance(module, ElmoScalarMix):
            init.zeros_(module.scalars)
            init.ones_(module.gamma)
        elif isinstance(module, nn.Embedding):
            init.uniform_(module.weight, -1.0, 1.0)
            if not getattr(module.weight, "_is_hf_initialized", False):
                init.zeros_(module.weight[module.padding_idx])
        elif isinstance(module, nn.Conv1d):
            if self.config.char_activation == "relu":
                init.uniform_(module.weight, -0.05, 0.05)
            else:
                init.normal_(module.weight, std=module.weight[0].numel() ** -0.5)
        elif isinstance(module, ElmoLinear):
            self._init_linear(module)

    def _init_linear(self, linear: ElmoLinear):
        if linear.role in ("carry", "transform", "char_projection"):
            init.normal_(linear.weight, std=linear.in_features**-0.5)
            if linear.role == "carry":
                init.constant_(linear.bias, -2.0)
        elif linear.role == "cell_projection":
            init.xavier_uniform_(linear.weight)
        elif linear.role in ("gates", "recurrent"):
            # Glorot's bound for the matrix of both inputs, which TensorFlow keeps in one piece
            bound = (6 / (2 * linear.in_features + linear.out_features)) ** 0.5
            init.uniform_(linear.weight, -bound, bound)
            if linear.bias is not None:
                # TensorFlow adds this 1 to the forget gate at run time
                start = linear.bias.new_tensor([0.0, 1.0, 0.0, 0.0])
                init.copy_(linear.bias, start.repeat_interleave(linear.out_features // 4))

    def prepare_for_inference(self) -> Self:
        """
        Puts the model into `eval` mode and copies its weights for fast products on a CPU.

        The copies serve while gradients are off. They take as much memory again as the
        weights, are dropped by `train()`, and are passed over when a weight has changed or moved
        since: call this again then. Elsewhere than on a CPU in float32 nothing is copied.
        """
        self.eval()
        for module in self.modules():
            if isinstance(module, (ElmoLinear, ElmoLayer, ElmoTokenEncoder)):
                module.prepare(True)
        return self

    def train(self, mode: bool = True) -> Self:
        if mode:
            for module in self.modules():
                if isinstance(module, (ElmoLinear, ElmoLayer, ElmoTokenEncoder)):
                    module.prepare(False)
        return super().train(mode)

    def freeze_bilm(self):
        """Makes the biLM a fixed feature extractor: only the mixes and the heads go on learning."""
        self.base_model.token_encoder.requires_grad_(False)
        self.base_model.layers.requires_grad_(False)


class ElmoModel(ElmoPreTrainedModel):
    """
    The biLM, and the choice among its layers.

    `add_scalar_mix=False` is for heads that read the layers themselves; `last_hidden_state` is then
    the top layer.
    """

    def __init__(self, config: ElmoConfig, add_scalar_mix: bool = True):
        super().__init__(config)
        self.token_encoder = ElmoTokenEncoder(config)
        layers = range(config.num_hidden_layers)
        self.layers = nn.ModuleList(ElmoLayer(config, index) for index in layers)
        self.output_layer = config.output_layer
        if self.output_layer == "mix" and not add_scalar_mix:
            self.output_layer = "top"
        mixes = range(config.num_output_representations if self.output_layer == "mix" else 0)
        self.mixes = nn.ModuleList(ElmoScalarMix(config) for _ in mixes)
        self.dropout = nn.Dropout(config.output_dropout)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.token_encoder.char_embeddings

    def set_input_embeddings(self, value: nn.Module):
        self.token_encoder.char_embeddings = cast(nn.Embedding, value)

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        state: ElmoState | None = None,
        keep_sentence_boundaries: bool = False,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> ElmoModelOutput:
        r"""
        input_ids (`(batch, words, characters)`):
            Character ids, as [`ElmoTokenizer`] makes them.
        attention_mask (`(batch, words)`, *optional*):
            1 where there is a word. By default, wherever `input_ids` has any character.
        inputs_embeds (`(batch, words, characters, char_embedding_size)`, *optional*):
            Embedded characters instead of `input_ids`.
        state (*optional*):
            What an earlier call returned as `state`, for as many sentences or for one. By default
            the LSTMs start from zeros: a sentence's vectors do not depend on what was read before.
        keep_sentence_boundaries (`bool`, *optional*, defaults to `False`):
            Whether the outputs keep `<S>` and `</S>` and are `words + 2` long.
        """
        given = one_input(input_ids, inputs_embeds)
        self.check_shape(given, dimensions=3 if inputs_embeds is None else 4)
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        mask = word_mask(given, attention_mask)
        packing = ElmoPacking.of(mask)
        rows, number = self.embed_tokens(given, packing)
        places = (number[packing.tokens], number[packing.tokens[packing.reverse]])
        layers, new_state = self.run_layers(rows, places, packing, state)

        def unpack(streams: list[torch.Tensor]) -> list[torch.Tensor]:
            boundaries = keep_sentence_boundaries
            return [packing.unpack(stream, mask.shape, boundaries) for stream in streams]

        hidden_states = unpack(layers)
        mixed = unpack(normalize(layers)) if self.config.mix_layer_norm else hidden_states
        representations = self.dropout(torch.stack(self.combine(mixed), dim=2))
        return ElmoModelOutput(
            last_hidden_state=representations[:, :, 0],
            hidden_states=tuple(hidden_states) if output_hidden_states else None,
            representations=representations,
            state=new_state,
        )

    def check_shape(self, given: torch.Tensor, dimensions: int):
        characters = self.config.max_characters_per_token
        if not len(given):
            raise ValueError("The batch is empty; ELMo reads at least one sentence.")
        if given.dim() != dimensions or given.shape[2] != characters:
            expected = f"(batch, words, {characters}{', char_embedding_size' * (dimensions - 3)})"
            raise ValueError(
                f"The input has shape {tuple(given.shape)} but ELMo reads {expected}; make it with "
                "`ElmoTokenizer`."
            )

    def embed_tokens(
        self, given: torch.Tensor, packing: ElmoPacking
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Vectors (rows, projection_size), and which of them each word, `<S>` and `</S>` has."""
        width = self.config.max_characters_per_token
        markers = (BEGIN_SENTENCE, END_SENTENCE)
        boundaries = torch.tensor([boundary_row(m, width) for m in markers], device=given.device)
        words = given.flatten(0, 1)[packing.words]
        if words.dim() == 3:
            embedded = torch.cat([words, self.token_encoder.char_embeddings(boundaries)])
            number = torch.arange(len(embedded), device=given.device)
            return self.token_encoder.encode_embedded(embedded), number
        distinct, number = distinct_rows(torch.cat([words, boundaries]))
        return self.token_encoder(distinct), number

    def run_layers(
        self,
        rows: torch.Tensor,
        places: tuple[torch.Tensor | None, torch.Tensor | None],
        packing: ElmoPacking,
        state: ElmoState | None,
    ) -> tuple[list[torch.Tensor], ElmoState]:
        """All layers, each (tokens, hidden_size) as a forward stream, and the state after them."""
        layers = [rows[places[0]].repeat(1, 2)]
        new_outputs, new_cells = [], []
        device = rows.device
        forward, backward = rows, rows
        for index, layer in enumerate(self.layers):
            start = self.layer_state(state, index, packing)
            forward, backward, outputs, cells = layer(
                forward, backward, places, packing.batch_sizes, start
            )
            # from here on the rows are streams themselves
            places = (None, None)
            # with a `device_map` the layers may lie on several devices
            backward_turned = backward[packing.reverse.to(backward.device)]
            layers.append(torch.cat([forward, backward_turned], dim=-1).to(device))
            new_outputs.append(outputs.to(device))
            new_cells.append(cells.to(device))
        restore = packing.order.argsort()
        outputs, cells = (
            torch.stack(parts).movedim(2, 0)[restore] for parts in (new_outputs, new_cells)
        )
        return layers, ElmoState(outputs, cells)

    def layer_state(
        self, state: ElmoState | None, index: int, packing: ElmoPacking
    ) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The state a layer starts from, longest sentence first; None for zeros."""
        if state is None:
            return None
        batch = len(packing.order)
        for part in state.values():
            if len(part) not in (1, batch):
                raise ValueError(f"`state` is of {len(part)} sentences but the batch has {batch}.")
        outputs, cells = (part[:, index].expand(batch, -1, -1) for part in state.values())
        return outputs[packing.order].transpose(0, 1), cells[packing.order].transpose(0, 1)

    def combine(self, layers: list[torch.Tensor]) -> list[torch.Tensor]:
        """The representations that `config.output_layer` asks for."""
        if self.output_layer == "mix":
            return [mix(layers) for mix in self.mixes]
        if self.output_layer == "mean":
            return [torch.stack(layers).mean(dim=0)]
        return [layers[-1] if self.output_layer == "top" else layers[cast(int, self.output_layer)]]

    @torch.no_grad()
    def warm_state(self, tolerance: float = 1e-6, max_rounds: int = 1000) -> ElmoState:
        """
        The state, for one sentence, in which reading the empty sentence `<S> </S>` over and over
        settles.

        Passed as `state=`, it spares every sentence the cold start from zeros, which the published
        models hardly saw in training, and still gives a sentence the same vectors every time.
        """
        width = self.config.max_characters_per_token
        nothing = torch.zeros(1, 0, width, dtype=torch.long, device=self.device)
        state = self(nothing, return_dict=True).state
        for _ in range(max_rounds):
            previous, state = state, self(nothing, state=state, return_dict=True).state
            change = max((state[name] - previous[name]).abs().max().item() for name in state)
            if change <= tolerance:
                return state
        logger.warning(f"The state still changes by {change:.1e} after {max_rounds} rounds.")
        return state


def read_words(
    elmo: ElmoModel, output_hidden_states: bool | None, **inputs
) -> tuple[torch.Tensor, ElmoModelOutput]:
    """
    What a head stands on, all layers or all mixes, (batch, words, vectors, hidden_size), and the
    model's output as asked for.
    """
    if output_hidden_states is None:
        output_hidden_states = elmo.config.output_hidden_states
    needs_layers = elmo.config.concatenate_layers
    output = elmo(
        **inputs, output_hidden_states=output_hidden_states or needs_layers, return_dict=True
    )
    vectors = output.representations
    if needs_layers:
        vectors = torch.stack(output.hidden_states, dim=2)
    if not output_hidden_states:
        output.hidden_states = None
    return vectors, output


def num_vectors(config: ElmoConfig) -> int:
    """How many vectors of `hidden_size` `read_words` gives for each word."""
    layers = config.num_hidden_layers + 1
    return layers if config.concatenate_layers else config.num_output_representations


class ElmoForTokenClassification(ElmoPreTrainedModel):
    """Dropout and one linear layer over each word, with a task LSTM before it on request."""

    def __init__(self, config: ElmoConfig):
        super().__init__(config)
        self.num_labels = cast(int, config.num_labels)
        self.elmo = ElmoModel(config, add_scalar_mix=not config.concatenate_layers)
        after = config.hidden_size if config.mix_after_task_lstm else 0
        width = config.hidden_size * num_vectors(config) - after
        self.dropout = nn.Dropout(config.classifier_dropout)
        self.task_lstm = None
        if config.task_lstm_size:
            size = config.task_lstm_size
            self.task_lstm = nn.LSTM(width, size, batch_first=True, bidirectional=True)
            width = 2 * size
        self.classifier = nn.Linear(width + after, self.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        state: ElmoState | None = None,
        labels: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> ElmoTokenClassifierOutput:
        r"""
        labels (`(batch, words)`, *optional*):
            A class for each word; -100 where there is none to learn.
        """
        mask = word_mask(one_input(input_ids, inputs_embeds), attention_mask)
        vectors, output = read_words(
            self.elmo,
            output_hidden_states,
            input_ids=input_ids,
            attention_mask=mask,
            inputs_embeds=inputs_embeds,
            state=state,
        )
        after = 1 if self.config.mix_after_task_lstm else 0
        before, after_lstm = vectors.split([vectors.shape[2] - after, after], dim=2)
        hidden = self.dropout(before.flatten(2))
        if self.task_lstm is not None:
            read = run_over_words(self.task_lstm, hidden, mask)
            hidden = self.dropout(torch.cat([read, after_lstm.flatten(2)], dim=-1))
        logits = self.classifier(hidden)
        loss = None
        if labels is not None:
            loss = self.loss_function(logits, labels, self.config, **kwargs)
        return ElmoTokenClassifierOutput(loss, logits, output.hidden_states, output.state)


def run_over_words(lstm: nn.LSTM, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """A bidirectional LSTM over the live words only, wherever the padding is."""
    if not mask.any():
        return hidden.new_zeros(*mask.shape, 2 * lstm.hidden_size)
    words_first = mask.long().argsort(dim=1, descending=True, stable=True).unsqueeze(-1)
    # torch packs no empty sentence; an empty one reads a zero and is masked again below
    lengths = mask.sum(dim=1).clamp(min=1).cpu()
    moved = hidden.take_along_dim(words_first, dim=1)
    packed = pack_padded_sequence(moved, lengths, batch_first=True, enforce_sorted=False)
    read, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=mask.shape[1])
    restored = torch.zeros_like(read).scatter(1, words_first.expand_as(read), read)
    return restored * mask.unsqueeze(-1).to(read.dtype)


class ElmoForSequenceClassification(ElmoPreTrainedModel):
    """A masked mean or maximum over a sentence's words, dropout and one linear layer."""

    def __init__(self, config: ElmoConfig):
        super().__init__(config)
        self.num_labels = cast(int, config.num_labels)
        self.elmo = ElmoModel(config, add_scalar_mix=not config.concatenate_layers)
        self.dropout = nn.Dropout(config.classifier_dropout)
        self.classifier = nn.Linear(config.hidden_size * num_vectors(config), self.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> SequenceClassifierOutput:
        r"""
        labels (`(batch,)` or `(batch, num_labels)`, *optional*):
            A class, a number or a set of classes for each sentence, by `config.problem_type`.
        """
        mask = word_mask(one_input(input_ids, inputs_embeds), attention_mask)
        vectors, output = read_words(
            self.elmo,
            output_hidden_states,
            input_ids=input_ids,
            attention_mask=mask,
            inputs_embeds=inputs_embeds,
        )
        pooled = pool_words(vectors.flatten(2), mask, self.config.classifier_pooling)
        logits = self.classifier(self.dropout(pooled))
        loss = None
        if labels is not None:
            loss = self.loss_function(labels, logits, self.config, **kwargs)
        return SequenceClassifierOutput(
            loss=loss, logits=logits, hidden_states=cast(tuple | None, output.hidden_states)
        )


def pool_words(hidden: torch.Tensor, mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """(batch, words, size) -> (batch, size) over the live words; zeros where there are none."""
    live = mask.unsqueeze(-1)
    if pooling == "mean" or not mask.shape[1]:
        return hidden.masked_fill(~live, 0).sum(dim=1) / live.sum(dim=1).clamp(min=1)
    lowest = torch.finfo(hidden.dtype).min
    return hidden.masked_fill(~live, lowest).amax(dim=1).masked_fill(~live.any(dim=1), 0)


__all__ = [
    "ElmoForSequenceClassification",
    "ElmoForTokenClassification",
    "ElmoModel",
    "ElmoPreTrainedModel",
    "ElmoState",
]
