# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The pointwise part of a time step as two Triton kernels, each one launch.

They compute in single precision whatever is stored, and read and write rows that lie one after the
other. No GPU was at hand: they are tested in Triton's interpreter and compiled for several GPUs,
and `choose_pointwise` tries them out before it trusts them.
"""

import torch

# transformers asks nobody for a library that is imported in a `try`: this one is optional
try:
    import triton
    import triton.language as tl
except ImportError as error:
    raise ImportError("Triton is not installed.") from error

from .recurrence_pointwise import Pointwise

# numbers of a row that one program of a kernel works on
BLOCK = 512


# Functions of our own, also where `tl` has them: the interpreter cannot enter those of a library
# that was imported before it was chosen.


@triton.jit
def sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def tanh(x):
    """Triton has none; near zero, where 1 - exp would lose digits, by its series."""
    power = tl.exp(-2 * tl.abs(x))
    large = (1 - power) / (1 + power)
    square = x * x
    series = 1 + square * (-1 / 3 + square * (2 / 15 - square * (17 / 315)))
    return tl.where(tl.abs(x) < 0.2, x * series, tl.where(x < 0, -large, large))


@triton.jit
def place(size, BLOCK: tl.constexpr):
    """Where this program's numbers are in rows of `size`, and in rows of gates; which exist."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    return row * size + column, row * 4 * size + column, column < size


@triton.jit
def read(start, where, exists):
    return tl.load(start + where, mask=exists, other=0.0).to(tl.float32)


@triton.jit
def advance_kernel(
    gates, before, cells, kept, hidden, size, CLIP: tl.constexpr, BLOCK: tl.constexpr
):
    here, gate, exists = place(size, BLOCK)
    input_gate = sigmoid(read(gates, gate, exists))
    forget_gate = sigmoid(read(gates, gate + size, exists))
    output_gate = sigmoid(read(gates, gate + 2 * size, exists))
    candidate = tanh(read(gates, gate + 3 * size, exists))
    cell = read(before, here, exists) * forget_gate + input_gate * candidate
    # as it is stored: the way back asks whether clipping changed it
    cell = cell.to(cells.dtype.element_ty).to(tl.float32)
    tl.store(cells + here, cell, mask=exists)
    if CLIP is not None:
        edge = tl.full((BLOCK,), CLIP, tl.float32).to(cells.dtype.element_ty).to(tl.float32)
        # not by a maximum, which would swallow what is not a number
        cell = tl.where(cell > edge, edge, tl.where(cell < -edge, -edge, cell))
        tl.store(kept + here, cell, mask=exists)
    tl.store(hidden + here, output_gate * tanh(cell), mask=exists)
    tl.store(gates + gate, input_gate, mask=exists)
    tl.store(gates + gate + size, forget_gate, mask=exists)
    tl.store(gates + gate + 2 * size, output_gate, mask=exists)
    tl.store(gates + gate + 3 * size, candidate, mask=exists)


@triton.jit
def retreat_kernel(
    of_hidden, of_cells, gates, cells, kept, squashed, before, of_gates, size, BLOCK: tl.constexpr
):
    here, gate, exists = place(size, BLOCK)
    input_gate = read(gates, gate, exists)
    forget_gate = read(gates, gate + size, exists)
    output_gate = read(gates, gate + 2 * size, exists)
    candidate = read(gates, gate + 3 * size, exists)
    of_output = read(of_hidden, here, exists)
    tanh_of_cell = read(squashed, here, exists)
    of_cell = read(of_cells, here, exists)
    of_cell += of_output * output_gate * (1 - tanh_of_cell * tanh_of_cell)
    was_kept = read(kept, here, exists) == read(cells, here, exists)
    of_cell = tl.where(was_kept, of_cell, 0.0)
    tl.store(of_cells + here, of_cell * forget_gate, mask=exists)
    of_output *= tanh_of_cell * output_gate * (1 - output_gate)
    of_input = of_cell * candidate * input_gate * (1 - input_gate)
    of_forget = of_cell * read(before, here, exists) * forget_gate * (1 - forget_gate)
    of_candidate = of_cell * input_gate * (1 - candidate * candidate)
    tl.store(of_gates + gate, of_input, mask=exists)
    tl.store(of_gates + gate + size, of_forget, mask=exists)
    tl.store(of_gates + gate + 2 * size, of_output, mask=exists)
    tl.store(of_gates + gate + 3 * size, of_candidate, mask=exists)


def grid(cells: torch.Tensor) -> tuple[int, int]:
    """A program for every piece of every row of both directions."""
    rows, directions, size = cells.shape
    return rows * directions, triton.cdiv(size, BLOCK)


def advance(
    gates: torch.Tensor,
    before: torch.Tensor,
    cells: torch.Tensor,
    hidden: torch.Tensor,
    clip: float | None,
) -> torch.Tensor:
    kept = cells if clip is None else torch.empty_like(cells)
    size = cells.shape[-1]
    advance_kernel[grid(cells)](gates, before, cells, kept, hidden, size, CLIP=clip, BLOCK=BLOCK)
    return kept


def retreat(*tensors: torch.Tensor) -> None:
    cells = tensors[1]
    retreat_kernel[grid(cells)](*tensors, cells.shape[-1], BLOCK=BLOCK)


KERNELS = Pointwise(advance, retreat)
