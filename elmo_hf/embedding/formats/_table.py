# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Tables of arrow, which parquet stores as well: one row per line."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from elmo_hf.embedding.chunks import Chunk, ChunkFiles


def write_table(
    path: Path, chunks: ChunkFiles, pooling: str, open_writer: Callable[..., Any]
) -> None:
    tables = (table_of(chunk, pooling) for chunk in chunks)
    first = next(tables)
    with path.open("wb") as file, open_writer(file, first.schema) as writer:
        for table in itertools.chain([first], tables):
            writer.write_table(table)


def table_of(chunk: Chunk, pooling: str) -> Any:
    """
    The columns `line`, counted from 0, `id` where lines are records with names, `sentence` and
    `embedding`, nested lists of numbers.
    """
    import pyarrow as pa

    columns = {
        "line": pa.array(chunk.numbers),
        **({"id": pa.array(chunk.keys, pa.string())} if chunk.keys else {}),
        "sentence": pa.array(chunk.sentences, pa.string()),
        "embedding": nested_lists(list(chunk.arrays(pooling))),
    }
    return pa.table(columns)


def nested_lists(arrays: list[np.ndarray]) -> Any:
    """Arrays with the same number of axes as an arrow array of lists of lists."""
    import pyarrow as pa

    result = pa.array(np.concatenate([array.reshape(-1) for array in arrays]))
    for axis in reversed(range(arrays[0].ndim)):
        counts = np.concatenate(
            [np.full(int(np.prod(array.shape[:axis])), array.shape[axis]) for array in arrays]
        )
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        result = pa.ListArray.from_arrays(pa.array(starts), result)
    return result
