# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The plain backend: autograd step by step, on any device, with adapters and hooks respected."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import torch

from .recurrence_interface import Backend, LayerInput, LayerOutput, directions

if TYPE_CHECKING:
    from .layers_elmo import ElmoLayer, ElmoLstmCell

# Tokens whose gates are in memory together when no gradients are wanted, which would need all of
# them: more than any usual batch has, and for the largest published models half a gigabyte.
TOKENS_AT_ONCE = 1 << 13


def can_read(layer: "ElmoLayer", given: LayerInput) -> bool:
    return given.batch_sizes is not None


def read(layer: "ElmoLayer", given: LayerInput) -> LayerOutput:
    read = []
    for number, cell in enumerate(directions(layer)):
        sizes = given.batch_sizes or []
        inputs = gate_inputs(cell, given.rows[number], given.positions[number], sizes)
        state = None if given.state is None else (given.state[0][number], given.state[1][number])
        read.append(read_direction(cell, inputs, sizes, state))
    return LayerOutput(*(torch.stack(parts) for parts in zip(*read, strict=True)))


def gate_inputs(
    cell: "ElmoLstmCell", rows: torch.Tensor, index: torch.Tensor | None, batch_sizes: list[int]
) -> Iterator[torch.Tensor]:
    """What the input adds to the gates, (alive, 4 * cell_size) for each step."""
    keeps_all = torch.is_grad_enabled()
    # each distinct row is multiplied once, however often it occurs in the stream
    is_ready = index is not None and (keeps_all or len(rows) <= TOKENS_AT_ONCE)
    inputs = cell.input_linear(rows) if is_ready else rows
    for start, sizes in windows(batch_sizes, sum(batch_sizes) if keeps_all else TOKENS_AT_ONCE):
        end = start + sum(sizes)
        some = inputs[start:end] if index is None else inputs[index[start:end]]
        yield from (some if is_ready else cell.input_linear(some)).split(sizes)


def windows(batch_sizes: list[int], tokens: int) -> Iterator[tuple[int, list[int]]]:
    """Steps that have about this many tokens together: where the first begins, and their sizes."""
    start, count, sizes = 0, 0, []
    for alive in batch_sizes:
        sizes.append(alive)
        count += alive
        if count >= tokens:
            yield start, sizes
            start, count, sizes = start + count, 0, []
    if sizes:
        yield start, sizes


def read_direction(
    cell: "ElmoLstmCell",
    inputs: Iterable[torch.Tensor],
    batch_sizes: list[int],
    state: tuple[torch.Tensor, torch.Tensor] | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """
    Reads a stream from what `input_linear` made of it, step by step; returns its outputs as a
    stream, and the state of each sentence after its last token.
    """
    output, memory = (None, None) if state is None else state
    outputs, ended = [], []
    for gates, alive in zip(inputs, batch_sizes, strict=True):
        if output is not None and memory is not None:
            if alive < len(output):
                ended.append((output[alive:], memory[alive:]))
                output, memory = output[:alive], memory[:alive]
            gates = gates + cell.recurrent_linear(output)  # (alive, 4 * cell_size)
        output, memory = advance(cell, gates, memory)
        outputs.append(output)
    # sentences end shortest first, and the shortest comes last
    finals = zip((output, memory), *reversed(ended), strict=True)
    final_output, final_memory = (torch.cat(parts) for parts in finals)
    return torch.cat(outputs), final_output, final_memory


def advance(
    cell: "ElmoLstmCell", gates: torch.Tensor, memory: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """One step from what is under the gates, (rows, 4 * cell_size): output and memory cell."""
    sigmoids, candidate = gates.split([3 * cell.cell_size, cell.cell_size], dim=1)
    input_gate, forget_gate, output_gate = torch.sigmoid(sigmoids).chunk(3, dim=1)
    kept = 0.0 if memory is None else forget_gate * memory
    memory = input_gate * torch.tanh(candidate) + kept
    if cell.cell_clip is not None:
        memory = memory.clamp(-cell.cell_clip, cell.cell_clip)
    output = output_gate * torch.tanh(memory)  # (rows, cell_size)
    if cell.projection is not None:
        output = cell.projection(output)  # (rows, projection_size)
    if cell.projection_clip is not None:
        output = output.clamp(-cell.projection_clip, cell.projection_clip)
    return output, memory


PLAIN = Backend("plain", can_read, read)
