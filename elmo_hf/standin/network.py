# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Our network beneath AllenNLP's modules: it computes with their parameters, not with its own.

A module of the stand-in owns parameters under AllenNLP's names and in AllenNLP's layout. While some
of them are trained, the network is called with tensors made of them, so gradients arrive where old
code expects them. Once all are frozen, it keeps a prepared copy, which is several times faster, and
renews it when a parameter was changed or moved.
"""

from collections.abc import Callable
from operator import attrgetter
from threading import Lock
from typing import Any

import torch
from torch import nn
from torch.func import functional_call

from elmo_hf.configuration_elmo import ElmoConfig
from elmo_hf.modeling_elmo import ElmoModel
from elmo_hf.outputs_elmo import ElmoState
from elmo_hf.packing import ElmoPacking
from elmo_hf.prepared_weights import WeightCopy
from elmo_hf.standin.parameter_names import Pair, Tensors, encoder_pairs, lstm_pairs, to_ours


class Part(nn.Module):
    """A part of an `ElmoModel`; the other part never gets weights."""

    # which parameters it is lent
    pairs: Callable[[ElmoConfig], list[Pair]]

    def __init__(self, config: ElmoConfig):
        super().__init__()
        with torch.device("meta"):
            self.model = ElmoModel(config, add_scalar_mix=False)


class TokenEncoderPart(Part):
    pairs = staticmethod(encoder_pairs)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.model.token_encoder(rows)


class LayersPart(Part):
    pairs = staticmethod(lstm_pairs)

    def forward(
        self, rows: torch.Tensor, packing: ElmoPacking, state: ElmoState | None
    ) -> tuple[list[tuple[torch.Tensor, torch.Tensor]], ElmoState]:
        return self.model.run_layers(rows, (None, packing.reverse), packing, state)


class OurNetwork:
    """
    Calls a part of our network with the parameters of a module of AllenNLP's.

    It is no module itself, so that it does not occur among the parameters of the one that uses it.
    """

    def __init__(self, part: type[Part], config: ElmoConfig):
        self.part, self.config = part, config
        self.pairs = part.pairs(config)
        self.network: Part | None = None
        self.copied: WeightCopy | None = None
        # a module may serve several threads; while our network gets weights, no other may see it
        self.lock = Lock()

    def __reduce__(self):
        # a copied or unpickled module makes its own network
        return OurNetwork, (self.part, self.config)

    def __call__(self, owner: nn.Module, given: torch.Tensor, *others: Any) -> Any:
        # by attribute, since a tied or parametrized one is not among the parameters
        parameters = {pair.theirs: attrgetter(pair.theirs)(owner) for pair in self.pairs}
        is_frozen = not any(parameter.requires_grad for parameter in parameters.values())
        if is_frozen and not given.requires_grad:
            with self.lock:
                network = self.prepared(parameters)
            # AllenNLP's modules without trained parameters build no graph either
            with torch.no_grad():
                return network(given, *others)
        with self.lock:
            network = self.plain()
            # our backend for training reads only what is in training; there is no dropout in here
            network.train(torch.is_grad_enabled())
            self.copied = None
            return functional_call(network, self.tensors(parameters), (given, *others))

    def plain(self) -> Part:
        if self.network is None:
            self.network = self.part(self.config)
        return self.network

    def prepared(self, parameters: Tensors) -> Part:
        """The network with its own copy of these parameters."""
        weights = list(parameters.values())
        if self.network is not None and self.copied is not None and self.copied.matches(*weights):
            return self.network
        # before the new copy is made, so that there are never two
        self.network = None
        network = self.plain()
        with torch.inference_mode(False), torch.no_grad():
            # detached: what is assigned takes over whether it is trained
            tensors = {name: part.detach() for name, part in self.tensors(parameters).items()}
            network.load_state_dict(tensors, strict=False, assign=True)
        network.model.prepare_for_inference()
        self.copied = WeightCopy(*weights)
        return network

    def tensors(self, parameters: Tensors) -> dict[str, torch.Tensor]:
        return {f"model.{name}": part for name, part in to_ours(self.pairs, parameters).items()}
