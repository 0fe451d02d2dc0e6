"""Maps from the vectors of one layer into a space that several languages share.

Schuster et al. (2019, https://arxiv.org/abs/1902.09492) publish one square matrix M per language
and layer; an aligned vector is `layer @ M.T`.
"""

import codecs
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmo_hf import ElmoConfig, ElmoModel
from elmo_hf.conversion.torch_file import load_plain

# The files hold numpy arrays, which torch does not load unasked. None of these functions has an
# effect besides its result. Files name them by the places they had in numpy 1.
RECONSTRUCT = np.empty(0).__reduce__()[0]
FLOATS = [np.dtype(name) for name in ("float16", "float32", "float64")]
ARRAYS: list[Any] = [
    (RECONSTRUCT, "numpy.core.multiarray._reconstruct"),
    (RECONSTRUCT, "numpy._core.multiarray._reconstruct"),
    np.ndarray,
    np.dtype,
    *map(type, FLOATS),
    codecs.encode,
]


def add_alignment(model: ElmoModel, path: Path, layer: int) -> ElmoModel:
    """The model with a map for one of its layers, which then is its output."""
    top = model.config.num_hidden_layers
    if not 0 <= layer <= top:
        raise ValueError(f"--alignment-layer is {layer}, but the model has layers 0 to {top}.")
    matrix = read_alignment(path, model.config.hidden_size)
    fields = {"aligned_layer": layer, "output_layer": layer, "num_output_representations": 1}
    config = ElmoConfig.from_dict({**model.config.to_dict(), **fields})
    with torch.device("meta"):
        aligned = ElmoModel(config)
    weights = {name: part for name, part in model.state_dict().items() if "mixes." not in name}
    weights["alignment.weight"] = torch.from_numpy(matrix)
    aligned.load_state_dict(weights, strict=True, assign=True)
    aligned.dictionaries = model.dictionaries
    return aligned.eval()


def read_alignment(path: Path, width: int) -> np.ndarray:
    """The matrix in a file, for vectors of this width."""
    found = load_plain(path, ARRAYS)
    if isinstance(found, torch.Tensor) and found.layout == torch.strided:
        # before it is copied: a tensor may claim any size
        is_one = found.shape == (width, width) and found.is_floating_point()
        found = found.detach().double().numpy() if is_one else found
    if not isinstance(found, (np.ndarray, torch.Tensor)):
        raise ValueError(f"{str(path)!r} holds no matrix but {type(found).__name__}.")
    if tuple(found.shape) != (width, width):
        raise ValueError(
            f"{str(path)!r} holds an array of shape {tuple(found.shape)}, but the model's vectors "
            f"need a matrix of {width} x {width}."
        )
    if not isinstance(found, np.ndarray) or found.dtype not in FLOATS:
        raise ValueError(f"{str(path)!r} holds {found.dtype}, not floating-point numbers.")
    with np.errstate(over="ignore"):
        matrix = np.ascontiguousarray(found, dtype=np.float32)
    if not np.isfinite(matrix).all():
        raise ValueError(f"{str(path)!r} holds NaN, infinity or huge numbers.")
    return matrix
