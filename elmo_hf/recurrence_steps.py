# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The loop over time of the batched backend, and the way back through it.

Both directions go in step. Streams are (tokens, 2, size) here, so that the rows of a step are one
piece of memory, and the host knows the number of rows from packing: it never waits for the device.
All is in one precision, whatever autocast says: it leaves products into given memory alone.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from .recurrence_interface import blocks
from .recurrence_pointwise import Pointwise

# The way back takes a stream in so many pieces, so that what it needs besides the results of the
# steps is small beside them.
PIECES = 4

Pair = tuple[torch.Tensor, torch.Tensor]


class Settings(NamedTuple):
    """How a stream is read, besides its weights."""

    batch_sizes: list[int]
    # of memory cells and of projected outputs
    clips: tuple[float | None, float | None]
    pointwise: Pointwise


class Weights(NamedTuple):
    """Of both directions: those of every step in one piece, the others as they are."""

    inputs: Pair
    biases: Pair
    # (2, 4 * cell_size, output_size)
    recurrent: torch.Tensor
    # (2, output_size, cell_size)
    projection: torch.Tensor | None


class Buffers(NamedTuple):
    """What the steps leave behind, (tokens, 2, size), as the way back needs it."""

    gates: torch.Tensor
    # before they were clipped, so that it can be seen whether they were
    cells: torch.Tensor
    projected: torch.Tensor
    # after they were clipped; the same memory where nothing is
    streams: torch.Tensor


def pair(weights: Sequence[torch.Tensor], dtype: torch.dtype) -> Weights:
    """
    From input weight, bias, recurrent weight and, if there is one, projection: of the forward
    direction, then of the backward one.
    """
    half = len(weights) // 2
    inputs, biases, recurrent, *projections = zip(weights[:half], weights[half:], strict=True)
    return Weights(
        (inputs[0].to(dtype), inputs[1].to(dtype)),
        (biases[0].to(dtype), biases[1].to(dtype)),
        stack(recurrent, dtype),
        stack(projections[0], dtype) if projections else None,
    )


def stack(pair: Pair, dtype: torch.dtype) -> torch.Tensor:
    """Copied once, in another precision at the same time, which `torch.stack` does slowly."""
    both = pair[0].new_empty(2, *pair[0].shape, dtype=dtype)
    for copy, original in zip(both, pair, strict=True):
        copy.copy_(original)
    return both


