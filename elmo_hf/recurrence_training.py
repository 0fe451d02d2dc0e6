# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The training backend: a layer's LSTMs on a CPU, with a backward pass written by hand.

autograd would keep and visit some thirty small results for every time step. Here both directions go
in step through batched products, and a weight's gradient is one product over the whole stream.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from .matrix_products import product
from .packing import select_rows
from .prepared_weights import is_plain_cpu
from .recurrence_interface import Backend, LayerInput, LayerOutput, advance_doubled, blocks

if TYPE_CHECKING:
    from .layers_elmo import ElmoLayer

# rows of a stream whose derivatives are worked out together, while they are in the caches
ROWS_AT_ONCE = 160


def can_read(layer: "ElmoLayer", given: LayerInput) -> bool:
    if not layer.training or given.batch_sizes is None:
        return False
    weights = layer.plain_weights()
    return weights is not None and is_plain_cpu(given.rows[0], *weights)


def read(layer: "ElmoLayer", given: LayerInput) -> LayerOutput:
    streams = [
        rows if positions is None else select_rows(rows, positions)
        for rows, positions in zip(given.rows, given.positions, strict=True)
    ]
    clips = (layer.forward_cell.cell_clip, layer.forward_cell.projection_clip)
    state = given.state or (None, None)
    weights = layer.plain_weights() or []
    return LayerOutput(*BothDirections.apply(*streams, *state, given.batch_sizes, clips, *weights))


