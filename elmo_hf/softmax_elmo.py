# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The biLM's softmax over words: full, or sampled as in bilm-tf.

Sampling follows TensorFlow's `sampled_softmax_loss` with its log-uniform sampler: distinct negative
words, drawn once for all positions, more often the more frequent they are (the vocabulary is sorted
by frequency), and each logit corrected by the log of how surely its word is in such a sample.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from .matrix_products import product

# logits held at once while no gradients are wanted: 128 MB of float32
LOGITS_AT_ONCE = 1 << 25


def log_uniform(words: torch.Tensor, vocab_size: int) -> torch.Tensor:
    """P(k) = log((k + 2) / (k + 1)) / log(V + 1), in double precision."""
    return torch.log1p(1 / (words.double() + 1)) / math.log(vocab_size + 1)


def sample_distinct(
    count: int, vocab_size: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """`count` distinct words by log-uniform draws, sorted, and how many draws that took."""
    if count > vocab_size:
        raise ValueError(f"Cannot draw {count} distinct words from a vocabulary of {vocab_size}.")
    draws = torch.empty(0, dtype=torch.long, device=device)
    words = draws
    while len(words) < count:
        uniform = torch.rand(2 * count, dtype=torch.double, device=device)
        more = (uniform * math.log(vocab_size + 1)).exp().long() - 1
        draws = torch.cat([draws, more.clamp_(0, vocab_size - 1)])
        words, number = draws.unique(return_inverse=True)
    when = torch.arange(len(draws), device=device)
    first = torch.full_like(words, len(draws)).scatter_reduce_(0, number, when, "amin")
    drawn, order = first.sort()
    return words[order[:count].sort().values], drawn[count - 1] + 1


def log_expected_count(words: torch.Tensor, tries: torch.Tensor, vocab_size: int) -> torch.Tensor:
    """log(1 - (1 - p)^tries): how likely each word is among the distinct ones of `tries` draws."""
    misses = tries * torch.log1p(-log_uniform(words, vocab_size))
    return torch.log(-torch.expm1(misses)).float()


def at_least_float(values: torch.Tensor) -> torch.Tensor:
    return values.to(torch.promote_types(values.dtype, torch.float32))


def losses_of(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Cross entropies, in whose computation the scores (n, words) are overwritten."""
    true = scores.gather(1, targets.clamp(min=0).unsqueeze(1))
    largest = scores.amax(dim=1, keepdim=True)
    total = scores.sub_(largest).exp_().sum(dim=1, keepdim=True)
    losses = (largest + total.log() - true).squeeze(1)
    return losses.masked_fill(targets < 0, 0)


class ElmoSoftmax(nn.Linear):
    """A row of weights and a bias for each word, shared by both directions."""

    # A training may put a function here that gives the rows of distinct words, so that these get
    # the gradients, which would otherwise be as large as the whole softmax. It is also told how
    # many words there were with repetitions.
    draw: Callable[[torch.Tensor, int], Sequence[torch.Tensor]] | None = None

    def look_up(self, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The weights and biases of some words."""
        if self.draw is None:
            return nn.functional.embedding(words, self.weight), self.bias[words]
        distinct, places = words.unique(return_inverse=True)
        weight, bias = self.draw(distinct, words.numel())
        return nn.functional.embedding(places, weight), bias[places]

    def losses(self, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """-log P(target) for each row of `hidden` (n, projection_size); 0 where it is -100."""
        if torch.is_grad_enabled():
            return nn.functional.cross_entropy(self(hidden), targets, reduction="none")
        hidden = hidden.to(self.weight.dtype)
        rows = max(1, LOGITS_AT_ONCE // self.out_features)
        # The logits of all parts are in the same memory, because malloc may not use the space of
        # earlier ones again if small results lie between them, and memory would fill up.
        logits = hidden.new_empty(min(rows, len(hidden)), self.out_features)
        losses = hidden.new_empty(len(hidden))
        parts = (tensor.split(rows) for tensor in (hidden, targets, losses))
        for some, goal, found in zip(*parts, strict=True):
            scores = torch.addmm(self.bias, some, self.weight.T, out=logits[: len(some)])
            found.copy_(losses_of(scores, goal))
        return losses

    def sampled_losses(
        self, hidden: torch.Tensor, targets: torch.Tensor, num_negatives: int
    ) -> torch.Tensor:
        """
        The same over the target and `num_negatives` other words only, for training: `hidden` is
        (directions, n, projection_size), and every direction has negatives of its own.
        """
        # an autocast would take the scores' precision
        with torch.autocast(hidden.device.type, enabled=False):
            return self._sampled_losses(at_least_float(hidden), targets, num_negatives)

    def _sampled_losses(
        self, hidden: torch.Tensor, targets: torch.Tensor, num_negatives: int
    ) -> torch.Tensor:
        drawn = [sample_distinct(num_negatives, self.out_features, hidden.device) for _ in hidden]
        negatives, tries = (torch.stack(parts) for parts in zip(*drawn, strict=True))
        goal = targets.clamp(min=0)
        # one look-up for all: without `draw`, its gradient is as large as the whole table
        words = torch.cat([goal, negatives], dim=1)
        weight, bias = self.look_up(words)
        weight = at_least_float(weight)
        bias = bias - log_expected_count(words, tries.unsqueeze(1), self.out_features)
        sizes = [goal.shape[1], num_negatives]
        true_weight, weight = weight.split(sizes, dim=1)
        true_bias, bias = bias.split(sizes, dim=1)
        true = (hidden * true_weight).sum(dim=-1) + true_bias  # (directions, n)
        # a target among the negatives would be counted against itself
        place = torch.searchsorted(negatives, goal).clamp(max=num_negatives - 1)
        hits = (negatives.gather(1, place) == goal).nonzero(as_tuple=True)
        others = LogSumExp.apply(hidden, weight, bias, (*hits, place[hits]))
        losses = torch.logaddexp(others, true) - true
        return losses.masked_fill(targets < 0, 0)


class LogSumExp(Function):
    """
    log sum_k exp(hidden_n . weight_k + bias_k), (directions, n), without the `left_out` (direction,
    n, k).

    There are far more scores than anything else here. They are worked on in place, and the backward
    pass goes on from their exponentials with products alone.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        left_out: tuple[torch.Tensor, ...],
    ) -> torch.Tensor:
        scores = product(hidden, weight.transpose(1, 2)).add_(bias.unsqueeze(1))
        scores[left_out] = float("-inf")
        largest = scores.amax(dim=-1, keepdim=True)
        terms = scores.sub_(largest).exp_()
        total = terms.sum(dim=-1, keepdim=True)
        ctx.save_for_backward(hidden, weight, terms, total)
        return (largest + total.log()).squeeze(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        hidden, weight, terms, total = ctx.saved_tensors
        share = gradients[0].unsqueeze(-1) / total
        of_weight = product(terms.transpose(1, 2), torch.cat([hidden * share, share], dim=-1))
        return share * product(terms, weight), of_weight[..., :-1], of_weight[..., -1], None
