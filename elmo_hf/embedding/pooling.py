# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""One vector per sentence from the vectors of its words."""

from collections.abc import Callable

import torch

POOLINGS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "mean": lambda words: words.mean(dim=-2),
    "max": lambda words: words.amax(dim=-2),
}


def pool_words(hidden: torch.Tensor, mask: None, pooling: str) -> torch.Tensor:
    """(..., words, size) -> (..., size); a sentence without words gets zeros."""
    if not hidden.shape[-2]:
        return hidden.new_zeros(*hidden.shape[:-2], hidden.shape[-1])
    return POOLINGS[pooling](hidden)
