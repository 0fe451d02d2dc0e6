# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The plain backend: autograd step by step, on any device, with adapters and hooks respected."""

from typing import TYPE_CHECKING

import torch

from .recurrence_interface import Backend, LayerInput, LayerOutput, directions

if TYPE_CHECKING:
    from .layers_elmo import ElmoLayer, ElmoLstmCell


def can_read(layer: "ElmoLayer", given: LayerInput) -> bool:
    return given.batch_sizes is not None


def read(layer: "ElmoLayer", given: LayerInput) -> LayerOutput:
    read = []
    for number, cell in enumerate(directions(layer)):
        # each distinct row is multiplied once, however often it occurs in the stream
        inputs = cell.input_linear(given.rows[number])
        positions = given.positions[number]
        state = None if given.state is None else (given.state[0][number], given.state[1][number])
        stream = inputs if positions is None else inputs[positions]
        read.append(read_direction(cell, stream, given.batch_sizes or [], state))
    return LayerOutput(*(torch.stack(parts) for parts in zip(*read, strict=True)))


def read_direction(
    cell: "ElmoLstmCell",
    inputs: torch.Tensor,
    batch_sizes: list[int],
    state: tuple[torch.Tensor, torch.Tensor] | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """
    Reads a stream from what `input_linear` made of it, (tokens, 4 * cell_size); returns its outputs
    as a stream, and the state of each sentence after its last token.
    """
    output, memory = (None, None) if state is None else state
    outputs, ended = [], []
    for gates, alive in zip(inputs.split(batch_sizes), batch_sizes, strict=True):
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