class BothDirections(Function):
    """
    What the plain backend does, for both directions of a layer.

    `weights` are input weight, bias, recurrent weight and, if there is one, projection: of the
    forward direction, then of the backward one.
    """

    @staticmethod
    def forward(
        ctx: Any,
        forward_rows: torch.Tensor,
        backward_rows: torch.Tensor,
        first_outputs: torch.Tensor | None,
        first_cells: torch.Tensor | None,
        batch_sizes: list[int],
        clips: tuple[float | None, float | None],
        *weights: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        inputs, recurrent, bias, projections = merge(weights)
        advancing = recurrent.transpose(1, 2)
        projecting = None if projections is None else projections.transpose(1, 2)

        rows = torch.stack([forward_rows, backward_rows])
        # what the inputs add to the gates, of all steps at once; then the gates themselves
        gates = product(rows, inputs.transpose(1, 2)).add_(bias.unsqueeze(1))
        cell_size, output_size = recurrent.shape[1] // 4, recurrent.shape[2]
        # twice the memory cells
        doubled = rows.new_empty(2, len(forward_rows), cell_size)
        streams = rows.new_empty(2, len(forward_rows), output_size)

        if first_outputs is None or first_cells is None:
            outputs = rows.new_zeros(2, batch_sizes[0], output_size)
            cells = rows.new_zeros(2, batch_sizes[0], cell_size)
        else:
            outputs, cells = first_outputs, 2 * first_cells
        ended = []
        steps = [part.split(batch_sizes, dim=1) for part in (gates, doubled, streams)]
        for gate, cell, stream in zip(*steps, strict=True):
            alive = gate.shape[1]
            ended.append((outputs[:, alive:], cells[:, alive:]))
            torch.sigmoid(product(outputs[:, :alive], advancing, gate), out=gate)
            output = advance_doubled(gate, cells[:, :alive], cell, clips[0])
            output = output.mul_(2) if projecting is None else product(output, projecting)
            if clips[1] is None:
                stream.copy_(output)
            else:
                torch.clamp(output, -clips[1], clips[1], out=stream)
            outputs, cells = stream, cell

        ctx.save_for_backward(
            rows, gates, doubled, streams, first_outputs, first_cells,
            inputs, recurrent, projections,
        )  # fmt: skip
        ctx.batch_sizes, ctx.clips = batch_sizes, clips
        # sentences end shortest first, and the shortest comes last
        last = zip((outputs, cells), *reversed(ended), strict=True)
        last_outputs, last_cells = (torch.cat(parts, dim=1) for parts in last)
        return streams, last_outputs, last_cells.div_(2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        of_streams, of_outputs, of_cells = gradients
        rows, gates, doubled, streams, first_outputs, first_cells, *weights = ctx.saved_tensors
        inputs, recurrent, projections = weights
        if first_outputs is None or first_cells is None:
            first_outputs, first_doubled = (
                part.new_zeros(2, ctx.batch_sizes[0], part.shape[2]) for part in (streams, doubled)
            )
        else:
            first_doubled = 2 * first_cells
        of_rows = torch.empty_like(rows)
        of_inputs, of_recurrent = torch.zeros_like(inputs), torch.zeros_like(recurrent)
        of_bias = inputs.new_zeros(inputs.shape[:2])
        of_projections = None if projections is None else torch.zeros_like(projections)

        # what later steps add to the gradients of the rows they share with this one
        later = (of_outputs.clone(), of_cells / 2)
        for steps, earlier in blocks(ctx.batch_sizes, ROWS_AT_ONCE):
            block = slice(steps[0].start, steps[-1].stop)
            gate = gates[:, block]
            halves = torch.sigmoid(doubled[:, block]).sub_(0.5)
            earlier_outputs, earlier_cells = (
                torch.cat([first if at is None else part[:, at] for at in earlier], dim=1)
                for part, first in ((streams, first_outputs), (doubled, first_doubled))
            )
            of_memory, of_gates = derivatives(gate, halves, earlier_cells)
            free = (
                inside(doubled[:, block], None if ctx.clips[0] is None else 2 * ctx.clips[0]),
                inside(streams[:, block], ctx.clips[1]),
            )
            of_projected = back_through_block(
                steps, of_streams, later, gate, of_memory, of_gates, free, recurrent, projections
            )
            of_rows[:, block] = product(of_gates, inputs)
            turned = of_gates.transpose(1, 2)
            of_inputs += product(turned, rows[:, block])
            of_recurrent += product(turned, earlier_outputs)
            of_bias += of_gates.sum(dim=1)
            if of_projections is not None:
                projected = halves.mul_(gate.chunk(4, dim=-1)[2])
                of_projections += product(of_projected.transpose(1, 2), projected)

        of_weights = unmerge(of_inputs, of_bias, of_recurrent, of_projections)
        of_state = (None, None) if first_cells is None else (later[0], later[1].mul_(2))
        return of_rows[0], of_rows[1], *of_state, None, None, *of_weights


def back_through_block(
    steps: list[slice],
    of_streams: torch.Tensor,
    later: tuple[torch.Tensor, torch.Tensor],
    gate: torch.Tensor,
    of_memory: torch.Tensor,
    of_gates: torch.Tensor,
    free: tuple[torch.Tensor | None, torch.Tensor | None],
    recurrent: torch.Tensor,
    projections: torch.Tensor | None,
) -> torch.Tensor:
    """
    From the last step of a block to its first: turns the derivatives in `of_gates` into gradients,
    updates `later`, and returns the gradients of the projected outputs.
    """
    later_outputs, later_cells = later
    free_cells, free_outputs = free
    begin = steps[0].start
    of_projected = torch.empty_like(of_streams[:, begin : steps[-1].stop])
    forget_gate = gate.chunk(4, dim=-1)[1]
    parts = of_gates.chunk(4, dim=-1)
    for step in reversed(steps):
        alive = step.stop - step.start
        here = slice(step.start - begin, step.stop - begin)
        of_output = of_projected[:, here]
        torch.add(of_streams[:, step], later_outputs[:, :alive], out=of_output)
        if free_outputs is not None:
            of_output.mul_(free_outputs[:, here])
        of_output = of_output.mul(2) if projections is None else product(of_output, projections)
        cell = later_cells[:, :alive].addcmul_(of_output, of_memory[:, here])
        if free_cells is not None:
            cell.mul_(free_cells[:, here])
        for part, change in zip(parts, (cell, cell, of_output, cell), strict=True):
            part[:, here].mul_(change)
        cell.mul_(forget_gate[:, here])
        later_outputs[:, :alive] = product(of_gates[:, here], recurrent)
    return of_projected


def derivatives(
    gates: torch.Tensor, halves: torch.Tensor, earlier_cells: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """
    How half of what is projected changes with the doubled memory cell, and, as the gates lie: how
    the doubled memory cell changes with what is under the input gate, the forget gate and the
    candidate, and half of what is projected with what is under the output gate.

    Candidates and `halves` are sigmoids less 1/2, whose derivative is 1/4 - half ** 2.
    """
    input_gate, _, output_gate, candidate = gates.chunk(4, dim=-1)
    of_memory = torch.addcmul(output_gate, output_gate * halves, halves, value=-4).mul_(0.25)
    result = torch.addcmul(gates, gates, gates, value=-1)  # of a sigmoid
    of_input, of_forget, of_output, of_candidate = result.chunk(4, dim=-1)
    of_input.mul_(candidate).mul_(4)
    of_forget.mul_(earlier_cells)
    of_output.mul_(halves)
    torch.addcmul(input_gate, input_gate * candidate, candidate, value=-4, out=of_candidate)
    return of_memory, result


def merge(
    weights: Sequence[torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """
    Both directions' input weights, recurrent weights, biases and projections, each in one piece.
    They make twice the candidates, and of halves what is projected, so that one sigmoid serves all
    gates: see `advance_doubled`.
    """
    half = len(weights) // 2
    pairs = [torch.stack(pair) for pair in zip(weights[:half], weights[half:], strict=True)]
    inputs, bias, recurrent, *projections = pairs
    for part in (inputs, bias, recurrent):
        part.chunk(4, dim=1)[3].mul_(2)
    return inputs, recurrent, bias, projections[0].mul_(2) if projections else None


def unmerge(
    of_inputs: torch.Tensor,
    of_bias: torch.Tensor,
    of_recurrent: torch.Tensor,
    of_projections: torch.Tensor | None,
) -> list[torch.Tensor]:
    """The gradients of the weights, from those of what `merge` made of them."""
    kinds = [of_inputs, of_bias, of_recurrent]
    for part in kinds:
        part.chunk(4, dim=1)[3].mul_(2)
    if of_projections is not None:
        kinds.append(of_projections.mul_(2))
    return [kind[direction] for direction in range(2) for kind in kinds]


def inside(values: torch.Tensor, clip: float | None) -> torch.Tensor | None:
    """1 where a value was not clipped, else 0; None if none was."""
    if clip is None:
        return None
    lowest, highest = torch.aminmax(values)
    if -clip < lowest and highest < clip:
        return None
    return (values.abs() < clip).to(values.dtype)


TRAINING = Backend("training", can_read, read)
