"""Small models for tests: a configuration, and random weights in the bilm hdf5 layout."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmo_hf import ElmoConfig, ElmoTokenizer
from elmo_hf.conversion.options_map import options_from_config
from elmo_hf.conversion.weights_file import write_weights

WIDTH = 16
# what a pretraining script is given with --config_overrides
PRETRAINING_SHAPE: dict[str, Any] = {
    "char_embedding_size": 4,
    "char_filters": [[1, 4], [2, 8]],
    "num_highway_layers": 1,
    "max_characters_per_token": 20,
    "cell_size": 16,
    "projection_size": 8,
}


def tiny_config(**overrides) -> ElmoConfig:
    sizes: dict[str, Any] = {
        "char_embedding_size": 4,
        "char_filters": [[1, 4], [2, 6], [3, 8]],
        "num_highway_layers": 1,
        "max_characters_per_token": WIDTH,
        "cell_size": 12,
        "projection_size": 8,
        "num_hidden_layers": 2,
    }
    return ElmoConfig(**sizes | overrides)


def tokenize(sentences: list[list[str]], width: int = WIDTH, **kwargs) -> dict[str, torch.Tensor]:
    tokenizer = ElmoTokenizer(max_characters_per_token=width)
    kwargs = {"padding": True, "return_tensors": "pt", **kwargs}
    return dict(tokenizer(sentences, is_split_into_words=True, **kwargs))


def random_arrays(config: ElmoConfig, seed: int = 0) -> dict[str, np.ndarray]:
    """
    Weights of a model of this size, by hdf5 key.

    Large enough to bend the gates, small enough that an LSTM does not amplify rounding for ever.
    """
    random = np.random.default_rng(seed)

    def normal(*shape: int, scale: float = 0.5) -> np.ndarray:
        return (random.standard_normal(shape) * scale).astype(np.float32)

    width, cell, filters = config.projection_size, config.cell_size, config.num_filters
    arrays = {"char_embed": normal(261, config.char_embedding_size)}
    for number, (span, count) in enumerate(config.char_filters):
        arrays[f"CNN/W_cnn_{number}"] = normal(1, span, config.char_embedding_size, count)
        arrays[f"CNN/b_cnn_{number}"] = normal(count)
    for number in range(config.num_highway_layers):
        for kind in ("carry", "transform"):
            arrays[f"CNN_high_{number}/W_{kind}"] = normal(filters, filters, scale=0.3)
            arrays[f"CNN_high_{number}/b_{kind}"] = normal(filters)
    if config.use_char_projection:
        arrays["CNN_proj/W_proj"] = normal(filters, width)
        arrays["CNN_proj/b_proj"] = normal(width)
    for direction in (0, 1):
        for number in range(config.num_hidden_layers):
            path = f"RNN_{direction}/RNN/MultiRNNCell/Cell{number}/LSTMCell"
            arrays[f"{path}/W_0"] = normal(2 * width, 4 * cell)
            arrays[f"{path}/B"] = normal(4 * cell)
            if config.use_cell_projection:
                arrays[f"{path}/W_P_0"] = normal(cell, width)
    return arrays


def write_model(folder: Path, config: ElmoConfig, **changes: np.ndarray) -> tuple[Path, Path]:
    """options.json and weights.hdf5 of random weights; `changes` replaces or adds datasets."""
    folder.mkdir(parents=True, exist_ok=True)
    options, weights = folder / "options.json", folder / "weights.hdf5"
    options.write_text(json.dumps(options_from_config(config)))
    write_weights(weights, (random_arrays(config) | changes).items())
    return options, weights