def make_buffers(
    rows: Sequence[torch.Tensor], outputs: torch.Tensor, weights: Weights, clip: float | None
) -> Buffers:
    """With what the input adds to the gates in place of the gates."""
    tokens, width, four = len(rows[0]), outputs.shape[2], weights.recurrent.shape[1]
    gates = outputs.new_empty(tokens, 2, four)
    for part, *given in zip(gates.unbind(1), weights.biases, rows, weights.inputs, strict=True):
        bias, some, weight = given
        torch.addmm(bias, some, weight.T, out=part)
    streams = outputs.new_empty(tokens, 2, width)
    projected = streams if clip is None else torch.empty_like(streams)
    return Buffers(gates, outputs.new_empty(tokens, 2, four // 4), projected, streams)


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
    cell_clip, clip = settings.clips
    buffers = make_buffers(rows, outputs, weights, clip)
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


def last_state(outputs: torch.Tensor, cells: torch.Tensor, ended: list[Pair]) -> list[torch.Tensor]:
    """Of all sentences: they end shortest first, and the shortest comes last."""
    return [torch.cat(parts) for parts in zip((outputs, cells), *reversed(ended), strict=True)]


class WayBack:
    """
    From the gradients of what was returned to those of what was given. `first` are the outputs and
    memory cells before the first step.
    """

    def __init__(
        self,
        rows: Sequence[torch.Tensor],
        first: Pair,
        buffers: Buffers,
        weights: Weights,
        settings: Settings,
        gradients: tuple[torch.Tensor, ...],
    ):
        self.rows, self.first, self.buffers = rows, first, buffers
        self.weights, self.settings = weights, settings
        of_streams, self.of_outputs, of_cells = gradients
        # a step adds to those of the step before it, in the same memory
        self.of_projected = of_streams.clone(memory_format=torch.contiguous_format)
        self.of_cells = of_cells.clone(memory_format=torch.contiguous_format)
        self.of_first_outputs = torch.zeros_like(first[0])
        self.of_rows = [torch.empty_like(part) for part in rows]
        # how many sentences the steps so far have met
        self.met = 0
        self.of_inputs = [torch.zeros_like(weight) for weight in weights.inputs]
        self.of_biases = weights.recurrent.new_zeros(weights.recurrent.shape[:2])
        self.of_recurrent = torch.zeros_like(weights.recurrent)
        self.of_projection = None
        if weights.projection is not None:
            self.of_projection = torch.zeros_like(weights.projection)

    def go(self) -> None:
        sizes = self.settings.batch_sizes
        for steps, earlier in blocks(sizes, sum(sizes) // PIECES):
            self.go_through(steps, earlier)

    def of_weights(self) -> list[torch.Tensor]:
        """In the order that `pair` was given."""
        kinds: list[torch.Tensor | list[torch.Tensor]]
        kinds = [self.of_inputs, self.of_biases, self.of_recurrent]
        if self.of_projection is not None:
            kinds.append(self.of_projection)
        return [kind[direction] for direction in range(2) for kind in kinds]

    def go_through(self, steps: list[slice], earlier: list[slice | None]) -> None:
        """
        A block of steps, from the last to the first. `earlier` are the rows of each in the step
        before it.
        """
        block = slice(steps[0].start, steps[-1].stop)
        clip = self.settings.clips[0]
        # with the memory cells from which the first step of the block started
        start = earlier[0]
        begin = block.start if start is None else start.start
        cells = self.buffers.cells[begin : block.stop]
        kept = cells if clip is None else cells.clamp(-clip, clip)
        squashed = kept[block.start - begin :].tanh()
        of_gates = torch.empty_like(self.buffers.gates[block])
        for step, place in zip(reversed(steps), reversed(earlier), strict=True):
            here = slice(step.start - block.start, step.stop - block.start)
            of_hidden = self.find_of_hidden(step)
            before = self.first[1]
            if place is not None:
                before = kept[place.start - begin : place.stop - begin]
            self.settings.pointwise.retreat(
                of_hidden,
                self.of_cells[: len(of_hidden)],
                self.buffers.gates[step],
                self.buffers.cells[step],
                kept[step.start - begin : step.stop - begin],
                squashed[here],
                before,
                of_gates[here],
            )
            asked = self.of_first_outputs if place is None else self.of_projected[place]
            change = of_gates[here].transpose(0, 1)
            asked.transpose(0, 1).baddbmm_(change, self.weights.recurrent)
        self.add_block(block, earlier, squashed, of_gates)

    def find_of_hidden(self, step: slice) -> torch.Tensor:
        """The gradient of what a step projects, once that of its output is complete."""
        of_projected = self.of_projected[step]
        alive = len(of_projected)
        if self.met < alive:
            # this was the last step of some sentences
            of_projected[self.met :].add_(self.of_outputs[self.met : alive])
            self.met = alive
        if self.settings.clips[1] is not None:
            kept = self.buffers.streams[step].eq(self.buffers.projected[step])
            of_projected.mul_(kept)
        projection = self.weights.projection
        if projection is None:
            return of_projected
        of_hidden = of_projected.new_empty(alive, 2, projection.shape[2])
        torch.bmm(of_projected.transpose(0, 1), projection, out=of_hidden.transpose(0, 1))
        return of_hidden

    def add_block(
        self,
        block: slice,
        earlier: list[slice | None],
        squashed: torch.Tensor,
        of_gates: torch.Tensor,
    ) -> None:
        """The gradients of a block's rows, and what it adds to those of the weights."""
        for direction, rows in enumerate(self.rows):
            change, of_rows = of_gates[:, direction], self.of_rows[direction][block]
            torch.mm(change, self.weights.inputs[direction], out=of_rows)
            self.of_inputs[direction].addmm_(change.T, rows[block])
        self.of_biases.add_(of_gates.sum(dim=0))
        outputs = torch.cat(
            [self.first[0] if place is None else self.buffers.streams[place] for place in earlier]
        )
        self.of_recurrent.baddbmm_(of_gates.permute(1, 2, 0), outputs.transpose(0, 1))
        if self.of_projection is not None:
            hidden = squashed.mul_(self.buffers.gates[block].chunk(4, dim=-1)[2])
            of_projected = self.of_projected[block].permute(1, 2, 0)
            self.of_projection.baddbmm_(of_projected, hidden.transpose(0, 1))
