# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""A running mean of a model's weights, which a run evaluates and keeps instead of the last ones."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

# weights change little from step to step
STEPS_BETWEEN_UPDATES = 10
# rows of a table that are worked on at once where all are
ROWS_AT_ONCE = 1 << 14
# stands for 0, which has no logarithm
TINY = 1e-30


class WeightAverage:
    """
    The mean of a model's weights over about the last `part` of all steps taken so far (Shamir and
    Zhang, 2013), so that early weights are soon forgotten; 0 for no mean, only the last weights.

    The steps of an optimizer lead around a good place rather than into it; the mean is nearer to
    it, and predicts unseen text better. It can be registered for checkpointing.

    Of the `tables` among the weights, a step changes only some rows, and `before_change` must be
    called with them: they are not walked over at every update. Before the mean is used it must be
    called with all rows.
    """

    def __init__(self, model: nn.Module, part: float, tables: Sequence[nn.Parameter] = ()):
        self.part = part
        kept_by_rows = {id(table) for table in tables}
        weights = [weight for weight in model.parameters() if id(weight) not in kept_by_rows]
        self.weights = [weight.detach() for weight in weights] if part else []
        self.means = [weight.clone() for weight in self.weights]
        self.rows = RowMean([table.detach() for table in tables]) if part and tables else None

    def update(self, step: int) -> None:
        """Takes in the weights after this step; the first step is 1."""
        if step % STEPS_BETWEEN_UPDATES or not self.part:
            return
        share = min(1.0, STEPS_BETWEEN_UPDATES / (self.part * step))
        for mean, weight in zip(self.means, self.weights, strict=True):
            mean.lerp_(weight, share)
        if self.rows is not None:
            self.rows.update(share)

    def before_change(self, rows: torch.Tensor, values: Sequence[torch.Tensor]) -> None:
        """These rows of the tables, which have had these values, are about to change."""
        if self.rows is not None:
            self.rows.catch_up(rows, values)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The model has the mean as its weights for a while."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        for weight, mean in self._pairs():
            kept = weight.clone()
            weight.copy_(mean)
            mean.copy_(kept)

    def copy_to_model(self) -> None:
        """The model has the mean as its weights from now on."""
        for weight, mean in self._pairs():
            weight.copy_(mean)

    def _pairs(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """All weights with their means; tables in pieces, so that a copy of one is small."""
        yield from zip(self.weights, self.means, strict=True)
        if self.rows is not None:
            yield from self.rows.pieces()

    def state_dict(self) -> dict[str, list[torch.Tensor]]:
        rows = self.rows.state() if self.rows is not None else []
        return {"mean": self.means, "rows": rows}

    def load_state_dict(self, state: dict[str, list[torch.Tensor]]) -> None:
        for mean, saved in zip(self.means, state["mean"], strict=True):
            mean.copy_(saved)
        rows = self.rows.state() if self.rows is not None else []
        for own, saved in zip(rows, state["rows"], strict=True):
            own.copy_(saved)


class RowMean:
    """
    The running mean of tables, row by row: a row that stays the same through many updates can take
    them in at once, when it is about to change or when its mean is needed.
    """

    def __init__(self, tables: Sequence[torch.Tensor]):
        self.tables = tables
        self.means = [table.clone() for table in tables]
        # The logarithm of what all updates so far have left of the first mean, and for each row
        # what it was when the row caught up.
        self.left = torch.zeros((), dtype=torch.double)
        self.left_then = torch.zeros(len(tables[0]), dtype=torch.double, device=tables[0].device)

    def update(self, share: float) -> None:
        self.left += math.log(max(1 - share, TINY))

    def catch_up(self, rows: torch.Tensor, values: Sequence[torch.Tensor]) -> None:
        """Takes in the updates since the last change of these rows, whose values are given."""
        left = self.left.to(self.left_then.device)
        kept = (left - self.left_then[rows]).exp().float()
        self.left_then[rows] = left
        for mean, value in zip(self.means, values, strict=True):
            weight = kept.view(-1, *[1] * (mean.dim() - 1)).to(mean.dtype)
            mean[rows] = value.detach().lerp(mean[rows], weight)

    def pieces(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Pieces of the tables with their means."""
        for table, mean in zip(self.tables, self.means, strict=True):
            yield from zip(table.split(ROWS_AT_ONCE), mean.split(ROWS_AT_ONCE), strict=True)

    def state(self) -> list[torch.Tensor]:
        """The tensors to save, and to load in place."""
        return [*self.means, self.left_then, self.left]
