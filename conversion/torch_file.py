"""Files of `torch.save` from strangers: tensors and numbers only, and no more than the file has.

A pickle can run any program. `weights_only=True` builds nothing but tensors and plain containers,
and what may be built besides is named by the caller.
"""

import pickle
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmo_hf.system.failures import first_line
from elmo_hf.system.untrusted import refuse_pointer

MOST_TENSORS = 10_000


def read_state_dict(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a model's weights by name, in float32 where they are floating-point numbers."""
    found = load_plain(path)
    if not isinstance(found, dict) or not found or len(found) > MOST_TENSORS:
        raise ValueError(f"{str(path)!r} does not hold the tensors of a model by their names.")
    left = path.stat().st_size
    for name, tensor in found.items():
        if not isinstance(name, str) or not is_plain(tensor):
            raise ValueError(f"{str(path)!r} holds {name!r:.80}, which is not a plain tensor.")
        # a tensor may claim to repeat its numbers
        left -= tensor.numel() * tensor.element_size()
        if left < 0:
            raise ValueError(f"{str(path)!r} claims more numbers than it has bytes.")
    return {
        name: (tensor.float() if tensor.is_floating_point() else tensor).detach().numpy()
        for name, tensor in found.items()
    }


def is_plain(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.layout == torch.strided
        and value.device.type == "cpu"
        and not value.is_quantized
        and not value.is_complex()
    )


def load_plain(path: Path, allowed: Sequence[Any] = ()) -> Any:
    """What `torch.load` makes of a file without running anything but the `allowed` functions."""
    refuse_pointer(path)
    refuse_packed(path)
    try:
        with torch.serialization.safe_globals([*allowed]):
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ValueError(
            f"{str(path)!r} is damaged or holds more than numbers, so it was not opened; get the "
            "file again."
        ) from error
    except Exception as error:
        # of any kind, also the system's where a truncated file points behind its end
        raise ValueError(
            f"{str(path)!r} is damaged or not a file of torch ({first_line(error):.120}); get it "
            "again."
        ) from error


def refuse_packed(path: Path) -> None:
    """torch stores tensors in a zip as they are; a packed one may unpack to any size."""
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ValueError(
            f"{str(path)!r} is damaged ({first_line(error)}); get it again."
        ) from error
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError(f"{str(path)!r} is a packed zip, which torch does not write.")
