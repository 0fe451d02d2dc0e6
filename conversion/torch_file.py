"""Files of `torch.save` from strangers: tensors and numbers only, and no more than the file has.

A pickle can run any program. `weights_only=True` builds nothing but tensors and plain containers,
what may be built besides is named by the caller, and the pickle is followed first to see how much
it would build.
"""

import pickle
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmo_hf.conversion.pickles import TENSORS, Pickle
from elmo_hf.system.failures import first_line
from elmo_hf.system.untrusted import BoundedFile, refuse_pointer

MOST_TENSORS = 10_000
# how torch tells its zips from older files, which are this many pickles and then the numbers
ZIP = b"PK\3\4"
PICKLES = 5
# bytes of the parts at the end of a zip
END, LOCATOR, LARGE_END = 22, 20, 56


def read_state_dict(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a model's weights by name, in float32 where they are floating-point numbers."""
    found = load_plain(path)
    if not isinstance(found, dict) or not found or len(found) > MOST_TENSORS:
        raise ValueError(f"{str(path)!r} does not hold the tensors of a model by their names.")
    for name, tensor in found.items():
        if not isinstance(name, str) or not is_plain(tensor):
            # not the name itself: it may be anything
            shown = f"{name!r:.80}" if isinstance(name, str) else f"a name of {type(name)!r}"
            raise ValueError(f"{str(path)!r} holds {shown}, which is not a plain tensor.")
    # a tensor may claim to repeat its numbers, or use few of those that were allocated for it
    claimed = sum(tensor.numel() * tensor.element_size() for tensor in found.values())
    storages = [tensor.untyped_storage() for tensor in found.values()]
    allocated = sum({part.data_ptr(): part.nbytes() for part in storages}.values())
    if max(claimed, allocated) > path.stat().st_size:
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


def load_plain(path: Path, allowed: Mapping[str, Any] | None = None) -> Any:
    """
    What `torch.load` makes of a file without running anything but what `allowed` has for the names
    in it; None stands for what torch itself has.
    """
    refuse_pointer(path)
    refuse_odd_zip(path)
    allowed = allowed or {}
    ours: list[Any] = [
        (function, name) for name, function in allowed.items() if function is not None
    ]
    try:
        follow_pickles(path, {*TENSORS, *allowed})
        with torch.serialization.safe_globals(ours):
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


def follow_pickles(path: Path, allowed: set[str]) -> None:
    """Refuses pickles that would build more than tensors in plain containers."""
    with path.open("rb") as file:
        if file.read(len(ZIP)) != ZIP:
            file.seek(0)
            for _ in range(PICKLES):
                Pickle(allowed).follow(file)
            return
    with BoundedFile(path) as bounded, zipfile.ZipFile(bounded) as archive:
        for member in archive.infolist():
            # torch does not distinguish capitals
            if member.filename.lower().endswith("data.pkl"):
                with archive.open(member) as file:
                    Pickle(allowed).follow(file)


def refuse_odd_zip(path: Path) -> None:
    """torch stores tensors in a zip as they are, and each at a place of its own."""
    try:
        # which itself fails if a damaged end claims several disks
        if not zipfile.is_zipfile(path):
            return
        with BoundedFile(path) as bounded, zipfile.ZipFile(bounded) as archive:
            members, start = archive.infolist(), archive.start_dir
        same = start == directory_start(path)
    except (zipfile.BadZipFile, struct.error, OSError, ValueError, NotImplementedError) as error:
        raise ValueError(
            f"{str(path)!r} is damaged ({first_line(error)}); get it again."
        ) from error
    if not same:
        # Python would read one list, and torch perhaps another
        raise ValueError(f"{str(path)!r} has more before its list of members than it says.")
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError(f"{str(path)!r} is a packed zip, which torch does not write.")
    starts = {member.header_offset for member in members}
    size = sum(member.file_size for member in members)
    if len(starts) < len(members) or size > path.stat().st_size:
        raise ValueError(f"{str(path)!r} is a zip whose members overlap, which is refused.")


def directory_start(path: Path) -> int | None:
    """Where a zip without a comment says itself that the list of its members begins."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(size - LOCATOR - END, 0))
        tail = file.read()
        if tail[-END:][:4] != b"PK\5\6":
            return None
        if tail[:4] != b"PK\6\7":
            return int(struct.unpack("<L", tail[-6:-2])[0])
        # of a large one: the place of a larger end, which must be just before
        if struct.unpack("<Q", tail[8:16])[0] != size - LOCATOR - END - LARGE_END:
            return None
        file.seek(size - LOCATOR - END - LARGE_END)
        return int(struct.unpack("<Q", file.read(LARGE_END)[-8:])[0])
