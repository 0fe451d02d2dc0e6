# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""A hash of weights, by which files that depend on them are named."""

from typing import Any

from torch import nn


def add_weights(key: Any, module: nn.Module) -> None:
    """Adds a module's weights to a hash."""
    for name, weight in module.state_dict().items():
        key.update(name.encode())
        key.update(memoryview(weight.detach().float().cpu().contiguous().numpy()).cast("B"))
