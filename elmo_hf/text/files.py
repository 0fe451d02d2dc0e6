# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Which files a path or a glob names, and how large they are."""

import glob
from collections.abc import Sequence
from pathlib import Path

from elmo_hf.system.untrusted import refuse_unreadable


def find_files(pattern: str | Path) -> list[Path]:
    """The files of a path or a glob, in the order of their names."""
    refuse_unreadable(Path(pattern))
    if Path(pattern).is_dir():
        raise IsADirectoryError(f"{str(pattern)!r} is a folder; name its files, as in FOLDER/*.txt")
    files = (
        [Path(pattern)] if Path(pattern).exists() else sorted(map(Path, glob.glob(str(pattern))))
    )
    if not files:
        raise FileNotFoundError(f"There is no file {str(pattern)!r}.")
    return files


def check_file(path: Path) -> None:
    """Refuses a path at which there is no file."""
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a file in it.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")


def size_of(files: Sequence[Path]) -> int:
    """Bytes on the disk, as `raw_lines` counts them."""
    return sum(file.stat().st_size for file in files)
