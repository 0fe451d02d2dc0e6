# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Training of a sampled softmax by the rows that a step draws, however many words it has.

The tables, one of weights and one of biases, get no gradients and belong to no optimizer of torch,
and accelerate does not send them. The rows that a step draws are small tensors with gradients of
their own: processes exchange these, their norm is clipped together with all others, and they are
updated and written back. No step walks over a table.
"""

from typing import Any, NamedTuple

import torch
from accelerate import Accelerator

from elmo_hf.pretraining.row_optimizers import RowAdagrad, RowAdamW
from elmo_hf.pretraining.weight_average import ROWS_AT_ONCE, WeightAverage
from elmo_hf.softmax_elmo import ElmoSoftmax


class DrawnRows(NamedTuple):
    """What a forward pass has drawn."""

    # distinct and sorted
    words: torch.Tensor  # (rows,)
    weight: torch.Tensor  # (rows, projection_size)
    bias: torch.Tensor  # (rows,)
    # how many rows there would be if no word had been drawn twice
    room: int

    @property
    def gradient(self) -> torch.Tensor:
        """Of weights and biases, as one matrix."""
        assert self.weight.grad is not None and self.bias.grad is not None
        return torch.cat([self.weight.grad, self.bias.grad.unsqueeze(1)], dim=1)


class SoftmaxRows:
    """
    What the steps of a training do with a softmax: `collect` the rows drawn, then `step`.

    The softmax must not require gradients. Before it is used otherwise it is to `settle`, and at
    the end to be released.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        softmax: ElmoSoftmax,
        optimizer: RowAdagrad | RowAdamW,
        average: WeightAverage,
    ):
        if accelerator.mixed_precision == "fp16":
            # accelerate scales the loss, and only the gradients of its own optimizers back
            raise ValueError(
                "accelerate is set to fp16, which a sampled softmax is not trained in; pass "
                "--mixed_precision bf16 or no."
            )
        self.accelerator, self.softmax = accelerator, softmax
        self.optimizer, self.average = optimizer, average
        self.drawn: list[DrawnRows] = []
        softmax.draw = self.draw
        # of the present step, from all processes: words, and their weights and biases
        self.words = torch.empty(0, dtype=torch.long)
        self.values: list[torch.Tensor] = []

    def draw(self, words: torch.Tensor, room: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The weights and biases of distinct words, which are to get gradients."""
        weight, bias = (part.detach().requires_grad_() for part in self.optimizer.values(words))
        self.drawn.append(DrawnRows(words, weight, bias, room))
        return weight, bias

    def collect(self) -> list[torch.Tensor]:
        """The rows drawn since the last step in any process, with the mean of their gradients."""
        parts = [(rows.words, rows.gradient) for rows in self.drawn]
        room = sum(rows.room for rows in self.drawn)
        self.drawn.clear()
        count = self.accelerator.num_processes
        if count > 1:
            parts = self._exchange(*add_up(parts), room)
        self.words, gradient = add_up(parts)
        self.values = self.optimizer.values(self.words)
        weight, bias = self.values
        weight.grad, bias.grad = gradient[:, :-1] / count, gradient[:, -1] / count
        return self.values

    def _exchange(
        self, words: torch.Tensor, gradient: torch.Tensor, room: int
    ) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The rows of every process. They are sent in `room` places, however many there are."""
        sent_words = words.new_full((room,), -1)
        sent_words[: len(words)] = words
        sent = gradient.new_zeros(room, gradient.shape[1])
        sent[: len(words)] = gradient
        received = [self.accelerator.gather(part).split(room) for part in (sent_words, sent)]
        return [(some[some >= 0], rows[some >= 0]) for some, rows in zip(*received, strict=True)]

    def step(self, rate: float) -> None:
        """Updates the collected rows."""
        self.average.before_change(self.words, self.values)
        self.optimizer.step(self.words, self.values, rate)
        self.values = []

    def settle(self) -> None:
        """Brings all rows of the tables, and their mean, up to date."""
        for words in torch.arange(self.softmax.out_features).split(ROWS_AT_ONCE):
            some = words.to(self.softmax.weight.device)
            self.average.before_change(some, self.optimizer.values(some))
            self.optimizer.settle(some)

    def release(self) -> None:
        """The softmax gets ordinary gradients again."""
        self.softmax.draw = None
        self.softmax.requires_grad_(True)

    def state_dict(self) -> dict[str, Any]:
        return self.optimizer.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state)


def add_up(
    parts: list[tuple[torch.Tensor, torch.Tensor]],
) -> tuple[torch.Tensor, torch.Tensor]:
    """The distinct words of all parts, and the sums of their gradients."""
    words, places = torch.cat([some for some, _ in parts]).unique(return_inverse=True)
    total = parts[0][1].new_zeros(len(words), parts[0][1].shape[1])
    of_parts = places.split([len(some) for some, _ in parts])
    # One part after the other: within a part words are distinct, so that every process, on any
    # device, gets the same sums to the last bit.
    for place, (_, gradient) in zip(of_parts, parts, strict=True):
        total.index_add_(0, place, gradient)
    return words, total
