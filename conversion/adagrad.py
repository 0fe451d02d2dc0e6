"""Adagrad's accumulators of a bilm-tf run, beside the converted model, so that a run continues.

They are sums of squared gradients: the same table as for the weights says where they belong, but
nothing is added to them.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from elmo_hf import ElmoForPreTraining
from elmo_hf.conversion.building import row_by_row
from elmo_hf.conversion.formats import Weights
from elmo_hf.conversion.key_map import rule_for_key
from elmo_hf.conversion.options_map import NUM_CHARACTERS
from elmo_hf.conversion.tensor_ops import LSTM_BIAS, PADDING_ROW, ZERO_ROW, Operation, reorder_gates
from elmo_hf.conversion.weights_file import read_array
from elmo_hf.pretraining.accumulators import INITIAL, NAME, save_accumulators


def add_initial_row(rows: np.ndarray) -> np.ndarray:
    """bilm-tf has no row for "no word", so nothing was ever added to its accumulators."""
    return np.concatenate([np.full_like(rows[:1], INITIAL), rows])


def add_missing_row(rows: np.ndarray) -> np.ndarray:
    """The same, unless the file has the row."""
    return rows if len(rows) == NUM_CHARACTERS else add_initial_row(rows)


# where weights are changed and not only moved
MOVED_ONLY: dict[Operation, Callable[[np.ndarray], np.ndarray]] = {
    LSTM_BIAS: reorder_gates,
    PADDING_ROW: add_missing_row,
    ZERO_ROW: add_initial_row,
}


def keep_accumulators(folder: Path, model: nn.Module, weights: Weights) -> list[str]:
    """Saves the accumulators beside a language model, and says so for its card."""
    if not (weights.accumulators and isinstance(model, ElmoForPreTraining)):
        return []
    if model.config.aligned_layer is not None:
        return ["The accumulators of Adagrad were left out, since no training knew the alignment."]
    parameters = read_accumulators(weights.accumulators)
    expected = {name: tuple(part.shape) for name, part in model.named_parameters()}
    if expected != {name: tuple(part.shape) for name, part in parameters.items()}:
        raise ValueError(
            "The accumulators of Adagrad in the checkpoint do not fit its weights; get it again."
        )
    save_accumulators(folder, parameters, weights.steps)
    steps = "" if weights.steps is None else f" after {weights.steps:,} steps"
    return [
        f"The conversion also wrote the accumulators of Adagrad{steps}, as {NAME}: run_pretrain.py "
        "continues with them if it is given the folder and --recipe bilm."
    ]


def read_accumulators(arrays: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The accumulators of the parameters of `ElmoForPreTraining`, by name."""
    tensors = {}
    for key, dataset in arrays.items():
        rule, array = rule_for_key(key), read_array(key, dataset)
        if (array < 0).any():
            raise ValueError(f"The accumulators of {key!r} hold negative numbers.")
        move = MOVED_ONLY.get(rule.operation)
        parts = rule.operation.to_parameters(array) if move is None else (move(array),)
        for name, part in zip(rule.names, parts, strict=True):
            tensors[name] = row_by_row(part)
    return tensors
