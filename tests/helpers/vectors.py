"""Sentences, and the files of vectors that they become, read back with other people's libraries."""

from pathlib import Path

import h5py
import numpy as np
from datasets import Dataset, load_dataset

from elmo_hf.text import Line, LineSource

SENTENCES = [
    ["Dogs", "bark", "."],
    ["A", "dog", "barks", "."],
    [],
    ["Dogs", "bark", "."],
    ["Ça", "va", "?"],
]
ENDINGS = [".hdf5", ".parquet", ".arrow", ".npy"]


def source_of(sentences: list[list[str]]) -> LineSource:
    lines = (Line(number, " ".join(words), words, 1) for number, words in enumerate(sentences))
    return LineSource("sentences", lines, len(sentences), "line")


def load_rows(path: Path) -> Dataset:
    if path.suffix == ".arrow":
        return Dataset.from_file(str(path))
    cache = path.parent / "cache"
    return load_dataset("parquet", data_files=str(path), split="train", cache_dir=str(cache))


def read(path: Path) -> list[np.ndarray]:
    """A file's arrays, each as the embedder made it."""
    if path.suffix == ".hdf5":
        with h5py.File(path) as file:
            numbers = sorted(int(name) for name in file if name != "sentence_to_index")
            return [file[str(number)][...] for number in numbers]
    if path.suffix in (".parquet", ".arrow"):
        rows = load_rows(path)
        kind = rows.features["embedding"]
        while hasattr(kind, "feature"):
            kind = kind.feature
        return [np.array(row["embedding"], kind.dtype) for row in rows]
    values = np.load(path, mmap_mode="r")
    offsets = np.load(path.with_name(f"{path.stem}.offsets.npy"))
    arrays = [values[start:end] for start, end in zip(offsets, offsets[1:], strict=False)]
    return [array.swapaxes(0, 1) if array.ndim == 3 else array for array in arrays]
