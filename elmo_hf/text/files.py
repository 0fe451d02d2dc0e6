# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Which files a path, a glob or an address names, and how large they are."""

import glob
from collections.abc import Sequence
from pathlib import Path

from elmo_hf.system.addresses import is_address, refuse_address
from elmo_hf.system.untrusted import refuse_unreadable
from elmo_hf.text.remote import fetch_files
from elmo_hf.text_lines import is_gzipped


def find_files(pattern: str | Path) -> list[Path]:
    """
    The files of a path or a glob, in the order of their names. Those of an address, such as
    s3://bucket/*.txt, are local copies, which are fetched now unless they are there.
    """
    if is_address(pattern):
        return fetch_files(str(pattern))
    refuse_unreadable(Path(pattern))
    if Path(pattern).is_dir():
        raise IsADirectoryError(f"{str(pattern)!r} is a folder; name its files, as in FOLDER/*.txt")
    files = (
        [Path(pattern)] if Path(pattern).exists() else sorted(map(Path, glob.glob(str(pattern))))
    )
    if not files:
        raise FileNotFoundError(f"There is no file {str(pattern)!r}.")
    return files


def all_end_in(pattern: str | Path, endings: Sequence[str], kind: str) -> bool:
    """
    Whether the names of these files, gzipped or not, end like files of a kind; refuses a mixture.
    """
    files = find_files(pattern)
    found = [has_ending(file, endings) for file in files]
    if any(found) and not all(found):
        other = files[found.index(False)]
        raise ValueError(
            f"{str(pattern)!r} names {kind} files and {str(other)!r}; read them one after the "
            "other."
        )
    return all(found)


def has_ending(file: Path, endings: Sequence[str]) -> bool:
    bare = file.with_suffix("") if is_gzipped(file) else file
    return bare.suffix.lower() in endings


def check_file(path: Path) -> None:
    """Refuses a path at which there is no file."""
    refuse_address(path, "copy the file to this machine first")
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a file in it.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")


def size_of(files: Sequence[Path]) -> int:
    """Bytes on the disk, as `raw_lines` counts them."""
    return sum(file.stat().st_size for file in files)
