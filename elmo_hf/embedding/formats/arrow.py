# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Arrow, which `datasets` maps into memory as it is on the disk."""

from pathlib import Path

from elmo_hf.embedding.chunks import ChunkFiles
from elmo_hf.embedding.formats._format import OutputFormat
from elmo_hf.embedding.formats._table import write_table


def write_arrow(path: Path, chunks: ChunkFiles, pooling: str) -> None:
    import pyarrow as pa

    write_table(path, chunks, pooling, pa.ipc.new_stream)


FORMAT = OutputFormat("arrow", (".arrow",), write_arrow, library="pyarrow")
