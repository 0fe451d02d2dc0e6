# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Files and folders appear under their names whole or not at all, and replace nothing unasked."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp


@contextmanager
def new_folder(final: Path, overwrite: bool) -> Iterator[Path]:
    """A temporary folder beside `final` to write into; it takes that name at the end."""
    final = final.absolute()
    refuse_existing_folder(final, overwrite)
    final.parent.mkdir(parents=True, exist_ok=True)
    building = Path(mkdtemp(prefix=f".{final.name}-", dir=final.parent))
    try:
        yield building
        give_usual_permissions(building)
        # again: it may have appeared meanwhile
        refuse_existing_folder(final, overwrite)
        swap_in(building, final)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def give_usual_permissions(folder: Path) -> None:
    """
    Those that the user's umask allows, for a folder and all in it: mkdtemp and safetensors let
    nobody else read what they make.
    """
    mask = os.umask(0)
    os.umask(mask)
    for path in (folder, *folder.rglob("*")):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)


def swap_in(building: Path, final: Path) -> None:
    """Gives a folder its final name; whatever has that name comes back if this fails."""
    if not final.exists():
        building.rename(final)
        return
    old = Path(mkdtemp(prefix=f".{final.name}-old-", dir=final.parent))
    try:
        final.rename(old / final.name)
        try:
            building.rename(final)
        except OSError:
            (old / final.name).rename(final)
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def new_file(final: Path) -> Iterator[Path]:
    """A temporary path beside `final` to write to; it takes that name at the end."""
    final.parent.mkdir(parents=True, exist_ok=True)
    building = final.with_name(f".{final.name}.{os.getpid()}.part")
    try:
        yield building
        os.replace(building, final)
    finally:
        building.unlink(missing_ok=True)


def refuse_existing_folder(path: Path, overwrite: bool) -> None:
    """An empty folder is no obstacle; anything else stays unless it may be overwritten."""
    is_empty = path.is_dir() and not any(path.iterdir())
    if path.exists() and not overwrite and not is_empty:
        raise FileExistsError(f"{str(path)!r} exists; pass --overwrite to replace it.")


def refuse_existing_file(path: Path, overwrite: bool) -> None:
    """A folder is never replaced by a file."""
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a file.")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{str(path)!r} exists; pass --overwrite to replace it.")
