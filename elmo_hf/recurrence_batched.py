# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The batched backend: both directions in step, for GPUs and for low precision.

On a GPU a step takes as long as its operations take to launch, not as their work takes. Here one
batched product serves both directions, what lies between products is done in place or by kernels of
ours, and the backward pass is written by hand.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from .packing import select_rows
from .prepared_weights import is_plain_cpu
from .recurrence_interface import Backend, LayerInput, LayerOutput
from .recurrence_plain import windows
from .recurrence_pointwise import choose_pointwise
from .recurrence_steps import (
    Buffers,
    Pair,
    Settings,
    WayBack,
    Weights,
    last_state,
    pair,
    read_steps,
)

if TYPE_CHECKING:
    from .layers_elmo import ElmoLayer

# Tokens whose gates are in memory together in inference; training keeps those of all.
TOKENS_AT_ONCE = 1 << 12


def can_read(layer: "ElmoLayer", given: LayerInput) -> bool:
    """
    Wherever a CPU's own backends do not serve and no adapter or hook is in the way. A model in
    `eval` mode that wants gradients may want theirs as well, which only autograd has.
    """
    if given.batch_sizes is None or torch.compiler.is_compiling() or is_plain_cpu(given.rows[0]):
        return False
    weights = layer.plain_weights()
    if weights is None:
        return False
    tensors = all_tensors(given, weights)
    if wants_gradients(tensors) and not layer.training:
        return False
    return len({tensor.device for tensor in tensors}) == 1 and product_dtype(tensors) is not None


def all_tensors(given: LayerInput, weights: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [*given.rows, *weights, *(given.state or ())]


def wants_gradients(tensors: Sequence[torch.Tensor]) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def product_dtype(tensors: Sequence[torch.Tensor]) -> torch.dtype | None:
    """In which precision torch would multiply these; None where they disagree."""
    dtypes = {tensor.dtype for tensor in tensors}
    if autocasts(tensors[0].device):
        # which leaves double precision alone
        low = torch.get_autocast_dtype(tensors[0].device.type)
        return None if torch.float64 in dtypes else low
    return dtypes.pop() if len(dtypes) == 1 else None


def autocasts(device: torch.device) -> bool:
    kind = device.type
    return torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)


def on_device(device: torch.device) -> AbstractContextManager:
    """Makes a GPU the current one, which Triton, unlike torch, takes without looking at tensors."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def read(layer: "ElmoLayer", given: LayerInput) -> LayerOutput:
    sizes, cell = given.batch_sizes or [], layer.forward_cell
    weights = layer.plain_weights() or []
    tensors = all_tensors(given, weights)
    device, dtype = tensors[0].device, cast(torch.dtype, product_dtype(tensors))
    is_trained = wants_gradients(tensors)
    if given.state is None:
        widths = (cell.recurrent_linear.in_features, cell.cell_size)
        state = [weights[0].new_zeros(sizes[0], 2, width, dtype=dtype) for width in widths]
    else:
        state = [part.transpose(0, 1).contiguous().to(dtype) for part in given.state]
    clips = (cell.cell_clip, cell.projection_clip)
    with on_device(device):
        settings = Settings(sizes, clips, choose_pointwise(device, dtype))
        if is_trained:
            rows = read_rows(given, slice(None), dtype)
            results = BothDirections.apply(*rows, *state, settings, *weights)
        else:
            results = read_windows(given, state, pair(weights, dtype), settings)
    return LayerOutput(*(part.transpose(0, 1) for part in results))


def read_rows(given: LayerInput, tokens: slice, dtype: torch.dtype) -> list[torch.Tensor]:
    """What each direction reads there, (tokens, size)."""
    return [
        (rows[tokens] if positions is None else select_rows(rows, positions[tokens])).to(dtype)
        for rows, positions in zip(given.rows, given.positions, strict=True)
    ]


def read_windows(
    given: LayerInput, state: Sequence[torch.Tensor], weights: Weights, settings: Settings
) -> tuple[torch.Tensor, ...]:
    """Without gradients: streams, last outputs, last memory cells."""
    outputs, cells = state
    streams: list[torch.Tensor] = []
    ended: list[Pair] = []
    for start, sizes in windows(settings.batch_sizes, TOKENS_AT_ONCE):
        rows = read_rows(given, slice(start, start + sum(sizes)), outputs.dtype)
        buffers, outputs, cells = read_steps(
            rows, outputs, cells, weights, settings._replace(batch_sizes=sizes), ended
        )
        streams.append(buffers.streams)
    return torch.cat(streams), *last_state(outputs, cells, ended)


class BothDirections(Function):
    """What the plain backend does, in the precision of rows and state, if not of the weights."""

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
        rows = (forward_rows, backward_rows)
        ended: list[Pair] = []
        buffers, outputs, cells = read_steps(
            rows, first_outputs, first_cells, pair(weights, first_cells.dtype), settings, ended
        )
        # the weights as they are, not the pairs made of them, which would be a second copy
        ctx.save_for_backward(*rows, first_outputs, first_cells, *buffers, *weights)
        ctx.settings = settings
        return buffers.streams, *last_state(outputs, cells, ended)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        saved = ctx.saved_tensors
        rows, first = saved[:2], saved[2:4]
        buffers, weights = Buffers(*saved[4:8]), pair(saved[8:], first[1].dtype)
        with on_device(rows[0].device):
            way = WayBack(rows, first, buffers, weights, ctx.settings, gradients)
            way.go()
        # autograd turns them into the precision of the weights
        return *way.of_rows, way.of_first_outputs, way.of_cells, None, *way.of_weights()


BATCHED = Backend("batched", can_read, read)
