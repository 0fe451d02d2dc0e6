# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""A linear-chain conditional random field over the tags of a sentence.

P(tags) is proportional to exp(start[t1] + e1[t1] + transitions[t1, t2] + e2[t2] + ... + end[tn]),
where e are the logits of the words. As in AllenNLP, constraints hold for decoding only: a training
text may break the rules of its scheme, and its tags must not be impossible then.

Everything is computed in at least float32, whatever the precision of the logits. Words come first
in every row here (`words_first`), so that a mask is a length.
"""

from typing import cast

import torch
from torch import nn

from .configuration_elmo import ElmoConfig
from .crf_constraints import allowed_ends, allowed_starts, allowed_transitions

# What a forbidden step costs. A number, not infinity, so that some tags can be found even for
# labels among which no sequence is allowed.
FORBIDDEN = -1e5


class ElmoCrf(nn.Module):
    """Scores of transitions, [from, to], and of the tags with which a sentence begins and ends."""

    def __init__(self, config: ElmoConfig):
        super().__init__()
        count = cast(int, config.num_labels)
        self.transitions = nn.Parameter(torch.empty(count, count))
        self.start_transitions = nn.Parameter(torch.empty(count))
        self.end_transitions = nn.Parameter(torch.empty(count))
        self.scheme = config.crf_constraints
        labels = cast(dict[int, str], config.id2label)
        self.labels = [labels[number] for number in range(count)]

    def losses(
        self, logits: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """
        -log P(labels) of each sentence, (batch,). A word with the label -100 may have any tag: the
        loss is then that of all tag sequences that agree with the other labels.
        """
        order, logits, mask = words_first(logits, mask)
        labels = labels.take_along_dim(order, dim=1)
        numbers = torch.arange(logits.shape[2], device=logits.device)
        fits = (labels.unsqueeze(-1) == numbers) | (labels < 0).unsqueeze(-1)
        scores = self.scores(logits.dtype)
        all_tags = log_partition(logits, mask, *scores)
        right_tags = log_partition(logits.masked_fill(~fits, -torch.inf), mask, *scores)
        # nothing is wrong in an empty sentence; its sums are those of a word that is not there
        return torch.where(mask.any(dim=1), all_tags - right_tags, 0.0)

    @torch.no_grad()
    def decode(self, logits: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """
        The most probable tags of each sentence among those that are allowed, (batch, words), and
        the probability of each: the share of all allowed tag sequences in which the word has it.
        """
        order, logits, mask = words_first(logits, mask)
        scores = self.constrained_scores(logits.dtype)
        tags = best_path(logits, mask, *scores)
        chances = marginals(logits, mask, *scores).take_along_dim(tags.unsqueeze(-1), dim=2)
        restored = torch.empty_like(tags).scatter_(1, order, tags)
        return restored, torch.empty_like(chances[..., 0]).scatter_(1, order, chances[..., 0])

    def scores(self, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        parts = (self.transitions, self.start_transitions, self.end_transitions)
        transitions, starts, ends = (part.to(dtype) for part in parts)
        return transitions, starts, ends

    def constrained_scores(
        self, dtype: torch.dtype
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The same with `FORBIDDEN` added to what the constraints exclude."""
        scores = self.scores(dtype)
        if self.scheme is None:
            return scores
        rules = (allowed_transitions, allowed_starts, allowed_ends)
        allowed = [
            torch.tensor(rule(self.scheme, self.labels), device=scores[0].device) for rule in rules
        ]
        transitions, starts, ends = (
            part + ~some * FORBIDDEN for part, some in zip(scores, allowed, strict=True)
        )
        return transitions, starts, ends


def words_first(
    logits: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Where each place of a row comes from once all words stand before the padding; both so."""
    mask = mask.bool()
    order = mask.long().argsort(dim=1, descending=True, stable=True)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    moved = logits.take_along_dim(order.unsqueeze(-1), dim=1)
    return order, moved, mask.take_along_dim(order, dim=1)


def prefix_sums(
    logits: torch.Tensor, mask: torch.Tensor, transitions: torch.Tensor, starts: torch.Tensor
) -> list[torch.Tensor]:
    """For each word, the logarithm of the sum over all that ends in each of its tags there."""
    sums = [starts + logits[:, 0]]
    for word in range(1, logits.shape[1]):
        reached = (sums[-1].unsqueeze(2) + transitions).logsumexp(dim=1) + logits[:, word]
        sums.append(torch.where(mask[:, word, None], reached, sums[-1]))
    return sums


def log_partition(
    logits: torch.Tensor,
    mask: torch.Tensor,
    transitions: torch.Tensor,
    starts: torch.Tensor,
    ends: torch.Tensor,
) -> torch.Tensor:
    """The logarithm of the sum of exp(score) over all tag sequences, (batch,)."""
    return (prefix_sums(logits, mask, transitions, starts)[-1] + ends).logsumexp(dim=1)


def best_path(
    logits: torch.Tensor,
    mask: torch.Tensor,
    transitions: torch.Tensor,
    starts: torch.Tensor,
    ends: torch.Tensor,
) -> torch.Tensor:
    """The tags of the highest score (Viterbi), (batch, words); padding repeats the last one."""
    best = starts + logits[:, 0]
    same = torch.arange(best.shape[1], device=best.device)
    origins = []
    for word in range(1, logits.shape[1]):
        scores, origin = (best.unsqueeze(2) + transitions).max(dim=1)
        is_word = mask[:, word, None]
        best = torch.where(is_word, scores + logits[:, word], best)
        origins.append(torch.where(is_word, origin, same))
    path = [(best + ends).argmax(dim=1, keepdim=True)]
    for origin in reversed(origins):
        path.append(origin.gather(1, path[-1]))
    return torch.cat(path[::-1], dim=1)


def marginals(
    logits: torch.Tensor,
    mask: torch.Tensor,
    transitions: torch.Tensor,
    starts: torch.Tensor,
    ends: torch.Tensor,
) -> torch.Tensor:
    """The probability of each tag of each word, (batch, words, tags), forwards and backwards."""
    before = prefix_sums(logits, mask, transitions, starts)
    after = [ends.expand_as(before[0])]
    for word in range(logits.shape[1] - 1, 0, -1):
        further = (after[-1] + logits[:, word]).unsqueeze(1) + transitions
        after.append(torch.where(mask[:, word, None], further.logsumexp(dim=2), after[-1]))
    return (torch.stack(before, dim=1) + torch.stack(after[::-1], dim=1)).softmax(dim=-1)
