# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Files and folders appear under their names whole or not at all, and replace nothing unasked."""

import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import IO
from uuid import uuid4

from elmo_hf.system.addresses import refuse_address
from elmo_hf.system.failures import explain_failure
from elmo_hf.system.processes import lock_file

# what to do with an address in the place of an output
WRITE_HERE = "write to a path, and copy the result there when it is complete"
# the folders that are made beside a folder while it is written, and the random end of their names
BUILDING, OLD = "building", "old"
RANDOM = "[a-z0-9_]{8}"


@contextmanager
def new_folder(final: Path, overwrite: bool) -> Iterator[Path]:
    """A temporary folder beside `final` to write into; it takes that name at the end."""
    refuse_existing_folder(final, overwrite)
    # a path may end in `..`, which is no name
    final = final.absolute() if final.name not in ("", "..") else final.resolve()
    final.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(final)
    refuse_existing_folder(final, overwrite)
    with temporary_folder(final, BUILDING) as building:
        with explain_failure(final.parent, lambda reason: f"{could_not_write(final)}: {reason}."):
            yield building
            give_usual_permissions(building)
        swap_in(building, final, overwrite)


@contextmanager
def temporary_folder(final: Path, kind: str) -> Iterator[Path]:
    """A folder beside `final` that is deleted at the end, and locked until then."""
    while True:
        folder = Path(mkdtemp(prefix=f".{final.name}-{kind}-", dir=final.parent))
        with locked(folder) as is_locked:
            # another process may have taken it for a leftover before it was locked
            if not (is_locked and folder.exists()):
                continue
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            return


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Whether this process could lock a folder, until the end. The lock of a killed one is free."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except OSError:
        # it is gone, or this is Windows, which opens no folders
        yield folder.exists()
        return
    try:
        yield lock_file(opened)
    finally:
        os.close(opened)


def remove_leftovers(final: Path) -> None:
    """
    Removes what killed runs left beside a folder, never what a living one uses. A folder that was
    being replaced comes back if its successor never came.
    """
    pattern = re.compile(rf"\.{re.escape(final.name)}-({BUILDING}|{OLD})-{RANDOM}")
    for folder in list(final.parent.iterdir()):
        found = pattern.fullmatch(folder.name)
        if not found or folder.is_symlink() or not folder.is_dir():
            continue
        # where the file system knows no locks, the second one succeeds as well
        with locked(folder) as is_free, locked(folder) as has_no_locks:
            if not is_free or has_no_locks:
                continue
            replaced = folder / final.name
            if found[1] == OLD and replaced.exists() and not final.exists():
                replaced.rename(final)
            shutil.rmtree(folder, ignore_errors=True)


def give_usual_permissions(folder: Path) -> None:
    """
    Those that the user's umask allows, for a folder and all in it: mkdtemp and safetensors let
    nobody else read what they make.
    """
    # of a new file, since asking for the umask itself changes it for a moment, for all threads
    probe = folder / ".permissions"
    probe.touch()
    allowed = stat.S_IMODE(probe.stat().st_mode)
    probe.unlink()
    for path in (folder, *folder.rglob("*")):
        # who may read a folder may enter it
        entering = (allowed & 0o444) >> 2 if path.is_dir() else 0
        # a shared folder may give its group to all that is made in it
        group = path.stat().st_mode & stat.S_ISGID
        path.chmod(allowed | entering | group)


def swap_in(building: Path, final: Path, overwrite: bool) -> None:
    """Gives a folder its final name; whatever has that name comes back if this fails."""
    if not overwrite or not final.exists():
        # again: it may have appeared meanwhile
        refuse_existing_folder(final, overwrite)
        # an empty folder may be replaced; any other stays, even if it appears at this very moment
        with suppress(OSError):
            final.rmdir()
        building.rename(final)
        return
    with temporary_folder(final, OLD) as old:
        final.rename(old / final.name)
        try:
            building.rename(final)
        except OSError:
            (old / final.name).rename(final)
            raise


@contextmanager
def new_file(final: Path, overwrite: bool = True) -> Iterator[Path]:
    """A temporary path beside `final` to write to; it takes that name at the end."""
    final.parent.mkdir(parents=True, exist_ok=True)
    with (
        explain_failure(final.parent, lambda reason: f"{could_not_write(final)}: {reason}."),
        part_of(final) as building,
    ):
        try:
            yield building
            if not overwrite:
                claim_name(building, final)
            os.replace(building, final)
        finally:
            building.unlink(missing_ok=True)


@contextmanager
def part_of(final: Path) -> Iterator[Path]:
    """
    A path for an unfinished file. It is always the same, so that the next run uses what a killed
    one has left behind, except while somebody else is writing to it.
    """
    usual = final.with_name(f".{final.name}.part")
    unusual = final.with_name(f".{final.name}.{uuid4().hex}.part")
    # Windows renames no open file
    if os.name == "nt":
        yield unusual
        return
    with usual.open("ab") as file:
        yield usual if lock_file(file) and is_same(usual, file) else unusual


def is_same(path: Path, file: IO) -> bool:
    """Whether an open file still has this path: its writer may have given it its final name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def claim_name(building: Path, final: Path) -> None:
    """Gives a file a second name; if the name has appeared meanwhile, it is refused."""
    # not every file system knows second names, but none replaces a file by one
    with suppress(OSError):
        os.link(building, final)
        return
    refuse_existing_file(final, overwrite=False)


def write_text(path: Path, text: str) -> None:
    r"""Writes a file of UTF-8 whose lines end in `\n` on every system."""
    with new_file(path) as building:
        building.write_text(text, encoding="utf-8", newline="\n")


def could_not_write(final: Path) -> str:
    return f"{str(final)!r} could not be written"


def refuse_existing_folder(path: Path, overwrite: bool) -> None:
    """An empty folder is no obstacle; anything else stays unless it may be overwritten."""
    refuse_address(path, WRITE_HERE)
    if path.resolve() == path.resolve().parent:
        raise ValueError(f"{str(path)!r} is the root of the file system; name a folder in it.")
    is_empty = path.is_dir() and not any(path.iterdir())
    if path.exists() and not overwrite and not is_empty:
        raise FileExistsError(f"{str(path)!r} exists; pass --overwrite to replace it.")


def refuse_existing_file(path: Path, overwrite: bool) -> None:
    """A folder is never replaced by a file."""
    refuse_address(path, WRITE_HERE)
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a file.")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{str(path)!r} exists; pass --overwrite to replace it.")
