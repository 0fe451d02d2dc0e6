# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Hashes that recognise a model by its weights."""

from typing import TYPE_CHECKING

from torch import nn

from elmo_hf.modeling_elmo import ElmoModel

if TYPE_CHECKING:
    from hashlib import _Hash


def add_weights(key: "_Hash", module: nn.Module) -> None:
    """Adds the names and values of a module's weights to a hash, and a biLM's dictionaries."""
    for name, weight in module.state_dict().items():
        key.update(name.encode())
        key.update(memoryview(weight.detach().float().cpu().contiguous().numpy()).cast("B"))
    if isinstance(module, ElmoModel) and module.dictionaries is not None:
        key.update(module.dictionaries.fingerprint())
