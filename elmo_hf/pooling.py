# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""One vector per sentence from the vectors of its words: the only list of poolings.

It imports no torch, because the configuration knows the names of the poolings.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def pool_mean(hidden: "torch.Tensor", live: "torch.Tensor") -> "torch.Tensor":
    return hidden.masked_fill(~live, 0).sum(dim=-2) / live.sum(dim=-2).clamp(min=1)


def pool_max(hidden: "torch.Tensor", live: "torch.Tensor") -> "torch.Tensor":
    if not hidden.shape[-2]:
        return pool_mean(hidden, live)
    largest = hidden.masked_fill(~live, float("-inf")).amax(dim=-2)
    return largest.masked_fill(~live.any(dim=-2), 0)


# Each reduces (..., words, size) to (..., size), given which words are live, (..., words, 1). A
# sentence without words gets zeros.
POOLINGS: "dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]" = {
    "mean": pool_mean,
    "max": pool_max,
}


def pool_words(hidden: "torch.Tensor", mask: "torch.Tensor | None", pooling: str) -> "torch.Tensor":
    """(..., words, size) -> (..., size) over the words where `mask` is set, by default all."""
    live = hidden.new_ones(hidden.shape[-2]).bool() if mask is None else mask
    return POOLINGS[pooling](hidden, live.unsqueeze(-1))
