# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The accumulators of Adagrad beside a model that was converted from a run of bilm-tf.

With them, `--recipe bilm` continues that run instead of starting Adagrad afresh.
"""

from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from elmo_hf.hub.bundled import find_model
from elmo_hf.modeling_elmo import ElmoForPreTraining
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


def load_accumulators(
    optimizer: torch.optim.Optimizer, model: ElmoForPreTraining, path: Path
) -> str | None:
    """Gives Adagrad the sums of a file; returns how many steps they are of, if that is known."""
    parameters = dict(model.named_parameters())
    expected = {name: tuple(part.shape) for name, part in parameters.items()}
    if read_tensor_shapes(path) != expected:
        raise ValueError(
            f"{str(path)!r} does not belong to the model beside it; remove it to start Adagrad "
            "afresh."
        )
    with safe_open(path, framework="pt") as file:
        for name, parameter in parameters.items():
            sums = file.get_tensor(name)
            # also false for NaN
            if not (sums.is_floating_point() and sums.min() >= 0 and sums.isfinite().all()):
                raise ValueError(
                    f"{str(path)!r} holds numbers in {name!r} that are no sums of squares; remove "
                    "it to start Adagrad afresh."
                )
            optimizer.state[parameter]["sum"].copy_(sums)
        steps = (file.metadata() or {}).get("steps", "")
    return f"{int(steps):,}" if steps.isascii() and steps.isdigit() and len(steps) < 19 else None


def describe_accumulators(path: Path, steps: str | None, is_used: bool) -> str:
    if not is_used:
        return f"{str(path)!r} is not used, because the softmax has a new vocabulary."
    taken = "" if steps is None else f" after {steps} steps"
    return f"Adagrad continues{taken} with the accumulators in {str(path)!r}."
