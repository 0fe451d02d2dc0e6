# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The biLM's softmax over words: full, or sampled as in bilm-tf.

Sampling follows TensorFlow's `sampled_softmax_loss` with its log-uniform sampler: distinct negative
words, drawn once for all positions, more often the more frequent they are (the vocabulary is sorted
by frequency), and each logit corrected by the log of how surely its word is in such a sample.
"""

import math

import torch
from torch import nn

# logits held at once while no gradients are wanted: 256 MB of float32
LOGITS_AT_ONCE = 1 << 26


def log_uniform(words: torch.Tensor, vocab_size: int) -> torch.Tensor:
    """P(k) = log((k + 2) / (k + 1)) / log(V + 1), in double precision."""
    return torch.log1p(1 / (words.double() + 1)) / math.log(vocab_size + 1)


def sample_distinct(
    count: int, vocab_size: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """`count` distinct words by repeated log-uniform draws, and how many draws that took."""
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
    order = first.argsort()[:count]
    return words[order], first[order[-1]] + 1


def log_expected_count(words: torch.Tensor, tries: torch.Tensor, vocab_size: int) -> torch.Tensor:
    """log(1 - (1 - p)^tries): how surely each word is among the distinct ones of so many draws."""
    misses = tries * torch.log1p(-log_uniform(words, vocab_size))
    return torch.log(-torch.expm1(misses)).float()


class ElmoSoftmax(nn.Linear):
    """A row of weights and a bias for each word, shared by both directions."""

    def losses(
        self, hidden: torch.Tensor, targets: torch.Tensor, num_negatives: int | None = None
    ) -> torch.Tensor:
        """-log P(target) for each row of `hidden` (n, projection_size); 0 where it is -100."""
        if num_negatives is not None:
            return self.sampled_losses(hidden, targets, num_negatives)
        rows = max(1, LOGITS_AT_ONCE // self.out_features)
        if torch.is_grad_enabled():
            rows = max(1, len(hidden))
        parts = zip(hidden.split(rows), targets.split(rows), strict=True)
        return torch.cat(
            [
                nn.functional.cross_entropy(self(some), goal, reduction="none")
                for some, goal in parts
            ]
        )

    def sampled_losses(
        self, hidden: torch.Tensor, targets: torch.Tensor, num_negatives: int
    ) -> torch.Tensor:
        """The same over the target and `num_negatives` other words only; for training."""
        negatives, tries = sample_distinct(num_negatives, self.out_features, hidden.device)
        goal = targets.clamp(min=0)
        # one look-up for both: its gradient is as large as the whole table
        words = torch.cat([goal, negatives])
        weight = nn.functional.embedding(words, self.weight)
        bias = self.bias[words] - log_expected_count(words, tries, self.out_features)
        true_weight, weight = weight.split([len(goal), num_negatives])
        true_bias, bias = bias.split([len(goal), num_negatives])
        true = (hidden * true_weight).sum(dim=1) + true_bias  # (n,)
        others = torch.addmm(bias, hidden, weight.T)  # (n, negatives)
        # a target among the negatives would be counted against itself
        others = others.masked_fill(goal.unsqueeze(1) == negatives, float("-inf"))
        losses = torch.cat([true.unsqueeze(1), others], dim=1).logsumexp(dim=1) - true
        return losses.masked_fill(targets < 0, 0)
