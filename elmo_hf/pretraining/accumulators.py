# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The accumulators of Adagrad beside a model that was converted from a run of bilm-tf.

With them, `--recipe bilm` continues that run instead of starting Adagrad afresh.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from elmo_hf.hub.bundled import find_model
from elmo_hf.pretraining.settings import PretrainingSettings
from elmo_hf.private_interfaces import find_file
from elmo_hf.system.untrusted import read_tensor_shapes

NAME = "optimizer.safetensors"
# where the accumulators of bilm-tf begin
INITIAL = 1.0


def save_accumulators(folder: Path, tensors: dict[str, torch.Tensor], steps: int | None) -> None:
    """By the names of the parameters of `ElmoForPreTraining`, after so many steps."""
    facts = {"optimizer": "adagrad"} | ({} if steps is None else {"steps": str(steps)})
    save_file(tensors, folder / NAME, metadata=facts)


def find_accumulators(settings: PretrainingSettings) -> Path | None:
    """The accumulators beside the model to continue from, where the recipe uses any."""
    if settings.recipe != "bilm" or settings.model_name_or_path is None:
        return None
    found = find_file(find_model(settings.model_name_or_path), NAME)
    return None if found is None else Path(found)


def load_accumulators(sums: Mapping[str, torch.Tensor], path: Path) -> str | None:
    """
    Overwrites Adagrad's sums, which come by the names of the parameters, with those of a file;
    returns how many steps these are of, if that is known.
    """
    if read_tensor_shapes(path) != {name: tuple(part.shape) for name, part in sums.items()}:
        raise ValueError(
            f"{str(path)!r} does not belong to the model beside it; remove it to start Adagrad "
            "afresh."
        )
    with safe_open(path, framework="pt") as file:
        for name, own in sums.items():
            saved = file.get_tensor(name)
            # also false for NaN
            if not (saved.is_floating_point() and saved.min() >= 0 and saved.isfinite().all()):
                raise ValueError(
                    f"{str(path)!r} holds numbers in {name!r} that are no sums of squares; remove "
                    "it to start Adagrad afresh."
                )
            own.copy_(saved)
        steps = (file.metadata() or {}).get("steps", "")
    return f"{int(steps):,}" if steps.isascii() and steps.isdigit() and len(steps) < 19 else None
