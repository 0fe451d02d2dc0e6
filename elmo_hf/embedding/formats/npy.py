# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Plain numpy: all vectors in one array, and a second file that says where each sentence begins."""

from pathlib import Path
from typing import BinaryIO

import numpy as np

from elmo_hf.embedding.chunks import ChunkFiles
from elmo_hf.embedding.formats._format import OutputFormat

OFFSETS = ".offsets.npy"


def write_npy(path: Path, chunks: ChunkFiles, pooling: str) -> None:
    """
    All vectors one after the other, (vectors, size) or (vectors, layers, size). A file beside it,
    `.offsets.npy`, holds the place of each sentence's first vector and, last, how many vectors
    there are.
    """
    vectors = write_offsets(path.with_name(path.stem + OFFSETS), chunks)
    with path.open("wb") as file:
        for number, chunk in enumerate(chunks):
            if number == 0:
                write_header(file, chunk.values.dtype, (vectors, *chunk.values.shape[1:]))
            file.write(np.ascontiguousarray(chunk.values).data)


def write_offsets(path: Path, chunks: ChunkFiles) -> int:
    """Chunk by chunk, so that memory does not grow with the corpus; returns the sum."""
    sentences = vectors = 0
    with path.open("wb") as file:
        # overwritten at the end, when the number of sentences is known
        write_header(file, np.dtype(np.int64), (0,))
        file.write(np.zeros(1, np.int64).data)
        for lengths in chunks.lengths():
            ends = vectors + np.cumsum(lengths)
            file.write(ends.data)
            sentences, vectors = sentences + len(ends), int(ends[-1])
        file.seek(0)
        write_header(file, np.dtype(np.int64), (sentences + 1,))
    return vectors


def write_header(file: BinaryIO, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """The first bytes of an `.npy` file, whose number does not depend on the shape."""
    descr = np.lib.format.dtype_to_descr(dtype)
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


FORMAT = OutputFormat("npy", (".npy",), write_npy, beside=(OFFSETS,))
