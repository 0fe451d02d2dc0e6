# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""A training whose numbers are no longer finite stops, and its last good checkpoint stays."""

import math
from pathlib import Path

import torch

from elmo_hf.hub.loading import find_unusable
from elmo_hf.training.checkpoints import finished_checkpoints


def refuse_divergence(
    folder: Path, step: int, loss: float = 0.0, model: torch.nn.Module | None = None
) -> None:
    """
    Raises an error if a loss is not finite, or a weight of the model no usable number. To be called
    where all processes have the same loss, and with the model before it is saved.
    """
    if not math.isfinite(loss):
        what = f"The loss is {loss}"
    elif model is not None and find_unusable(model) is not None:
        what = "The model's weights are NaN, infinite or huge"
    else:
        return
    kept = [path.name for path in finished_checkpoints(folder)][-1:]
    raise ValueError(
        f"{what} after step {step}: the training has diverged. Start again with a lower "
        "--learning_rate and --overwrite_output_dir"
        + (f"; {kept[0]} is from before." if kept else ".")
    )
