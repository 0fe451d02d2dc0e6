# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Products of large matrices on a CPU, as passes that are written by hand need them.

torch multiplies matrices of float32 by MKL, which on CPUs that are not Intel's leaves AVX-512
unused. oneDNN, which torch brings along as well but keeps for its compiler, is twice as fast there,
and as fast elsewhere; only small products start sooner in MKL.
"""

import torch

from .prepared_weights import can_pack
from .private_interfaces import packed_linear

# multiplications from which on oneDNN is the faster one
MANY = 1 << 22


def product(
    left: torch.Tensor, right: torch.Tensor, add: torch.Tensor | None = None
) -> torch.Tensor:
    """left @ right + add, for matrices in pairs: (2, n, k), (2, k, m) and (2, n, m)."""
    if use_onednn(left, right):
        added = [None] * len(left) if add is None else add
        parts = zip(left, right, added, strict=True)
        return torch.stack([packed_linear(one, by.T, add=more) for one, by, more in parts])
    return left.bmm(right) if add is None else torch.baddbmm(add, left, right)


def use_onednn(left: torch.Tensor, right: torch.Tensor) -> bool:
    return (
        left.shape[1] * left.shape[2] * right.shape[2] >= MANY
        and left.device.type == "cpu"
        and left.dtype == right.dtype == torch.float32
        and can_pack()
    )
