# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What every backend of the recurrence is given and returns, and arithmetic that several share."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from .layers_elmo import ElmoLayer, ElmoLstmCell


class LayerInput(NamedTuple):
    """
    What both directions of a layer read. A direction's stream is its `rows[positions]`, or the rows
    themselves where there are no positions.
    """

    # forward and backward: (rows, size)
    rows: tuple[torch.Tensor, torch.Tensor]
    positions: tuple[torch.Tensor | None, torch.Tensor | None]
    # live rows at each time step, never growing; None where the rows are (time, batch, size) and
    # every sentence runs to the end, which is the form that an exporter can follow
    batch_sizes: list[int] | None
    # (2, batch, projection_size) and (2, batch, cell_size), or zeros
    state: tuple[torch.Tensor, torch.Tensor] | None


class LayerOutput(NamedTuple):
    # (2, tokens, projection_size), or (2, time, batch, projection_size)
    streams: torch.Tensor
    # the state of each sentence after its last token, in the shape of the one given
    outputs: torch.Tensor
    cells: torch.Tensor


class Backend(NamedTuple):
    name: str
    # whether it may serve this layer with this input now
    can_read: Callable[["ElmoLayer", LayerInput], bool]
    # reads both directions
    read: Callable[["ElmoLayer", LayerInput], LayerOutput]


def directions(layer: "ElmoLayer") -> tuple["ElmoLstmCell", "ElmoLstmCell"]:
    return layer.forward_cell, layer.backward_cell


def advance_doubled(
    gates: torch.Tensor, before: torch.Tensor, after: torch.Tensor, cell_clip: float | None
) -> torch.Tensor:
    """
    One step of LSTMs on doubled memory cells, from `before` into `after`, which may be the same
    memory; `gates` are sigmoids already and are overwritten. Returns half of what is projected.

    tanh x is 2 sigmoid(2 x) - 1. A sigmoid costs half as much as a tanh, and one pass serves all
    gates, with twice the candidate among them. Doubling and halving is exact, and with 1/2 taken
    off first, all that is lost is the rounding of the sigmoid itself, 3e-8.
    """
    input_gate, forget_gate, output_gate, candidate = gates.chunk(4, dim=-1)
    torch.mul(before, forget_gate, out=after)
    after.addcmul_(input_gate, candidate.sub_(0.5), value=4)
    if cell_clip is not None:
        after.clamp_(-2 * cell_clip, 2 * cell_clip)
    return torch.sigmoid(after).sub_(0.5).mul_(output_gate)


def blocks(
    batch_sizes: list[int], rows_at_once: int
) -> Iterator[tuple[list[slice], list[slice | None]]]:
    """
    The rows of each step, and the rows where the step before held the same sentences, None before
    the first step: from the last step to the first, in lists that have about `rows_at_once` rows.
    """
    steps: list[slice] = []
    earlier: list[slice | None] = []
    stop = sum(batch_sizes)
    for number in reversed(range(len(batch_sizes))):
        alive, start = batch_sizes[number], stop - batch_sizes[number]
        steps.insert(0, slice(start, stop))
        place = start - batch_sizes[number - 1]
        earlier.insert(0, slice(place, place + alive) if number else None)
        stop = start
        if not number or steps[-1].stop - stop >= rows_at_once:
            yield steps, earlier
            steps, earlier = [], []
