"""Reading and writing hdf5 files. The only module of the conversion that knows h5py."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from elmo_hf.extras import require


@contextmanager
def open_weights(path: Path) -> Iterator[dict[str, Any]]:
    """All datasets of a bilm hdf5 file by name; each is read only when it is used."""
    h5py = require("h5py", "Reading hdf5 weights")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise ValueError(f"{str(path)!r} is not a readable hdf5 file: {error}") from error
    with file:
        datasets: dict[str, Any] = {}

        def visit(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                # bilm-tf leaves this part of the name out where there is only one layer
                datasets[name.replace("/RNN/LSTMCell/", "/RNN/MultiRNNCell/Cell0/LSTMCell/")] = item

        file.visititems(visit)
        if "char_embed" not in datasets and "embedding" in datasets:
            raise ValueError(
                f"{str(path)!r} holds word vectors (`embedding`) instead of characters: this is a "
                "word-level bilm file, which is not supported."
            )
        if any(name.startswith("rnn/") for name in datasets):
            raise ValueError(f"{str(path)!r} holds one direction only; ELMo needs both.")
        yield datasets


def read_array(key: str, dataset: Any) -> np.ndarray:
    """One dataset in float32, refused if it is not made of finite numbers."""
    if dataset.dtype.kind != "f":
        raise ValueError(f"The dataset {key!r} holds {dataset.dtype}, not floating-point numbers.")
    array = np.asarray(dataset[()], dtype=np.float32)
    if not np.isfinite(array).all():
        raise ValueError(f"The dataset {key!r} holds NaN or infinity.")
    return array


def write_weights(path: Path, arrays: Iterable[tuple[str, np.ndarray]]) -> None:
    with require("h5py", "Writing hdf5 weights").File(path, "w") as file:
        for key, array in arrays:
            file[key] = array
