# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The batched backend: both directions in step, for GPUs and for low precision.

There a step is bound by how many operations it takes, not by their work. One batched product serves
both directions, what lies between the products is done in place or by a kernel of ours, and the
backward pass is written by hand. The host never waits for the device: how many rows a step has is
known from packing.

Streams are (tokens, 2, size) here, so that the rows of a step are one piece of memory.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from .packing import select_rows
from .prepared_weights import is_plain_cpu
from .recurrence_interface import Backend, LayerInput, LayerOutput, blocks
from .recurrence_plain import windows
from .recurrence_pointwise import Pointwise, choose_pointwise

if TYPE_CHECKING:
    from .layers_elmo import ElmoLayer

# Tokens whose gates are in memory together in inference; training keeps those of all.
TOKENS_AT_ONCE = 1 << 12
# The backward pass takes a stream in so many pieces, so that what it needs besides the results of
# the forward pass is small beside them.
PIECES = 4

Pair = tuple[torch.Tensor, torch.Tensor]


class Settings(NamedTuple):
    """How a stream is read, besides its weights."""

    batch_sizes: list[int]
    # of memory cells and of projected outputs
    clips: tuple[float | None, float | None]
    pointwise: Pointwise


class Weights(NamedTuple):
    """Of both directions: what goes from step to step in one piece, the rest as it is."""

    inputs: Pair
    biases: Pair
    # (2, 4 * cell_size, output_size)
    recurrent: torch.Tensor
    # (2, output_size, cell_size)
    projection: torch.Tensor | None


class Buffers(NamedTuple):
    """What a stream's steps leave behind, (tokens, 2, size), as the backward pass needs it."""

    gates: torch.Tensor
    # before they were clipped, so that it can be seen whether they were
    cells: torch.Tensor
    projected: torch.Tensor
    streams: torch.Tensor


def can_read(layer: "ElmoLayer", given: LayerInput) -> bool:
    """
    Wherever a CPU's own backends do not serve, if an adapter or a hook is not in the way. Gradients
    of a model in `eval` mode are left to autograd, where they have gradients themselves.
    """
    if given.batch_sizes is None or torch.compiler.is_compiling() or is_plain_cpu(given.rows[0]):
        return False
    weights = layer.plain_weights()
    if weights is None:
        return False
    tensors = [*given.rows, *weights, *(given.state or ())]
    if wants_gradients(tensors) and not layer.training:
        return False
    return len({tensor.device for tensor in tensors}) == 1 and product_dtype(tensors) is not None


def wants_gradients(tensors: Sequence[torch.Tensor]) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def product_dtype(tensors: Sequence[torch.Tensor]) -> torch.dtype | None:
    """In what precision torch would multiply these; None if it would refuse, or not say."""
    dtypes = {tensor.dtype for tensor in tensors}
    if autocasts(tensors[0].device):
        low = torch.get_autocast_dtype(tensors[0].device.type)
        return None if torch.float64 in dtypes else low
    return dtypes.pop() if len(dtypes) == 1 else None


def autocasts(device: torch.device) -> bool:
    kind = device.type
    return torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)


@contextmanager
def on_device(device: torch.device) -> Iterator[None]:
    """
    Without autocast, since all is in one precision already; and Triton, unlike torch, does not find
    the GPU that a tensor is on.
    """
    with ExitStack() as stack:
        if autocasts(device):
            stack.enter_context(torch.autocast(device.type, enabled=False))
        if device.type == "cuda":
            stack.enter_context(torch.cuda.device(device))
        yield


def read(layer: "ElmoLayer", given: LayerInput) -> LayerOutput:
    weights, sizes = layer.plain_weights() or [], given.batch_sizes or []
    dtype = product_dtype([*given.rows, *weights])
    device, cell = given.rows[0].device, layer.forward_cell
    if dtype is None:
        raise ValueError("The rows and the weights of a layer are of several dtypes.")
    is_differentiated = wants_gradients([*given.rows, *weights, *(given.state or ())])
    weights = [weight.to(dtype) for weight in weights]
    if given.state is None:
        widths = (cell.recurrent_linear.in_features, cell.cell_size)
        state = tuple(weights[0].new_zeros(sizes[0], 2, width) for width in widths)
    else:
        state = tuple(part.transpose(0, 1).contiguous().to(dtype) for part in given.state)
    clips = (cell.cell_clip, cell.projection_clip)
    settings = Settings(sizes, clips, choose_pointwise(device, dtype))
    with on_device(device):
        if is_differentiated:
            rows = [part.to(dtype) for part in streams_of(given, slice(None))]
            results = BothDirections.apply(*rows, *state, settings, *weights)
        else:
            results = read_long(given, state, pair(weights), settings)
    return LayerOutput(*(part.transpose(0, 1) for part in results))


def streams_of(given: LayerInput, tokens: slice) -> list[torch.Tensor]:
    """What each direction reads there, (tokens, size)."""
    return [
        rows[tokens] if positions is None else select_rows(rows, positions[tokens])
        for rows, positions in zip(given.rows, given.positions, strict=True)
    ]


