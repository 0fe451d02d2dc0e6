# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""One vector per sentence from the vectors of its words: the only list of poolings."""

from collections.abc import Callable

import torch


def pool_mean(hidden: torch.Tensor, live: torch.Tensor) -> torch.Tensor:
    return hidden.masked_fill(~live, 0).sum(dim=-2) / live.sum(dim=-2).clamp(min=1)


def pool_max(hidden: torch.Tensor, live: torch.Tensor) -> torch.Tensor:
    if not hidden.shape[-2]:
        return pool_mean(hidden, live)
    lowest = torch.finfo(hidden.dtype).min
    return hidden.masked_fill(~live, lowest).amax(dim=-2).masked_fill(~live.any(dim=-2), 0)


# Each reduces (..., words, size) to (..., size), given which words are live, (..., words, 1). A
# sentence without words gets zeros.
POOLINGS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "mean": pool_mean,
    "max": pool_max,
}


def pool_words(hidden: torch.Tensor, mask: torch.Tensor | None, pooling: str) -> torch.Tensor:
    """(..., words, size) -> (..., size) over the words where `mask` is set, by default all."""
    if mask is None:
        mask = torch.ones(hidden.shape[-2], dtype=torch.bool, device=hidden.device)
    return POOLINGS[pooling](hidden, mask.unsqueeze(-1))
