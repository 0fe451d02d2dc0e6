"""Maps from the vectors of one layer into a space that several languages share.

Schuster et al. (2019, https://arxiv.org/abs/1902.09492) publish one square matrix M per language
and layer; an aligned vector is `layer @ M.T`.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmo_hf import ElmoConfig, ElmoModel
from elmo_hf.conversion.pickles import ENCODE
from elmo_hf.conversion.torch_file import load_plain

KINDS = ("f2", "f4", "f8")


class PickledDtype:
    """A type of floating-point numbers, as numpy pickles it."""

    def __init__(self, kind: object, *flags: object):
        if kind not in KINDS:
            raise pickle.UnpicklingError(f"numbers of the type {kind!r:.20}")
        self.dtype = np.dtype(str(kind))

    def __setstate__(self, state: tuple) -> None:
        if state[1] not in ("<", ">"):
            raise pickle.UnpicklingError("numbers in an unknown order")
        self.dtype = self.dtype.newbyteorder(state[1])


class PickledArray:
    """A numpy array as it is pickled: its bytes and what they mean."""

    array = np.empty(0)

    def __setstate__(self, state: tuple) -> None:
        _, shape, kind, is_fortran, data = state
        if not isinstance(kind, PickledDtype):
            raise pickle.UnpicklingError("an array without a type")
        order: Any = "F" if is_fortran else "C"
        self.array = np.frombuffer(data, kind.dtype).reshape(shape, order=order)


def make_array(*_: object) -> PickledArray:
    return PickledArray()


# Ours stand for those of numpy, which allocate whatever they are asked for. Files of numpy 1 and 2
# name them by different places. What torch takes for `_codecs.encode` cannot be replaced.
ARRAYS = {
    "numpy.core.multiarray._reconstruct": make_array,
    "numpy._core.multiarray._reconstruct": make_array,
    "numpy.ndarray": PickledArray,
    "numpy.dtype": PickledDtype,
    ENCODE: None,
}


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
    if isinstance(found, PickledArray):
        found = found.array
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
    if not isinstance(found, np.ndarray):
        raise ValueError(f"{str(path)!r} holds {found.dtype}, not floating-point numbers.")
    with np.errstate(over="ignore"):
        matrix = np.array(found, dtype=np.float32, order="C")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{str(path)!r} holds NaN, infinity or huge numbers.")
    return matrix
