# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Optimizers of large tables, of which every step draws some rows: no other row is read or changed.

A table is a matrix or a vector with a row for each word. The rows of a step are a copy, `values`,
with a gradient of its own; it is updated like any small weight and written back.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch.optim.adagrad import adagrad


class RowAdagrad:
    """torch's Adagrad, in which a row without gradient does not change in any case."""

    def __init__(self, tables: Sequence[torch.Tensor], initial_accumulator_value: float):
        self.tables = tables
        self.sums = [torch.full_like(table, initial_accumulator_value) for table in tables]

    def step(self, words: torch.Tensor, rows: Sequence[torch.Tensor], rate: float) -> None:
        """Updates the rows of these words; `rows` has their values for each table."""
        for table, values, sums in zip(self.tables, rows, self.sums, strict=True):
            gradient, total = values.grad, sums[words]
            assert gradient is not None
            adagrad(
                [values],
                [gradient],
                [total],
                [torch.zeros((), device=values.device)],
                fused=values.device.type == "cpu",
                lr=rate,
                weight_decay=0.0,
                lr_decay=0.0,
                eps=1e-10,
                maximize=False,
            )
            sums[words] = total
            table[words] = values

    def state_dict(self) -> dict[str, Any]:
        return {"sums": self.sums}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for sums, saved in zip(self.sums, state["sums"], strict=True):
            sums.copy_(saved)


class RowAdamW:
    """
    AdamW without a first moment.

    A row that is not drawn does not change. When it is drawn again, it makes up for the steps in
    between: its second moment and its weights decay as often as there were steps. A first moment
    would only spread each gradient over the next ten steps or so, in which most rows are not drawn.
    """

    DECAY, EPSILON = 0.999, 1e-8

    def __init__(self, tables: Sequence[torch.Tensor], weight_decays: Sequence[float]):
        self.tables, self.weight_decays = tables, weight_decays
        self.squares = [torch.zeros_like(table) for table in tables]
        self.steps = 0
        # the step that drew each row last
        self.last = torch.zeros(len(tables[0]), dtype=torch.int32, device=tables[0].device)

    @torch.no_grad()
    def step(self, words: torch.Tensor, rows: Sequence[torch.Tensor], rate: float) -> None:
        """Updates the rows of these words; `rows` has their values for each table."""
        self.steps += 1
        passed = (self.steps - self.last[words]).float()
        self.last[words] = self.steps
        corrected = 1 - self.DECAY**self.steps
        parts = zip(self.tables, rows, self.squares, self.weight_decays, strict=True)
        for table, values, squares, weight_decay in parts:
            gradient = values.grad
            assert gradient is not None
            times = passed.view(-1, *[1] * (table.dim() - 1))
            mean = squares[words].mul_(self.DECAY**times)
            mean.addcmul_(gradient, gradient, value=1 - self.DECAY)
            squares[words] = mean
            values.mul_((1 - rate * weight_decay) ** times)
            values.addcdiv_(gradient, mean.div_(corrected).sqrt_().add_(self.EPSILON), value=-rate)
            table[words] = values

    def state_dict(self) -> dict[str, Any]:
        return {"squares": self.squares, "last": self.last, "steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.steps = state["steps"]
        self.last.copy_(state["last"])
        for squares, saved in zip(self.squares, state["squares"], strict=True):
            squares.copy_(saved)