def pair(weights: Sequence[torch.Tensor]) -> Weights:
    """
    From input weight, bias, recurrent weight and, if there is one, projection: of the forward
    direction, then of the backward one.
    """
    half = len(weights) // 2
    inputs, biases, recurrent, *projections = zip(weights[:half], weights[half:], strict=True)
    projection = torch.stack(projections[0]) if projections else None
    return Weights(inputs, biases, torch.stack(recurrent), projection)


def read_long(
    given: LayerInput, state: tuple[torch.Tensor, ...], weights: Weights, settings: Settings
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Without gradients, window by window: streams, last outputs, last memory cells."""
    dtype = weights.recurrent.dtype
    streams: list[torch.Tensor] = []
    ended: list[Pair] = []
    outputs, cells = state
    for start, sizes in windows(settings.batch_sizes, TOKENS_AT_ONCE):
        rows = [part.to(dtype) for part in streams_of(given, slice(start, start + sum(sizes)))]
        buffers, outputs, cells = read_steps(
            rows, outputs, cells, weights, settings._replace(batch_sizes=sizes), ended
        )
        streams.append(buffers.streams)
    return torch.cat(streams), *last_state(outputs, cells, ended)


def last_state(outputs: torch.Tensor, cells: torch.Tensor, ended: list[Pair]) -> list[torch.Tensor]:
    """Of all sentences: they end shortest first, and the shortest comes last."""
    return [torch.cat(parts) for parts in zip((outputs, cells), *reversed(ended), strict=True)]


def read_steps(
    rows: Sequence[torch.Tensor],
    outputs: torch.Tensor,
    kept: torch.Tensor,
    weights: Weights,
    settings: Settings,
    ended: list[Pair],
) -> tuple[Buffers, torch.Tensor, torch.Tensor]:
    """
    From outputs and memory cells before the first step to those after the last one; to `ended` go
    those of sentences that end before.
    """
    buffers = make_buffers(rows, outputs, kept, weights, settings)
    cell_clip, clip = settings.clips
    recurrent = weights.recurrent.transpose(1, 2)
    projection = None if weights.projection is None else weights.projection.transpose(1, 2)
    scratch = torch.empty_like(kept)
    steps = zip(*(part.split(settings.batch_sizes) for part in buffers), strict=True)
    for gates, cells, projected, stream in steps:
        alive = len(gates)
        if alive < len(outputs):
            ended.append((outputs[alive:], kept[alive:]))
            outputs, kept = outputs[:alive], kept[:alive]
        gates.transpose(0, 1).baddbmm_(outputs.transpose(0, 1), recurrent)
        hidden = projected if projection is None else scratch[:alive]
        kept = settings.pointwise.advance(gates, kept, cells, hidden, cell_clip)
        if projection is not None:
            torch.bmm(hidden.transpose(0, 1), projection, out=projected.transpose(0, 1))
        if clip is not None:
            torch.clamp(projected, -clip, clip, out=stream)
        outputs = stream
    return buffers, outputs, kept


def make_buffers(
    rows: Sequence[torch.Tensor],
    outputs: torch.Tensor,
    kept: torch.Tensor,
    weights: Weights,
    settings: Settings,
) -> Buffers:
    """With what the input adds to the gates as gates."""
    tokens, size, width = len(rows[0]), kept.shape[2], outputs.shape[2]
    gates = kept.new_empty(tokens, 2, 4 * size)
    for part, some, weight, bias in zip(
        gates.unbind(1), rows, weights.inputs, weights.biases, strict=True
    ):
        torch.addmm(bias, some, weight.T, out=part)
    streams = kept.new_empty(tokens, 2, width)
    projected = streams if settings.clips[1] is None else torch.empty_like(streams)
    return Buffers(gates, kept.new_empty(tokens, 2, size), projected, streams)


class BothDirections(Function):
    """What the plain backend does; rows, state and weights are all in one precision."""

    @staticmethod
    def forward(
        ctx: Any,
        forward_rows: torch.Tensor,
        backward_rows: torch.Tensor,
        first_outputs: torch.Tensor,
        first_cells: torch.Tensor,
        settings: Settings,
        *weights: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        rows, ended = (forward_rows, backward_rows), list[Pair]()
        buffers, outputs, cells = read_steps(
            rows, first_outputs, first_cells, pair(weights), settings, ended
        )
        # the weights themselves, not the pairs made of them, which would be a second copy
        ctx.save_for_backward(*rows, first_outputs, first_cells, *buffers, *weights)
        ctx.settings = settings
        return buffers.streams, *last_state(outputs, cells, ended)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        *rows, first_outputs, first_cells = ctx.saved_tensors[:4]
        buffers, weights = Buffers(*ctx.saved_tensors[4:8]), ctx.saved_tensors[8:]
        with on_device(rows[0].device):
            way = WayBack(rows, (first_outputs, first_cells), buffers, pair(weights), ctx.settings)
            return way.go(*gradients)


class WayBack:
    """The backward pass: the gradients so far, and the steps that add to them."""

    def __init__(
        self,
        rows: Sequence[torch.Tensor],
        first: Pair,
        buffers: Buffers,
        weights: Weights,
        settings: Settings,
    ):
        self.rows, self.first, self.buffers = rows, first, buffers
        self.weights, self.settings = weights, settings
        self.of_rows = [torch.empty_like(part) for part in rows]
        self.of_first_outputs = torch.zeros_like(first[0])
        self.of_inputs = [torch.zeros_like(weight) for weight in weights.inputs]
        self.of_biases = torch.zeros_like(torch.stack(weights.biases))
        self.of_recurrent = torch.zeros_like(weights.recurrent)
        self.of_projection = (
            None if weights.projection is None else torch.zeros_like(weights.projection)
        )

    def go(
        self, of_streams: torch.Tensor, of_outputs: torch.Tensor, of_cells: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        """In the order of what `BothDirections.forward` was given."""
        # to what later layers ask, each step adds what the step after it asks
        self.of_projected = of_streams.clone(memory_format=torch.contiguous_format)
        self.of_outputs, self.of_cells = of_outputs, of_cells.clone()
        self.going_on = 0
        sizes = self.settings.batch_sizes
        for steps, earlier in blocks(sizes, sum(sizes) // PIECES):
            self.go_through(steps, earlier)
        kinds = [self.of_inputs, self.of_biases, self.of_recurrent]
        if self.of_projection is not None:
            kinds.append(self.of_projection)
        of_weights = [kind[direction] for direction in range(2) for kind in kinds]
        return *self.of_rows, self.of_first_outputs, self.of_cells, None, *of_weights

    def go_through(self, steps: list[slice], earlier: list[slice | None]) -> None:
        """A block of steps, from the last to the first."""
        block = slice(steps[0].start, steps[-1].stop)
        first_cells, clip = self.first[1], self.settings.clips[0]
        # the memory cells that the first step of the block started from come along
        begin = block.start if earlier[0] is None else earlier[0].start
        cells = self.buffers.cells[begin : block.stop]
        kept = cells if clip is None else cells.clamp(-clip, clip)
        squashed = kept[block.start - begin :].tanh()
        of_gates = torch.empty_like(self.buffers.gates[block])
        for step, place in zip(reversed(steps), reversed(earlier), strict=True):
            here = slice(step.start - block.start, step.stop - block.start)
            before = first_cells
            if place is not None:
                before = kept[place.start - begin : place.stop - begin]
            now = kept[step.start - begin : step.stop - begin]
            self.step(step, place, now, squashed[here], before, of_gates[here])
        self.add_weights(block, earlier, squashed, of_gates)

    def step(
        self,
        step: slice,
        place: slice | None,
        kept: torch.Tensor,
        squashed: torch.Tensor,
        before: torch.Tensor,
        of_gates: torch.Tensor,
    ) -> None:
        _, cells, projected, streams = self.buffers
        alive = len(kept)
        of_hidden = of_projected = self.of_projected[step]
        if self.going_on < alive:
            of_projected[self.going_on :].add_(self.of_outputs[self.going_on : alive])
        self.going_on = alive
        if self.settings.clips[1] is not None:
            of_projected.mul_(streams[step].eq(projected[step]))
        if self.weights.projection is not None:
            of_hidden = torch.empty_like(kept)
            torch.bmm(
                of_projected.transpose(0, 1),
                self.weights.projection,
                out=of_hidden.transpose(0, 1),
            )
        self.settings.pointwise.retreat(
            of_hidden, self.of_cells[:alive], self.buffers.gates[step], cells[step], kept,
            squashed, before, of_gates,
        )  # fmt: skip
        asked = self.of_first_outputs if place is None else self.of_projected[place]
        asked.transpose(0, 1).baddbmm_(of_gates.transpose(0, 1), self.weights.recurrent)

    def add_weights(
        self,
        block: slice,
        earlier: list[slice | None],
        squashed: torch.Tensor,
        of_gates: torch.Tensor,
    ) -> None:
        """What a block adds to the gradients of the weights, and those of its rows."""
        outputs = torch.cat(
            [self.first[0] if place is None else self.buffers.streams[place] for place in earlier]
        )
        across = of_gates.permute(1, 2, 0)
        self.of_recurrent.baddbmm_(across, outputs.transpose(0, 1))
        self.of_biases.add_(of_gates.sum(dim=0))
        for number, rows in enumerate(self.rows):
            self.of_inputs[number].addmm_(across[number], rows[block])
            torch.mm(of_gates[:, number], self.weights.inputs[number], out=self.of_rows[number][block])
        if self.of_projection is not None:
            hidden = squashed.mul_(self.buffers.gates[block].chunk(4, dim=-1)[2])
            self.of_projection.baddbmm_(
                self.of_projected[block].permute(1, 2, 0), hidden.transpose(0, 1)
            )


BATCHED = Backend("batched", can_read, read)
