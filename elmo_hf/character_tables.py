# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Convolutions over a word's characters as sums of table rows, for CPUs.

What a character adds to a filter depends on nothing but the character and its place in the
filter's window, and there are only 262 characters. So a product over all windows of all words
becomes a small product, which makes a table, and lookups in it.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def make_tables(embeddings: torch.Tensor, kernels: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """(window * characters, filters) for each kernel, (filters, embedding size, window)."""
    return [
        torch.einsum("ce,few->wcf", embeddings, kernel).flatten(0, 1).contiguous()
        for kernel in kernels
    ]


def pool_characters(
    tables: Sequence[torch.Tensor],
    biases: Sequence[torch.Tensor],
    num_characters: int,
    groups: Sequence[tuple[torch.Tensor, int]],
) -> torch.Tensor:
    """
    The maximum over the positions of words, (words, filters), from groups of words of about one
    length: each rows of character ids, and how many of a row's can differ from padding.
    """
    pooled = []
    for table, bias in zip(tables, biases, strict=True):
        window = len(table) // num_characters
        places = torch.arange(window) * num_characters
        # up to the first window of nothing but padding
        windows = [
            rows[:, : longest + window].unfold(1, window, 1) + places for rows, longest in groups
        ]
        pooled.append(LargestSum.apply(table, *windows) + bias)
    return torch.cat(pooled, dim=1)


class LargestSum(Function):
    """
    For each word and filter the largest sum of the table's rows that a window names, (words,
    filters), from groups of words, (words, positions, window).

    Only the window that wins has a gradient, so its backward pass visits no other.
    """

    @staticmethod
    def forward(ctx: Any, table: torch.Tensor, *groups: torch.Tensor) -> torch.Tensor:
        result, winners = [], []
        for windows in groups:
            words, positions, _ = windows.shape
            # detached: where a gradient seems wanted, torch takes a slower way
            rows = windows.flatten(0, 1)
            sums = nn.functional.embedding_bag(rows, table.detach(), mode="sum")
            sums = sums.view(words, positions, -1)
            result.append(sums.amax(dim=1))
            if ctx.needs_input_grad[0]:
                # the first of the winning positions; torch's argmax takes twenty times as long
                order = torch.arange(positions, 0, -1, dtype=sums.dtype).view(1, -1, 1)
                won = sums.eq_(result[-1].unsqueeze(1)).mul_(order)
                # NaN equals nothing; its gradient is NaN in any place
                winners.append((positions - won.amax(dim=1).long()).clamp_(max=positions - 1))
        ctx.save_for_backward(*groups, *winners)
        ctx.table_shape = table.shape
        return torch.cat(result)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        num_groups = len(ctx.saved_tensors) // 2
        groups, winners = ctx.saved_tensors[:num_groups], ctx.saved_tensors[num_groups:]
        of_table = gradients[0].new_zeros(ctx.table_shape)
        of_groups = gradients[0].split([len(windows) for windows in groups])
        for windows, winner, of_sums in zip(groups, winners, of_groups, strict=True):
            for offset in range(windows.shape[2]):
                rows = windows[:, :, offset].gather(1, winner)  # (words, filters)
                of_table.scatter_add_(0, rows, of_sums)
        return of_table, *[None for _ in groups]
