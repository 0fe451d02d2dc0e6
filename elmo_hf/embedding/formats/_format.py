# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What a file format of vectors says of itself."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from elmo_hf.embedding.chunks import ChunkFiles
from elmo_hf.extras import require


@dataclass(frozen=True)
class OutputFormat:
    name: str
    # file endings that stand for it
    suffixes: tuple[str, ...]
    # Writes all chunks to a path, pooled as it says. Files beside the path are named after its
    # stem, as in "whole.offsets.npy" for "whole.npy".
    write: Callable[[Path, ChunkFiles, str], None]
    # what the names of these files have in the place of the suffix
    beside: tuple[str, ...] = ()
    # a library of one of our extras that it needs
    library: str | None = None
    # room on the disk that a line takes besides its vectors, at most
    bytes_per_line: int = 0

    def check_library(self) -> None:
        """Refuses a missing library before the work begins."""
        if self.library is not None:
            require(self.library, f"Writing {self.name}")
