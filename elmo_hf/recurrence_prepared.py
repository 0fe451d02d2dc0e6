# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The prepared backend: inference on a CPU in float32 from copies of the recurrent weights.

`prepare_for_inference` has the layer keep `layer.copies`, one for both directions where the weights
fit into the caches, else one for each. `prepared_weights` says when a copy is stale; then, and
wherever gradients are wanted, the plain backend serves.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from .matrix_products import product, use_onednn
from .prepared_weights import PackedMatrix, WeightCopy, can_copy, can_pack, usable_copy
from .recurrence_interface import Backend, LayerInput, LayerOutput, advance_doubled, directions

if TYPE_CHECKING:
    from .layers_elmo import ElmoLayer

# rows of a stream whose input products are made together
ROWS_AT_ONCE = 256


def can_read(layer: "ElmoLayer", given: LayerInput) -> bool:
    if given.batch_sizes is None or not layer.copies:
        return False
    weights = layer.recurrent_weights()
    return weights is not None and all(
        usable_copy(copy, *(part[number] for part in weights if part for number in numbers))
        is not None
        for numbers, copy in layer.copies.items()
    )


def read(layer: "ElmoLayer", given: LayerInput) -> LayerOutput:
    cells = directions(layer)
    read = []
    for numbers, copy in layer.copies.items():
        state = given.state
        if state is not None:
            state = (state[0][list(numbers)], state[1][list(numbers)])
        read.append(
            read_streams(
                [cells[number].input_linear for number in numbers],
                [given.rows[number] for number in numbers],
                [given.positions[number] for number in numbers],
                given.batch_sizes or [],
                state,
                copy,
                cells[0].cell_clip,
                cells[0].projection_clip,
            )
        )
    return LayerOutput(*(torch.cat(parts) for parts in zip(*read, strict=True)))


class PairedWeights(WeightCopy):
    """
    The weights by which the LSTMs of both directions go from step to step, in one piece.

    A batched product gives each core a direction of its own, so that none waits for another in the
    middle of a product: the fastest for any number of rows while the weights stay in the caches.
    """

    LARGEST = 1 << 20  # numbers in a recurrent weight; 4 MB

    def __init__(self, recurrent: list[torch.Tensor], projection: list[torch.Tensor]):
        super().__init__(*recurrent, *projection)
        self.cell_size, self.width = len(recurrent[0]) // 4, recurrent[0].shape[1]
        self.recurrent = torch.stack([double_candidates(weight).T for weight in recurrent])
        self.projection = None
        if projection:
            self.projection = 2 * torch.stack([weight.detach().T for weight in projection])

    def gates(self, given: list[torch.Tensor], outputs: torch.Tensor | None, out: torch.Tensor):
        """(2, rows, 4 * cell_size), from the input's share and the last outputs; in `out`."""
        gates = torch.stack(given, out=out)
        if outputs is None:
            return gates
        if use_onednn(outputs, self.recurrent):
            return product(outputs, self.recurrent, gates)
        # in place, which takes less time where there is little to multiply
        return gates.baddbmm_(outputs, self.recurrent)

    def project(self, halves: torch.Tensor) -> torch.Tensor:
        """(2, rows, projection_size), from halves of what is to be projected."""
        return halves.mul_(2) if self.projection is None else product(halves, self.projection)


class SingleWeights(WeightCopy):
    """The same for one direction, packed, where the weights are too large for the caches."""

    def __init__(self, recurrent: list[torch.Tensor], projection: list[torch.Tensor]):
        super().__init__(*recurrent, *projection)
        self.cell_size, self.width = len(recurrent[0]) // 4, recurrent[0].shape[1]
        self.recurrent = PackedMatrix(double_candidates(recurrent[0]))
        self.projection = PackedMatrix(2 * projection[0].detach()) if projection else None

    def gates(self, given: list[torch.Tensor], outputs: torch.Tensor | None, out: torch.Tensor):
        gates = given[0] if outputs is None else self.recurrent(outputs[0], add=given[0])
        return gates.unsqueeze(0)

    def project(self, halves: torch.Tensor) -> torch.Tensor:
        if self.projection is None:
            return halves.mul_(2)
        return self.projection(halves[0]).unsqueeze(0)


