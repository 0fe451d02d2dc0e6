# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Optimizers of large tables, of which every step draws some rows: no other row is read or changed.

A table is a matrix or a vector with a row for each word. `values` gives the rows of some words as
small tensors. These get gradients, and `step` updates them and writes them back.
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

    def values(self, words: torch.Tensor) -> list[torch.Tensor]:
        """Copies of these words' rows."""
        return [table[words] for table in self.tables]

    def step(self, words: torch.Tensor, rows: Sequence[torch.Tensor], rate: float) -> None:
        """Updates distinct words by the gradients of `rows`, which are their values."""
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

    def settle(self, words: torch.Tensor) -> None:
        """The tables have the values of these words: they always do."""

    def state_dict(self) -> dict[str, Any]:
        return {"sums": self.sums}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for sums, saved in zip(self.sums, state["sums"], strict=True):
            sums.copy_(saved)


class RowAdamW:
    """
    AdamW, in which a row makes up for the steps since it was drawn last when it is drawn again.

    In these steps it had no gradient: its weights and both moments only decayed, and the first
    moment moved it on, ever less. The sum of these moves has a closed form, if the rate and the
    corrections of the moments are taken to be constant while the first moment fades.
    """

    BETAS, EPSILON = (0.9, 0.999), 1e-8
    # half the memory; a moment is soon replaced, and need not be exact
    FIRST_MOMENT = torch.bfloat16

    def __init__(self, tables: Sequence[torch.Tensor], weight_decays: Sequence[float]):
        self.tables, self.weight_decays = tables, weight_decays
        self.means = [torch.zeros_like(table, dtype=self.FIRST_MOMENT) for table in tables]
        self.squares = [torch.zeros_like(table) for table in tables]
        self.steps, self.rate = 0, 0.0
        # the step that drew each row last
        self.last = torch.zeros(len(tables[0]), dtype=torch.int32, device=tables[0].device)

    @torch.no_grad()
    def values(self, words: torch.Tensor) -> list[torch.Tensor]:
        """These words' rows after the present step; the tables are left as they are."""
        first, second = self.BETAS
        last = self.last[words].float()
        passed, ratio = self.steps - last, first / second**0.5
        # how far the first moment has moved a row since, compared with a single step
        moves = ratio * (1 - ratio**passed) / (1 - ratio) / (1 - first ** (last + 1))
        corrected = 1 - second ** (last + 1)
        found = []
        for number, table in enumerate(self.tables):
            times, far, share = (as_column(part, table) for part in (passed, moves, corrected))
            spread = (self.squares[number][words] / share).sqrt_().add_(self.EPSILON)
            move = self.means[number][words].float().mul_(far).div_(spread)
            kept = (1 - self.rate * self.weight_decays[number]) ** times
            found.append(table[words].mul_(kept).sub_(move, alpha=self.rate))
        return found

    @torch.no_grad()
    def step(self, words: torch.Tensor, rows: Sequence[torch.Tensor], rate: float) -> None:
        """Updates distinct words by the gradients of `rows`, which are their values."""
        self.steps, self.rate = self.steps + 1, rate
        corrected_mean, corrected = (1 - beta**self.steps for beta in self.BETAS)
        moments = self._decayed_moments(words)
        for number, (values, (mean, square)) in enumerate(zip(rows, moments, strict=True)):
            gradient = values.grad
            assert gradient is not None
            mean.add_(gradient, alpha=1 - self.BETAS[0])
            square.addcmul_(gradient, gradient, value=1 - self.BETAS[1])
            self._keep(number, words, mean, square)
            values.mul_(1 - rate * self.weight_decays[number])
            spread = square.div_(corrected).sqrt_().add_(self.EPSILON)
            values.addcdiv_(mean, spread, value=-rate / corrected_mean)
            self.tables[number][words] = values

    @torch.no_grad()
    def settle(self, words: torch.Tensor) -> None:
        """The tables have the values of these words from now on."""
        values = self.values(words)
        for number, (mean, square) in enumerate(self._decayed_moments(words)):
            self._keep(number, words, mean, square)
            self.tables[number][words] = values[number]

    def _decayed_moments(self, words: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Both moments of each table, as they are after the present step without a gradient."""
        passed = (self.steps - self.last[words]).float()
        self.last[words] = self.steps
        first, second = (beta**passed for beta in self.BETAS)
        return [
            (
                mean[words].float().mul_(as_column(first, mean)),
                square[words].mul_(as_column(second, square)),
            )
            for mean, square in zip(self.means, self.squares, strict=True)
        ]

    def _keep(
        self, number: int, words: torch.Tensor, mean: torch.Tensor, square: torch.Tensor
    ) -> None:
        self.means[number][words] = mean.to(self.FIRST_MOMENT)
        self.squares[number][words] = square

    def state_dict(self) -> dict[str, Any]:
        return {
            "means": self.means,
            "squares": self.squares,
            "last": self.last,
            "steps": self.steps,
            "rate": self.rate,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.steps, self.rate = state["steps"], state["rate"]
        self.last.copy_(state["last"])
        for own, name in ((self.means, "means"), (self.squares, "squares")):
            for part, saved in zip(own, state[name], strict=True):
                part.copy_(saved)


def as_column(numbers: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """A number for each row, to be multiplied with rows of this table."""
    return numbers.view(-1, *[1] * (table.dim() - 1))
