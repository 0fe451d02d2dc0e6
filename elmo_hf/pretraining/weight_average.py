"""A running mean of a model's weights, which is what a run evaluates and keeps."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

# steps between two updates; weights change little from step to step
EVERY = 10


class WeightAverage:
    """
    The mean of a model's weights over about the last `part` of all steps taken so far (Shamir and
    Zhang, 2013), so that early weights are soon forgotten; 0 for none but the last.

    An optimiser's steps lead around a good place rather than into it; the mean lies nearer, and
    predicts unseen text better. Registered for checkpointing, it goes on with a resumed run.
    """

    def __init__(self, model: nn.Module, part: float):
        self.part = part
        self.live = [weight.detach() for weight in model.parameters()] if part else []
        self.mean = [weight.clone() for weight in self.live]

    def update(self, step: int) -> None:
        """Takes in the weights after this step, the first one being 1."""
        if step % EVERY:
            return
        for mean, live in zip(self.mean, self.live, strict=True):
            mean.lerp_(live, min(1.0, EVERY / (self.part * step)))

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The mean stands in the model for a while."""
        self.swap()
        try:
            yield
        finally:
            self.swap()

    def swap(self) -> None:
        for live, mean in zip(self.live, self.mean, strict=True):
            kept = live.clone()
            live.copy_(mean)
            mean.copy_(kept)

    def state_dict(self) -> dict[str, list[torch.Tensor]]:
        return {"mean": self.mean}

    def load_state_dict(self, state: dict[str, list[torch.Tensor]]) -> None:
        for mean, saved in zip(self.mean, state["mean"], strict=True):
            mean.copy_(saved)