def double_candidates(weight: torch.Tensor) -> torch.Tensor:
    """A copy of a recurrent weight that makes twice the candidates: see `advance_doubled`."""
    doubled = weight.detach().clone()
    doubled.chunk(4)[3].mul_(2)
    return doubled


def copy_recurrent(
    recurrent: list[torch.Tensor], projection: list[torch.Tensor]
) -> dict[tuple[int, ...], PairedWeights | SingleWeights]:
    """
    Copies of both directions' weights, by the directions they serve: one for both, one for each, or
    none where it cannot work.
    """
    if not can_copy(*recurrent, *projection):
        return {}
    if recurrent[0].numel() <= PairedWeights.LARGEST:
        return {(0, 1): PairedWeights(recurrent, projection)}
    if not can_pack():
        return {}
    return {
        (direction,): SingleWeights([recurrent[direction]], projection[direction:][:1])
        for direction in range(2)
    }


def gate_inputs(
    linear: nn.Module, rows: torch.Tensor, index: torch.Tensor | None, batch_sizes: list[int]
) -> Iterator[torch.Tensor]:
    """
    What the input adds to the gates, step by step, with twice the candidates.

    If the stream is `rows[index]`, each row is multiplied once, however often it occurs. If
    it is `rows` itself, the rows of some steps are multiplied at a time: the products stay in the
    caches, and a long text takes no more memory than a short one.
    """

    def multiply(some: torch.Tensor) -> torch.Tensor:
        inputs = linear(some)
        inputs[:, inputs.shape[1] // 4 * 3 :].mul_(2)
        return inputs

    if index is not None:
        inputs = multiply(rows)
        yield from (inputs.index_select(0, some) for some in index.split(batch_sizes))
        return
    start, sizes = 0, []
    for number, alive in enumerate(batch_sizes, start=1):
        sizes.append(alive)
        if sum(sizes) >= ROWS_AT_ONCE or number == len(batch_sizes):
            yield from multiply(rows[start : start + sum(sizes)]).split(sizes)
            start, sizes = start + sum(sizes), []


def read_streams(
    linears: Sequence[nn.Module],
    rows: list[torch.Tensor],
    positions: list[torch.Tensor | None],
    batch_sizes: list[int],
    state: tuple[torch.Tensor, torch.Tensor] | None,
    weights: PairedWeights | SingleWeights,
    cell_clip: float | None,
    projection_clip: float | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One direction, or both at once, as many as `weights` is a copy for."""
    outputs: torch.Tensor | None = None
    doubled = rows[0].new_zeros(len(rows), batch_sizes[0], weights.cell_size)
    if state is not None:
        outputs, doubled = state[0], 2 * state[1]
    streams = rows[0].new_empty(len(rows), sum(batch_sizes), weights.width)
    ended = []
    inputs = [
        gate_inputs(linear, some, index, batch_sizes)
        for linear, some, index in zip(linears, rows, positions, strict=True)
    ]
    steps = zip(batch_sizes, streams.split(batch_sizes, dim=1), *inputs, strict=True)
    # overwritten while the number of rows stays: memory that is in the caches is the fastest
    buffer = None
    for alive, stream, *given in steps:
        if outputs is not None and alive < outputs.shape[1]:
            ended.append(outputs[:, alive:])
            outputs = outputs[:, :alive]
        if buffer is None or buffer.shape[1] != alive:
            buffer = stream.new_empty(len(given), alive, 4 * weights.cell_size)
        gates = weights.gates(given, outputs, buffer).sigmoid_()
        memory = doubled[:, :alive]
        projected = weights.project(advance_doubled(gates, memory, memory, cell_clip))
        if projection_clip is None:
            stream.copy_(projected)
        else:
            torch.clamp(projected, -projection_clip, projection_clip, out=stream)
        outputs = stream
    # sentences end shortest first, and the shortest comes last
    return streams, torch.cat([stream, *reversed(ended)], dim=1), doubled.div_(2)


PREPARED = Backend("prepared", can_read, read)
