# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Files and folders appear under their names whole or not at all, and replace nothing unasked."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

# A disk with fewer free bytes counts as full.
ROOM = 1 << 20


@contextmanager
def new_folder(final: Path, overwrite: bool) -> Iterator[Path]:
    """A temporary folder beside `final` to write into; it takes that name at the end."""
    final = final.absolute()
    refuse_existing(final, overwrite)
    final.parent.mkdir(parents=True, exist_ok=True)
    building = Path(mkdtemp(prefix=f".{final.name}-", dir=final.parent))
    try:
        yield building
        # mkdtemp keeps others out, which an ordinary folder does not
        building.chmod(0o755)
        # it may have appeared in the meantime
        refuse_existing(final, overwrite)
        if final.exists():
            old = Path(mkdtemp(prefix=f".{final.name}-old-", dir=final.parent))
            final.rename(old / final.name)
            building.rename(final)
            shutil.rmtree(old)
        else:
            building.rename(final)
    finally:
        shutil.rmtree(building, ignore_errors=True)


@contextmanager
def new_file(final: Path) -> Iterator[Path]:
    """A temporary path beside `final` to write to; it takes that name at the end."""
    building = final.with_name(f".{final.name}.{os.getpid()}.part")
    try:
        yield building
        os.replace(building, final)
    finally:
        building.unlink(missing_ok=True)


def refuse_existing(path: Path, overwrite: bool) -> None:
    """An empty folder is no obstacle; anything else stays unless it may be overwritten."""
    is_empty_folder = path.is_dir() and not any(path.iterdir())
    if path.exists() and not overwrite and not is_empty_folder:
        raise FileExistsError(f"{str(path)!r} exists; pass --overwrite to replace it.")


def write_failure(error: Exception, folder: Path) -> str:
    """Why something could not be written there: libraries report a full disk in many ways."""
    if shutil.disk_usage(folder).free < ROOM:
        return "the disk is full"
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return reason.splitlines()[0]
