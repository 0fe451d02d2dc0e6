# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What happens between the products of a time step: as operations of torch, or as kernels.

On a GPU every operation of torch is a launch, and a step is so small that launches take longer than
the work. Where Triton is there, as beside torch with CUDA on Linux, two kernels take their place.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch
from transformers.utils import logging

logger = logging.get_logger(__name__)

sigmoid_backward = torch.ops.aten.sigmoid_backward
tanh_backward = torch.ops.aten.tanh_backward


class Pointwise(NamedTuple):
    """All tensors are (rows, 2, cell_size), and four times as wide where they are of gates."""

    # (gates, before, cells, hidden, clip): from what is under the gates and the memory cells before
    # the step, the gates themselves in the same memory, the new memory cells in `cells`, and in
    # `hidden` what is projected; returns the memory cells once clipped
    advance: Callable[..., torch.Tensor]
    # (of_hidden, of_cells, gates, cells, kept, squashed, before, of_gates): gradients of what is
    # under the gates into `of_gates`; `of_cells` are gradients of the clipped memory cells `kept`,
    # whose tanh is `squashed`, and become those of the memory cells before the step
    retreat: Callable[..., None]


def advance(
    gates: torch.Tensor,
    before: torch.Tensor,
    cells: torch.Tensor,
    hidden: torch.Tensor,
    clip: float | None,
) -> torch.Tensor:
    size = cells.shape[-1]
    sigmoids, candidate = gates.split([3 * size, size], dim=-1)
    input_gate, forget_gate, output_gate = sigmoids.sigmoid_().chunk(3, dim=-1)
    torch.mul(before, forget_gate, out=cells).addcmul_(input_gate, candidate.tanh_())
    kept = cells if clip is None else cells.clamp(-clip, clip)
    torch.tanh(kept, out=hidden).mul_(output_gate)
    return kept


def retreat(
    of_hidden: torch.Tensor,
    of_cells: torch.Tensor,
    gates: torch.Tensor,
    cells: torch.Tensor,
    kept: torch.Tensor,
    squashed: torch.Tensor,
    before: torch.Tensor,
    of_gates: torch.Tensor,
) -> None:
    input_gate, forget_gate, output_gate, candidate = gates.chunk(4, dim=-1)
    of_input, of_forget, of_output, of_candidate = of_gates.chunk(4, dim=-1)
    of_cells.addcmul_(tanh_backward(of_hidden, squashed), output_gate)
    # a memory cell that was clipped does not matter; one at the very edge does, as for autograd
    of_cells.mul_(kept.eq(cells))
    torch.mul(of_cells, candidate, out=of_input)
    torch.mul(of_cells, before, out=of_forget)
    torch.mul(of_hidden, squashed, out=of_output)
    torch.mul(of_cells, input_gate, out=of_candidate)
    three = 3 * cells.shape[-1]
    changes = of_gates[..., :three]
    sigmoid_backward(changes, gates[..., :three], grad_input=changes)
    tanh_backward(of_candidate, candidate, grad_input=of_candidate)
    of_cells.mul_(forget_gate)


OPERATIONS = Pointwise(advance, retreat)


@functools.cache
def choose_pointwise(device: torch.device, dtype: torch.dtype) -> Pointwise:
    """Kernels on a GPU where they are there and right, and operations of torch elsewhere."""
    if device.type != "cuda" or dtype == torch.float64:
        return OPERATIONS
    try:
        from .recurrence_kernels import KERNELS

        check(KERNELS, device, dtype)
    except ImportError:
        return OPERATIONS
    # whatever a compiler or a driver may raise
    except Exception as error:
        logger.warning(
            f"The Triton kernels of ELMo's LSTMs do not work on {device} ({error}); operations of "
            "torch take their place and are slower."
        )
        return OPERATIONS
    return KERNELS


def check(pointwise: Pointwise, device: torch.device, dtype: torch.dtype) -> None:
    """Raises an error unless it does what the operations of torch do."""
    bound = 1e-5 if dtype == torch.float32 else 0.05
    found, expected = (try_out(some, device, dtype) for some in (pointwise, OPERATIONS))
    for ours, torchs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, torchs, rtol=bound, atol=bound)


@torch.no_grad()
def try_out(
    pointwise: Pointwise, device: torch.device, dtype: torch.dtype, rows: int = 3, size: int = 5
) -> list[torch.Tensor]:
    """The results of a step, and of one back; nothing random, which would change later draws."""

    def some(scale: float, width: int = size) -> torch.Tensor:
        numbers = torch.arange(rows * 2 * width, device=device)
        return torch.sin(numbers * scale).view(rows, 2, width).to(dtype)

    clip, before, gates = 0.5, some(0.9), 2 * some(0.7, 4 * size)
    cells, hidden = torch.empty_like(before), torch.empty_like(before)
    kept = pointwise.advance(gates, before, cells, hidden, clip)
    # not from these results: what one rounding clips, another may not
    others, of_cells, of_gates = some(0.8), some(1.3), torch.empty_like(gates)
    clipped = others.clamp(-clip, clip)
    opened = some(0.6, 4 * size).sigmoid()
    pointwise.retreat(
        some(1.1), of_cells, opened, others, clipped, clipped.tanh(), before, of_gates
    )
    return [gates, cells, hidden, kept, of_cells, of_gates]
