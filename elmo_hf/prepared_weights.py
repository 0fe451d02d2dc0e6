# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Copies of weights in an order that suits a CPU, and when such a copy is stale.

`prepare_for_inference` makes three kinds of copies: `PackedWeight` for a linear layer,
`CharacterTables` for the convolutions, and those of `recurrence_prepared` for the LSTMs. Where a
copy cannot be made, or must not be used, the model takes its plain path.
"""

import functools
from typing import TypeVar

import torch
from torch import nn

from .character_tables import make_tables
from .private_interfaces import pack_weight, packed_linear, weight_version


class WeightCopy:
    """
    A copy of weights that knows whether they have changed since.

    It is stale once a weight was moved or replaced (its address: the samples keep the old memory
    from being used again), or written in place where autograd sees it, as a whole, in a slice or
    in a view: by an optimizer, `load_state_dict`, or `copy_` under `no_grad` (its version). A write
    through `.data` or numpy leaves no such trace and is noticed only if it changes one of about 32
    sampled values, so call `prepare_for_inference` again after one.
    """

    SAMPLES = 32

    def __init__(self, *weights: torch.Tensor):
        self.originals = []
        for weight in weights:
            sample = in_memory_order(weight.detach())[:: max(1, weight.numel() // self.SAMPLES)]
            version = weight_version(weight)
            self.originals.append((weight.data_ptr(), version, sample, sample.clone()))

    def matches(self, *weights: torch.Tensor) -> bool:
        """Whether these are the weights it was made of, unchanged."""
        return len(weights) == len(self.originals) and all(
            weight.data_ptr() == address
            and weight_version(weight) == version
            and torch.equal(sample, seen)
            for weight, (address, version, sample, seen) in zip(
                weights, self.originals, strict=True
            )
        )

    def __reduce__(self):
        # a copied or unpickled model starts unprepared: packed memory cannot be copied
        return _nothing, ()


def in_memory_order(weight: torch.Tensor) -> torch.Tensor:
    """Its numbers in a row, which share its memory wherever they fill it without gaps."""
    order = sorted(range(weight.dim()), key=weight.stride, reverse=True)
    return weight.permute(order).flatten()


def _nothing() -> None:
    return None


Copy = TypeVar("Copy", bound=WeightCopy)


def usable_copy(copy: Copy | None, *weights: torch.Tensor) -> Copy | None:
    """The copy, if gradients are off and it is not stale."""
    if copy is None or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
        return None
    return copy if copy.matches(*weights) else None


def can_copy(*weights: torch.Tensor) -> bool:
    """Whether there are weights, of the kind for which copies are faster."""
    return bool(weights) and all(
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and weight.is_contiguous()
        and not weight.is_inference()
        for weight in weights
    )


def is_plain_cpu(*weights: torch.Tensor) -> bool:
    """Whether torch computes with these as they are: on a CPU, in full precision, step by step."""
    return (
        not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
        and all(
            weight.device.type == "cpu" and weight.dtype in (torch.float32, torch.float64)
            for weight in weights
        )
    )


class PackedMatrix:
    """A weight in the blocked order of oneDNN."""

    def __init__(self, weight: torch.Tensor):
        self.packed = pack_weight(weight)

    def __call__(
        self,
        inputs: torch.Tensor,
        bias: torch.Tensor | None = None,
        add: torch.Tensor | None = None,
    ) -> torch.Tensor:
        return packed_linear(inputs, self.packed, bias, add)


@functools.cache
def can_pack() -> bool:
    """Whether this torch has the operators, and they work: they are private."""
    try:
        packed = PackedMatrix(torch.zeros(2, 3))
        return bool(packed(torch.zeros(1, 3), add=torch.ones(1, 2)).eq(1).all())
    except (AttributeError, RuntimeError):
        return False


class PackedWeight(WeightCopy):
    """A linear layer's weight, packed."""

    # oneDNN makes and keeps a kernel for every number of rows. Powers of two up to this number, and
    # its multiples, are few, and the rows they add cost next to nothing.
    FEW_ROWS = 16

    def __init__(self, weight: torch.Tensor):
        super().__init__(weight)
        self.matrix = PackedMatrix(weight.detach())

    def __call__(self, inputs: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        rows = len(inputs)
        step = min(self.FEW_ROWS, 1 << (rows - 1).bit_length())
        if rows % step:
            inputs = nn.functional.pad(inputs, (0, 0, 0, -rows % step))
        return self.matrix(inputs, bias)[:rows]


def copy_linear(weight: torch.Tensor) -> PackedWeight | None:
    """A packed copy, or None where packing cannot work."""
    return PackedWeight(weight) if can_copy(weight) and can_pack() else None


class CharacterTables(WeightCopy):
    """The tables that replace the convolutions over a word's characters."""

    def __init__(self, embeddings: torch.Tensor, *kernels: torch.Tensor):
        super().__init__(embeddings, *kernels)
        self.tables = make_tables(embeddings.detach(), [kernel.detach() for kernel in kernels])


def copy_convolutions(*weights: torch.Tensor) -> CharacterTables | None:
    """The tables of embeddings and kernels, or None where they cannot work."""
    return CharacterTables(*weights) if can_copy(*weights) else None
