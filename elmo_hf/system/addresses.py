# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Addresses such as s3://bucket/file, where a path of this machine may be expected."""

import re
from pathlib import Path

# C:/ is a drive of Windows, and a `Path` has lost the second slash
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)


def is_address(path: str | Path) -> bool:
    return ADDRESS.match(str(path)) is not None


def refuse_address(path: str | Path, remedy: str) -> None:
    """Where only a path will do: an address would become a folder with an odd name."""
    if is_address(path):
        address = re.sub(":/+", "://", str(path), count=1)
        raise ValueError(f"{address!r} is an address, not a path of this machine; {remedy}.")
