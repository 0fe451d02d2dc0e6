# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The fast path of training on a CPU: a layer's LSTMs with a backward pass written by hand.

autograd would keep and visit some thirty small results for every time step. Here both directions go
in step through batched products, and a weight's gradient is one product over the whole stream.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from .fast_inference import double_candidates

# rows of a stream whose derivatives are worked out together
ROWS_AT_ONCE = 160


class BothDirections(Function):
    """
    What `ElmoLstmCell` and its `input_linear` do, for both directions of a layer.

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
        merged, biases, projections = merge(weights)
        cell_clip, output_clip = clips
        num_rows, width = forward_rows.shape
        cell_size, output_size = merged.shape[1] // 4, merged.shape[2] - width
        # twice the candidates, so that one sigmoid serves all gates: see `advance`
        advancing = torch.stack([double_candidates(weight) for weight in merged]).transpose(1, 2)
        bias = torch.stack([double_candidates(some) for some in biases]).unsqueeze(1)
        projecting = None if projections is None else 2 * projections.transpose(1, 2)

        # each step's input, and beside it the output of the step before
        given = forward_rows.new_zeros(2, num_rows, width + output_size)
        torch.stack([forward_rows, backward_rows], out=given[..., :width])
        gates = given.new_empty(2, num_rows, 4 * cell_size)
        # twice the memory cells, half of their tanh
        doubled = given.new_empty(2, num_rows, cell_size)
        halves = torch.empty_like(doubled)
        streams = given.new_empty(2, num_rows, output_size)

        outputs = first_outputs
        cells = None if first_cells is None else 2 * first_cells
        ended = []
        steps = [
            part.split(batch_sizes, dim=1) for part in (given, gates, doubled, halves, streams)
        ]
        for read, gate, cell, half, stream in zip(*steps, strict=True):
            alive = read.shape[1]
            if outputs is not None and cells is not None:
                ended.append((outputs[:, alive:], cells[:, alive:]))
                read[..., width:] = outputs[:, :alive]
            torch.sigmoid(read.bmm(advancing).add_(bias), out=gate)
            input_gate, forget_gate, output_gate, candidate = gate.chunk(4, dim=-1)
            torch.mul(input_gate, candidate.sub_(0.5), out=cell).mul_(4)
            if cells is not None:
                cell.addcmul_(forget_gate, cells[:, :alive])
            if cell_clip is not None:
                cell.clamp_(-2 * cell_clip, 2 * cell_clip)
            torch.sigmoid(cell, out=half).sub_(0.5)
            output = half * output_gate
            output = output.mul_(2) if projecting is None else output.bmm(projecting)
            if output_clip is not None:
                output.clamp_(-output_clip, output_clip)
            outputs, cells = stream.copy_(output), cell

        ctx.save_for_backward(given, gates, doubled, halves, streams, first_cells, *weights)
        ctx.batch_sizes, ctx.clips = batch_sizes, clips
        # sentences end shortest first, and the shortest comes last
        last = zip((outputs, cells), *reversed(ended), strict=True)
        last_outputs, last_cells = (torch.cat(parts, dim=1) for parts in last)
        return streams, last_outputs, last_cells.div_(2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        of_streams, of_outputs, of_cells = gradients
        given, gates, doubled, halves, streams, first_cells, *weights = ctx.saved_tensors
        merged, _, projections = merge(weights)
        sizes, (cell_clip, output_clip) = ctx.batch_sizes, ctx.clips
        width = given.shape[2] - streams.shape[2]
        earlier_cells = one_step_earlier(doubled, first_cells, sizes)
        free_cells = inside(doubled, None if cell_clip is None else 2 * cell_clip)
        free_outputs = inside(streams, output_clip)
        of_given, of_projected = torch.empty_like(given), torch.empty_like(streams)
        of_merged = torch.zeros_like(merged)
        of_bias = merged.new_zeros(merged.shape[:2])

        # what later steps have to say about the rows they share with this one
        later_outputs, later_cells = of_outputs.clone(), of_cells.clone()
        for steps in blocks(sizes):
            block = slice(steps[-1].start, steps[0].stop)
            start = block.start
            some = (part[:, block] for part in (gates, halves, earlier_cells))
            of_memory, of_gates = derivatives(*some)
            forget_gates = gates[:, block].chunk(4, dim=-1)[1]
            parts = of_gates.chunk(4, dim=-1)
            for step in steps:
                alive = step.stop - step.start
                here = slice(step.start - start, step.stop - start)
                of_output = of_projected[:, step]
                torch.add(of_streams[:, step], later_outputs[:, :alive], out=of_output)
                if free_outputs is not None:
                    of_output.mul_(free_outputs[:, step])
                if projections is not None:
                    of_output = of_output.bmm(projections)
                cell = later_cells[:, :alive].addcmul_(of_output, of_memory[:, here])
                if free_cells is not None:
                    cell.mul_(free_cells[:, step])
                for part, change in zip(parts, (cell, cell, of_output, cell), strict=True):
                    part[:, here].mul_(change)
                cell.mul_(forget_gates[:, here])
                of_given[:, step] = of_gates[:, here].bmm(merged)
                later_outputs[:, :alive] = of_given[:, step, width:]
            of_merged.baddbmm_(of_gates.transpose(1, 2), given[:, block])
            of_bias += of_gates.sum(dim=1)

        kinds = [of_merged[..., :width].contiguous(), of_bias, of_merged[..., width:].contiguous()]
        if projections is not None:
            projected = halves * gates.chunk(4, dim=-1)[2]
            kinds.append(2 * of_projected.transpose(1, 2).bmm(projected))
        of_weights = [kind[direction] for direction in range(2) for kind in kinds]
        of_rows = of_given[..., :width]
        of_state = (None, None) if first_cells is None else (later_outputs, later_cells)
        return of_rows[0], of_rows[1], *of_state, None, None, *of_weights


def blocks(batch_sizes: list[int]) -> Iterator[list[slice]]:
    """The rows of each step, last step first, in lists whose rows fit into the caches together."""
    steps: list[slice] = []
    stop = sum(batch_sizes)
    for number in reversed(range(len(batch_sizes))):
        steps.append(slice(stop - batch_sizes[number], stop))
        stop -= batch_sizes[number]
        if not number or steps[0].stop - stop >= ROWS_AT_ONCE:
            yield steps
            steps = []


def one_step_earlier(
    doubled: torch.Tensor, first_cells: torch.Tensor | None, batch_sizes: list[int]
) -> torch.Tensor:
    """Twice the memory cells that each row of the stream started from."""
    if first_cells is None:
        first_cells = doubled.new_zeros(2, batch_sizes[0], doubled.shape[2])
    steps = zip(doubled.split(batch_sizes, dim=1), batch_sizes[1:], strict=False)
    return torch.cat([2 * first_cells, *(cells[:, :alive] for cells, alive in steps)], dim=1)


def derivatives(
    gates: torch.Tensor, halves: torch.Tensor, earlier_cells: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """
    How what is projected changes with the memory cell, and, as the gates lie: how the memory cell
    changes with what is under the input gate, the forget gate and the candidate, and what is
    projected with what is under the output gate.

    Candidates and `halves` are halves of a tanh, whose derivative is 1 - 4 * half ** 2.
    """
    input_gate, _, output_gate, candidate = gates.chunk(4, dim=-1)
    of_memory = torch.addcmul(output_gate, output_gate * halves, halves, value=-4)
    result = torch.addcmul(gates, gates, gates, value=-1)  # of a sigmoid
    of_input, of_forget, of_output, of_candidate = result.chunk(4, dim=-1)
    of_input.mul_(candidate).mul_(2)
    of_forget.mul_(earlier_cells).mul_(0.5)
    of_output.mul_(halves).mul_(2)
    torch.addcmul(input_gate, input_gate * candidate, candidate, value=-4, out=of_candidate)
    return of_memory, result


def merge(
    weights: Sequence[torch.Tensor],
) -> tuple[torch.Tensor, tuple[torch.Tensor, ...], torch.Tensor | None]:
    """
    Both directions' weights in one piece: input and recurrent ones side by side,
    (2, 4 * cell_size, input + output), biases, projections.
    """
    half = len(weights) // 2
    inputs, biases, recurrent, *projections = zip(weights[:half], weights[half:], strict=True)
    sides = [torch.cat(pair, dim=1) for pair in zip(inputs, recurrent, strict=True)]
    return torch.stack(sides), biases, torch.stack(projections[0]) if projections else None


def inside(values: torch.Tensor, clip: float | None) -> torch.Tensor | None:
    """1 where a value was not clipped, else 0; None if none was."""
    if clip is None:
        return None
    free = values.abs() < clip
    return None if free.all() else free.to(values.dtype)
