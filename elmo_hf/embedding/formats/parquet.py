# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Parquet, the compact table that `datasets` and most data tools read."""

from functools import partial
from pathlib import Path

from elmo_hf.embedding.chunks import ChunkFiles
from elmo_hf.embedding.formats._format import OutputFormat
from elmo_hf.embedding.formats._table import write_table


def write_parquet(path: Path, chunks: ChunkFiles, pooling: str) -> None:
    from pyarrow.parquet import ParquetWriter

    # hardly any number occurs twice: a dictionary would make the file half as large again
    write_table(path, chunks, pooling, partial(ParquetWriter, use_dictionary=False))


FORMAT = OutputFormat("parquet", (".parquet",), write_parquet, library="pyarrow")
