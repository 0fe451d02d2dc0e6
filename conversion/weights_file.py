"""Reading and writing hdf5 files. The only module of the conversion that knows h5py."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from elmo_hf.extras import require
from elmo_hf.system.failures import first_line

# Bytes that an array may claim per byte of its file: weights cannot be compressed by such a factor.
LARGEST_RATIO = 64
# levels of groups; a link may lead back to a group that holds it
DEEPEST = 8


@contextmanager
def open_weights(path: Path) -> Iterator[dict[str, Any]]:
    """All datasets of a bilm hdf5 file by name; each is read only when it is used."""
    h5py = require("h5py", "Reading hdf5 weights")
    with ExitStack() as held:
        datasets = {}
        # not around what the caller does with the datasets
        with unreadable_is_an_error(repr(str(path))):
            file = held.enter_context(h5py.File(path, "r"))
            for name, item in own_datasets(file):
                refuse_foreign_storage(name, item, path.stat().st_size)
                # bilm-tf leaves this part of the name out where there is only one layer
                datasets[name.replace("/RNN/LSTMCell/", "/RNN/MultiRNNCell/Cell0/LSTMCell/")] = item
        if "char_embed" not in datasets and "embedding" in datasets:
            raise ValueError(
                f"{str(path)!r} holds word vectors (`embedding`) instead of characters: this is a "
                "word-level bilm file, which is not supported."
            )
        if any(name.startswith("rnn/") for name in datasets):
            raise ValueError(f"{str(path)!r} holds one direction only; ELMo needs both.")
        yield datasets


@contextmanager
def unreadable_is_an_error(what: str) -> Iterator[None]:
    """A damaged file makes h5py raise errors of many kinds; ours are sentences already."""
    try:
        yield
    except (OSError, RuntimeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{what} is not a readable hdf5 file: {first_line(error)}.") from error


def own_datasets(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The datasets in a file, by hard links only: others lead elsewhere, even to other files."""
    h5py = require("h5py", "Reading hdf5 weights")
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            continue
        item = group[name]
        if isinstance(item, h5py.Dataset):
            yield prefix + name, item
        elif isinstance(item, h5py.Group) and prefix.count("/") < DEEPEST:
            yield from own_datasets(item, f"{prefix}{name}/")


def refuse_foreign_storage(name: str, dataset: Any, file_size: int) -> None:
    """Numbers must be in this very file, and as many as it can hold."""
    where = f"The dataset {name!r}"
    if dataset.external or dataset.is_virtual:
        raise ValueError(f"{where} takes its values from other files, which is refused.")
    if dataset.dtype.kind != "f" or dataset.dtype.itemsize > 8:
        raise ValueError(f"{where} holds {dataset.dtype}, not floating-point numbers.")
    if dataset.shape is None or 0 in dataset.shape or not dataset.shape:
        raise ValueError(f"{where} holds no array of numbers.")
    if dataset.nbytes > LARGEST_RATIO * file_size:
        raise ValueError(
            f"{where} claims {dataset.nbytes:,} bytes, but the file has only {file_size:,}."
        )


def read_array(key: str, dataset: Any) -> np.ndarray:
    """One dataset in float32, refused if it is not made of finite numbers."""
    with unreadable_is_an_error(f"The file of the dataset {key!r}"):
        array = np.asarray(dataset[()], dtype=np.float32)
    if not np.isfinite(array).all():
        raise ValueError(f"The dataset {key!r} holds NaN or infinity.")
    return array


def write_weights(path: Path, arrays: Iterable[tuple[str, np.ndarray]]) -> None:
    with require("h5py", "Writing hdf5 weights").File(path, "w") as file:
        for key, array in arrays:
            file[key] = array
