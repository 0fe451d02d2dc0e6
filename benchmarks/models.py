"""Random weights of the published sizes: the arithmetic of published models, without a download.

They are made once, in `.cache/benchmark/`, as `options.json` and `model.hdf5`, which the peers
read, and converted by `elmo-hf convert`.
"""

import json
import shutil
import sys
from pathlib import Path

import h5py
import numpy as np
from environments import ROOT
from measuring import run

CACHE = ROOT / ".cache" / "benchmark"
FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
ENCODED = sum(number for _, number in FILTERS)
CHARACTERS, CHARACTER_SIZE, LAYERS = 261, 16, 2
# cells, projection, highways
SIZES = {"small": (1024, 128, 1), "medium": (2048, 256, 1), "original": (4096, 512, 2)}


def options(size: str) -> dict:
    cells, projection, highways = SIZES[size]
    return {
        "lstm": {
            "use_skip_connections": True,
            "projection_dim": projection,
            "cell_clip": 3,
            "proj_clip": 3,
            "dim": cells,
            "n_layers": LAYERS,
        },
        "char_cnn": {
            "activation": "relu",
            "filters": FILTERS,
            "n_highway": highways,
            "embedding": {"dim": CHARACTER_SIZE},
            "n_characters": CHARACTERS + 1,
            "max_characters_per_token": 50,
        },
    }


def write_arrays(file: h5py.File, size: str) -> None:
    cells, projection, highways = SIZES[size]
    draw = np.random.default_rng(0)

    def fill(name: str, *shape: int, scale: float, shift: float = 0) -> None:
        file[name] = (draw.standard_normal(shape) * scale + shift).astype("f4")

    fill("char_embed", CHARACTERS, CHARACTER_SIZE, scale=0.5)
    for index, (width, number) in enumerate(FILTERS):
        shape = (1, width, CHARACTER_SIZE, number)
        fill(f"CNN/W_cnn_{index}", *shape, scale=(width * CHARACTER_SIZE) ** -0.5)
        fill(f"CNN/b_cnn_{index}", number, scale=0.1)
    for index in range(highways):
        for kind, shift in (("carry", -2), ("transform", 0)):
            fill(f"CNN_high_{index}/W_{kind}", ENCODED, ENCODED, scale=ENCODED**-0.5)
            fill(f"CNN_high_{index}/b_{kind}", ENCODED, scale=0.1, shift=shift)
    fill("CNN_proj/W_proj", ENCODED, projection, scale=ENCODED**-0.5)
    fill("CNN_proj/b_proj", projection, scale=0.1)
    for direction in (0, 1):
        for layer in range(LAYERS):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            fill(f"{cell}/W_0", 2 * projection, 4 * cells, scale=(2 * projection) ** -0.5)
            fill(f"{cell}/B", 4 * cells, scale=0.1)
            fill(f"{cell}/W_P_0", cells, projection, scale=2 * cells**-0.5)


def weights(size: str) -> Path:
    """A folder as the peers read it."""
    folder = CACHE / "weights" / size
    if not folder.exists():
        unfinished = folder.with_name(f"{size}.part")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        (unfinished / "options.json").write_text(json.dumps(options(size)))
        with h5py.File(unfinished / "model.hdf5", "w") as file:
            write_arrays(file, size)
        unfinished.rename(folder)
    return folder


def model(size: str) -> Path:
    """The same weights as a model of ours."""
    folder = CACHE / "models" / size
    if not folder.exists():
        run([sys.executable, "-m", "elmo_hf", "convert", weights(size), "--output-dir", folder])
    return folder
