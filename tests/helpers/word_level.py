"""A tiny word-level bilm model, as its hdf5 file."""

import json
from pathlib import Path

import numpy as np
from helpers.tiny import random_arrays, tiny_config

from elmo_hf.conversion.weights_file import write_weights

WORDS = ["<S>", "</S>", "<UNK>", "the", "bank", "\u00a0", "x" * 60, "."]
OPTIONS = {
    "lstm": {
        "dim": 12,
        "projection_dim": 8,
        "n_layers": 2,
        "cell_clip": 3,
        "proj_clip": 3,
        "use_skip_connections": True,
    },
    "n_tokens_vocab": len(WORDS),
}


def write_word_level(
    folder: Path, words: list[str] | None = WORDS, options: dict = OPTIONS, seed: int = 0
) -> dict[str, np.ndarray]:
    """A word-level model, whose arrays are returned."""
    folder.mkdir(exist_ok=True)
    arrays = {k: v for k, v in random_arrays(tiny_config(), seed).items() if k.startswith("RNN_")}
    random = np.random.default_rng(seed)
    arrays["embedding"] = random.standard_normal((len(WORDS), 8)).astype(np.float32)
    write_weights(folder / "weights.hdf5", arrays.items())
    (folder / "options.json").write_text(json.dumps(options))
    if words is not None:
        (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    return arrays
