# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`ScalarMix`: a learned weighting of layers, under AllenNLP's names and for any tensors."""

from collections.abc import Sequence

import torch
from torch import nn

from elmo_hf.standin.errors import ConfigurationError

# added to the variance, as in AllenNLP
SMALLEST = 1e-12


class ScalarMix(nn.Module):
    """gamma * sum_k softmax(scalar_parameters)_k tensor_k"""

    def __init__(
        self,
        mixture_size: int,
        do_layer_norm: bool = False,
        initial_scalar_parameters: Sequence[float] | None = None,
        trainable: bool = True,
    ):
        super().__init__()
        self.mixture_size = mixture_size
        self.do_layer_norm = do_layer_norm
        start = [0.0] * mixture_size
        if initial_scalar_parameters is not None:
            start = [float(scalar) for scalar in initial_scalar_parameters]
        if len(start) != mixture_size:
            raise ConfigurationError(
                f"`initial_scalar_parameters` has {len(start)} numbers for {mixture_size} tensors."
            )
        self.scalar_parameters = nn.ParameterList(
            nn.Parameter(torch.tensor([scalar]), requires_grad=trainable) for scalar in start
        )
        self.gamma = nn.Parameter(torch.ones(1), requires_grad=trainable)

    def forward(
        self, tensors: Sequence[torch.Tensor], mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if len(tensors) != self.mixture_size:
            raise ConfigurationError(
                f"{len(tensors)} tensors were given to a mix of {self.mixture_size}."
            )
        weights = torch.cat(list(self.scalar_parameters)).softmax(dim=0)
        mixed = torch.zeros_like(tensors[0])
        for weight, tensor in zip(weights, tensors, strict=True):
            mixed = mixed + weight * (
                self.normalize(tensor, mask) if self.do_layer_norm else tensor
            )
        return self.gamma * mixed

    def normalize(self, tensor: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Mean 0 and variance 1 over all numbers where there is a word."""
        if mask is None:
            raise ConfigurationError("A mix with `do_layer_norm` needs the mask.")
        live = tensor[mask.bool()]
        mean = live.mean()
        variance = (live - mean).square().mean()
        return (tensor - mean) / (variance + SMALLEST).sqrt()
