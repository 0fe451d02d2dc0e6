"""Files of `torch.save`: tensors by name, read as data. Nothing that a pickle asks for is run."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from elmo_hf.system.failures import first_line
from elmo_hf.system.untrusted import BoundedFile, refuse_pointer

# the largest published models have 10 tensors per layer
MOST_TENSORS = 10_000


def read_tensors(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a state dictionary in float32, of either form that torch has had since 0.4."""
    refuse_pointer(path)
    refuse_packed(path)
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        # whatever a damaged or hostile pickle makes torch raise
        raise ValueError(
            f"{str(path)!r} is not a readable file of weights: {first_line(error)}."
        ) from error
    if not isinstance(found, Mapping) or not 0 < len(found) <= MOST_TENSORS:
        raise ValueError(f"{str(path)!r} holds no weights by name.")
    room = path.stat().st_size
    for name, tensor in found.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            raise ValueError(
                f"{str(path)!r} holds {name!r:.80}, which is not a tensor with a name."
            )
        if tensor.layout != torch.strided or not tensor.is_floating_point() or not tensor.numel():
            raise ValueError(f"The tensor {name!r:.80} holds no array of floating-point numbers.")
        # a few bytes can pose as a tensor of any shape
        room -= tensor.numel() * tensor.element_size()
        if room < 0:
            raise ValueError(f"{str(path)!r} claims more numbers than it has bytes.")
    return {name: tensor.detach().float().numpy() for name, tensor in found.items()}


def refuse_packed(path: Path) -> None:
    """torch never compresses the zips that it writes; a packed one may unpack to any size."""
    try:
        with BoundedFile(path) as file, zipfile.ZipFile(file) as archive:
            methods = {member.compress_type for member in archive.infolist()}
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, NotImplementedError):
        # an older file of torch, or a damaged one, which torch refuses
        return
    if methods - {zipfile.ZIP_STORED}:
        raise ValueError(f"{str(path)!r} is compressed, as torch never does it; get it again.")
