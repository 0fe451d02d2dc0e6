# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""AllenNLP's layout of hdf5: one dataset per line, and one that says where each sentence is."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm.auto import tqdm

from elmo_hf.embedding.chunks import ChunkFiles
from elmo_hf.embedding.formats._format import OutputFormat

if TYPE_CHECKING:
    import h5py

# bytes of the longest string that numpy can hold
LONGEST_STRING = (1 << 31) - 1
TABLE = "sentence_to_index"


def write_hdf5(path: Path, chunks: ChunkFiles, pooling: str) -> None:
    import h5py

    # versions of the format that the library of AllenNLP's time reads
    with h5py.File(path, "w", libver=("v108", "v110")) as file:
        for chunk in chunks:
            for name, array in zip(chunk.names, chunk.arrays(pooling), strict=True):
                file.create_dataset(dataset_name(name), data=array)
        size = sum(map(len, sentence_table(chunks)))
        if size > LONGEST_STRING:
            tqdm.write(
                f"The table of sentences, {size / 1e9:.1f} GB, is too long for hdf5 and left out; "
                "the lines are there by their names.",
                file=sys.stderr,
            )
            return
        place = reserve_text(file, TABLE, size)
    # by hand: hdf5 takes a string only in one piece, and this one is as long as the text
    with path.open("r+b") as whole:
        whole.seek(place)
        whole.writelines(sentence_table(chunks))


def dataset_name(name: str) -> str:
    """A line's number, or the name of its record as hdf5 can have it."""
    name = name.replace("/", "_")
    # hdf5 calls a group itself `.`
    return f"{name}_" if name in (".", TABLE) else name


def sentence_table(chunks: ChunkFiles) -> Iterator[bytes]:
    """JSON in pieces: the dataset of each sentence, the last one if a sentence occurs twice."""
    yield b"{"
    between = ""
    for named in chunks.sentences():
        entries = [
            f"{json.dumps(sentence)}: {json.dumps(dataset_name(name))}" for name, sentence in named
        ]
        yield (between + ", ".join(entries)).encode()
        between = ", "
    yield b"}"


def reserve_text(file: "h5py.File", name: str, size: int) -> int:
    """Makes a dataset of one string whose bytes are written later; returns their place."""
    import h5py

    layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    layout.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    layout.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    text = file.create_dataset(name, (1,), h5py.string_dtype(length=size), dcpl=layout)
    return text.id.get_offset()


FORMAT = OutputFormat(
    "hdf5",
    (".hdf5", ".h5"),
    write_hdf5,
    library="h5py",
    # of the dataset that a line has, and as much again for safety
    bytes_per_line=600,
)
