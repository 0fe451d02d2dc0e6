"""Reading and writing hdf5 files. The only module of the conversion that knows h5py."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from elmo_hf.extras import require
from elmo_hf.system.failures import first_line
from elmo_hf.system.untrusted import refuse_pointer

# levels of groups, and arrays and groups in all; a link may lead back to a group that holds it
DEEPEST = 8
MOST_ITEMS = 10_000


@contextmanager
def open_weights(path: Path) -> Iterator[dict[str, Any]]:
    """All datasets of a bilm hdf5 file by name; each is read only when it is used."""
    h5py = require("h5py", "Reading hdf5 weights")
    refuse_pointer(path)
    room = path.stat().st_size
    with ExitStack() as held:
        datasets = {}
        # not around what the caller does with the datasets
        with unreadable_is_an_error(repr(str(path))):
            file = held.enter_context(h5py.File(path, "r"))
            for name, item in own_datasets(file):
                refuse_foreign_storage(name, item)
                room -= item.nbytes
                if room < 0:
                    raise ValueError(f"{str(path)!r} claims more numbers than it has bytes.")
                # bilm-tf leaves this part of the name out where there is only one layer
                datasets[name.replace("/RNN/LSTMCell/", "/RNN/MultiRNNCell/Cell0/LSTMCell/")] = item
        if any(name.startswith("rnn/") for name in datasets):
            raise ValueError(f"{str(path)!r} holds one direction only; ELMo needs both.")
        yield datasets


@contextmanager
def unreadable_is_an_error(what: str) -> Iterator[None]:
    """A damaged file makes h5py raise errors of many kinds; ours are sentences already."""
    try:
        yield
    except (OSError, RuntimeError, LookupError, TypeError, AttributeError, UnicodeError) as error:
        raise ValueError(f"{what} is not a readable hdf5 file: {first_line(error)}.") from error


def own_datasets(file: Any) -> Iterator[tuple[str, Any]]:
    """The datasets in a file, by hard links only: others lead elsewhere, even to other files."""
    h5py = require("h5py", "Reading hdf5 weights")
    waiting, items = [("", file, 0)], 0
    while waiting:
        prefix, group, depth = waiting.pop()
        for name in group:
            items += 1
            if items > MOST_ITEMS:
                raise ValueError(f"{file.filename!r} has more parts than any ELMo model.")
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                continue
            item = group[name]
            if isinstance(item, h5py.Dataset):
                yield prefix + name, item
            elif isinstance(item, h5py.Group) and depth < DEEPEST:
                waiting.append((f"{prefix}{name}/", item, depth + 1))


def refuse_foreign_storage(name: str, dataset: Any) -> None:
    """Numbers must be in this very file, and all of them, as they are."""
    where = f"The dataset {name!r}"
    if dataset.external or dataset.is_virtual:
        raise ValueError(f"{where} takes its values from other files, which is refused.")
    if dataset.dtype.kind != "f" or dataset.dtype.itemsize > 8:
        raise ValueError(f"{where} holds {dataset.dtype}, not floating-point numbers.")
    if dataset.shape is None or 0 in dataset.shape or not dataset.shape:
        raise ValueError(f"{where} holds no array of numbers.")
    # a filter may unpack any number of bytes, whatever the shape says
    if dataset.id.get_create_plist().get_nfilters():
        raise ValueError(
            f"{where} is compressed; unpack the file with `h5repack -f NONE IN OUT` and convert "
            "OUT."
        )
    stored = dataset.id.get_storage_size()
    if stored < dataset.nbytes:
        raise ValueError(
            f"{where} claims {dataset.nbytes:,} bytes, but the file has only {stored:,} of them."
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
