# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The exportable backend: time is one `scan`, so that no shape depends on what is read.

It reads rows that are (time, batch, size), where every sentence runs to the end: padding is read as
well, and the caller drops it.
"""

from typing import TYPE_CHECKING

import torch

from .private_interfaces import scan
from .recurrence_interface import Backend, LayerInput, LayerOutput, directions
from .recurrence_plain import advance

if TYPE_CHECKING:
    from .layers_elmo import ElmoLayer, ElmoLstmCell

State = tuple[torch.Tensor, torch.Tensor]


def can_read(layer: "ElmoLayer", given: LayerInput) -> bool:
    return given.batch_sizes is None


def read(layer: "ElmoLayer", given: LayerInput) -> LayerOutput:
    read = []
    for number, cell in enumerate(directions(layer)):
        rows = given.rows[number]
        if given.state is None:
            sizes = (cell.recurrent_linear.in_features, cell.cell_size)
            first = tuple(rows.new_zeros(rows.shape[1], size) for size in sizes)
        else:
            first = (given.state[0][number], given.state[1][number])
        (output, memory), stream = read_direction(cell, rows, first)
        read.append((stream, output, memory))
    return LayerOutput(*(torch.stack(parts) for parts in zip(*read, strict=True)))


def read_direction(
    cell: "ElmoLstmCell", rows: torch.Tensor, first: tuple[torch.Tensor, ...]
) -> tuple[State, torch.Tensor]:
    def step(state: State, gates: torch.Tensor) -> tuple[State, torch.Tensor]:
        output, memory = advance(cell, gates + cell.recurrent_linear(state[0]), state[1])
        # a scan's results may not share memory
        return (output, memory), output.clone()

    return scan(step, first, cell.input_linear(rows))


EXPORTABLE = Backend("exportable", can_read, read)
