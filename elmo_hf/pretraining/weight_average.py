# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""A running mean of a model's weights, which a run evaluates and keeps instead of the last ones."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

# weights change little from step to step
STEPS_BETWEEN_UPDATES = 10


class WeightAverage:
    """
    The mean of a model's weights over about the last `part` of all steps taken so far (Shamir and
    Zhang, 2013), so that early weights are soon forgotten; 0 for no mean, only the last weights.

    The steps of an optimizer lead around a good place rather than into it; the mean is nearer to
    it, and predicts unseen text better. It can be registered for checkpointing.
    """

    def __init__(self, model: nn.Module, part: float):
        self.part = part
        self.weights = [weight.detach() for weight in model.parameters()] if part else []
        self.means = [weight.clone() for weight in self.weights]

    def update(self, step: int) -> None:
        """Takes in the weights after this step; the first step is 1."""
        if step % STEPS_BETWEEN_UPDATES:
            return
        for mean, weight in zip(self.means, self.weights, strict=True):
            mean.lerp_(weight, min(1.0, STEPS_BETWEEN_UPDATES / (self.part * step)))

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The model has the mean as its weights for a while."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        for weight, mean in zip(self.weights, self.means, strict=True):
            kept = weight.clone()
            weight.copy_(mean)
            mean.copy_(kept)

    def copy_to_model(self) -> None:
        """The model has the mean as its weights from now on."""
        for weight, mean in zip(self.weights, self.means, strict=True):
            weight.copy_(mean)

    def state_dict(self) -> dict[str, list[torch.Tensor]]:
        return {"mean": self.means}

    def load_state_dict(self, state: dict[str, list[torch.Tensor]]) -> None:
        for mean, saved in zip(self.means, state["mean"], strict=True):
            mean.copy_(saved)
