"""Comparing a model with the numpy reference on a few sentences, before anything is written."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from elmo_hf import ElmoModel
from elmo_hf.conversion import reference_elmo
from elmo_hf.dictionaries import Dictionaries, Dictionary
from elmo_hf.hub.loading import make_tokenizer

# max|a - b| / max|b| over a layer, float32 against the reference's float64
TOLERANCE = 1e-4
PROBE = [["The", "quick", "brown", "fox", "jumps", "."], ["naïve", "Straße", "x" * 60]]


def probe(dictionaries: Dictionaries | None) -> list[list[str]]:
    """The sentences that are compared: with dictionaries, also some of words that they know."""
    if dictionaries is None:
        return PROBE
    keys = (dictionaries.words or dictionaries.characters or Dictionary([])).keys
    known = [key for key in keys if not key.startswith("<")]
    return [*PROBE, known[:: len(known) // 8 + 1]]


def reference_layers(
    options: dict, datasets: Mapping[str, Any], dictionaries: Dictionaries | None = None
) -> list[np.ndarray]:
    """The reference's layers (layers, words, hidden_size) of each probe sentence."""
    plain = None
    if dictionaries is not None:
        parts = {"characters": dictionaries.characters, "words": dictionaries.words}
        plain = {name: part and part.numbers for name, part in parts.items()}
    return [
        reference_elmo.run(datasets, options, words, dictionaries=plain)[0]
        for words in probe(dictionaries)
    ]


def largest_error(model: ElmoModel, expected: list[np.ndarray]) -> float:
    """max|a - b| / max|b| between the model and the reference, over all layers of the probe."""
    tokenizer = make_tokenizer(model)
    worst = 0.0
    for words, truths in zip(probe(model.dictionaries), expected, strict=True):
        batch = tokenizer([words], is_split_into_words=True, return_tensors="pt")
        with torch.inference_mode():
            layers = model(**batch, output_hidden_states=True).hidden_states
        for layer, truth in zip(layers, truths, strict=True):
            # a layer of nothing but zeros has no scale of its own
            error = np.abs(layer[0].numpy() - truth).max() / (np.abs(truth).max() or 1.0)
            # a comparison with NaN must not pass as small
            worst = max(worst, float(error)) if np.isfinite(error) else float("inf")
    return worst
