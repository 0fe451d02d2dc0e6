# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The table: which parameter of AllenNLP's modules is which of ours, both ways, with gradients.

AllenNLP stacks an LSTM's gates in the order input, forget, candidate, output; we exchange the last
two. Its highway has one matrix for both parts, and its gate is that of the input; ours, as
TensorFlow's, that of what is transformed, so the sign differs. All changes are torch operations:
what is computed with our tensors has gradients with regard to AllenNLP's.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import torch

from elmo_hf.configuration_elmo import ElmoConfig

Tensors = Mapping[str, torch.Tensor]


class Pair(NamedTuple):
    """A parameter of AllenNLP's, and what it is in an `ElmoModel`."""

    theirs: str
    ours: tuple[str, ...]
    to_ours: Callable[[torch.Tensor], tuple[torch.Tensor, ...]]
    to_theirs: Callable[..., torch.Tensor]


def keep(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def exchange_gates(stacked: torch.Tensor) -> torch.Tensor:
    """Exchanges candidate and output; its own inverse."""
    input_gate, forget_gate, third, fourth = stacked.chunk(4)
    return torch.cat([input_gate, forget_gate, fourth, third])


def split_highway(stacked: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    transform, gate = stacked.chunk(2)
    return transform, -gate


def join_highway(transform: torch.Tensor, carry: torch.Tensor) -> torch.Tensor:
    return torch.cat([transform, -carry])


def one(theirs: str, ours: str, change: Callable[[torch.Tensor], torch.Tensor] = keep) -> Pair:
    """A pair with a change that is its own inverse."""
    return Pair(theirs, (ours,), lambda tensor: (change(tensor),), change)


def encoder_pairs(config: ElmoConfig) -> list[Pair]:
    """The parameters of `_ElmoCharacterEncoder`."""
    encoder = "token_encoder"
    pairs = [one("_char_embedding_weights", f"{encoder}.char_embeddings.weight")]
    for number in range(len(config.char_filters)):
        for kind in ("weight", "bias"):
            ours = f"{encoder}.convolutions.{number}.{kind}"
            pairs.append(one(f"char_conv_{number}.{kind}", ours))
    for number in range(config.num_highway_layers):
        for kind in ("weight", "bias"):
            highway = f"{encoder}.highways.{number}"
            both = (f"{highway}.transform.{kind}", f"{highway}.carry.{kind}")
            theirs = f"_highways._layers.{number}.{kind}"
            pairs.append(Pair(theirs, both, split_highway, join_highway))
    if config.use_char_projection:
        pairs += [
            one(f"_projection.{kind}", f"{encoder}.projection.{kind}")
            for kind in ("weight", "bias")
        ]
    return pairs


def lstm_pairs(config: ElmoConfig) -> list[Pair]:
    """The parameters of `ElmoLstm`."""
    pairs = []
    for number in range(config.num_hidden_layers):
        for direction in ("forward", "backward"):
            theirs, ours = f"{direction}_layer_{number}", f"layers.{number}.{direction}_cell"
            pairs += [
                one(
                    f"{theirs}.input_linearity.weight",
                    f"{ours}.input_linear.weight",
                    exchange_gates,
                ),
                one(
                    f"{theirs}.state_linearity.weight",
                    f"{ours}.recurrent_linear.weight",
                    exchange_gates,
                ),
                # AllenNLP has the bias on the recurrent side; the sum is the same
                one(f"{theirs}.state_linearity.bias", f"{ours}.input_linear.bias", exchange_gates),
            ]
            if config.use_cell_projection:
                pairs.append(one(f"{theirs}.state_projection.weight", f"{ours}.projection.weight"))
    return pairs


def to_ours(pairs: Iterable[Pair], theirs: Tensors) -> dict[str, torch.Tensor]:
    """Our tensors by name, made of AllenNLP's."""
    tensors: dict[str, torch.Tensor] = {}
    for pair in pairs:
        tensors |= zip(pair.ours, pair.to_ours(theirs[pair.theirs]), strict=True)
    return tensors


def to_theirs(pairs: Iterable[Pair], ours: Tensors) -> dict[str, torch.Tensor]:
    """AllenNLP's tensors by name, made of ours."""
    return {pair.theirs: pair.to_theirs(*(ours[name] for name in pair.ours)) for pair in pairs}
