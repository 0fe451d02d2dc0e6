"""Comparing a model with the numpy reference on a few sentences, before anything is written."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from elmo_hf import ElmoModel, ElmoTokenizer
from elmo_hf.conversion import reference_elmo

# max|a - b| / max|b| over a layer, float32 against the reference's float64
TOLERANCE = 1e-4
PROBE = [["The", "quick", "brown", "fox", "jumps", "."], ["naïve", "Straße", "x" * 60]]


def reference_layers(options: dict, datasets: Mapping[str, Any]) -> list[np.ndarray]:
    """The reference's layers (layers, words, hidden_size) of each probe sentence."""
    return [reference_elmo.run(datasets, options, words)[0] for words in PROBE]


def largest_error(model: ElmoModel, expected: list[np.ndarray]) -> float:
    """max|a - b| / max|b| between the model and the reference, over all layers of the probe."""
    tokenizer = ElmoTokenizer(max_characters_per_token=model.config.max_characters_per_token)
    worst = 0.0
    for words, truths in zip(PROBE, expected, strict=True):
        batch = tokenizer([words], is_split_into_words=True, return_tensors="pt")
        with torch.inference_mode():
            layers = model(**batch, output_hidden_states=True).hidden_states
        for layer, truth in zip(layers, truths, strict=True):
            # a layer of nothing but zeros has no scale of its own
            error = np.abs(layer[0].numpy() - truth).max() / (np.abs(truth).max() or 1.0)
            # a comparison with NaN must not pass as small
            worst = max(worst, float(error)) if np.isfinite(error) else float("inf")
    return worst
