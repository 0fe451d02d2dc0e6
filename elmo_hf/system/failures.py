# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Errors of the system and of libraries, reported to users in one sentence."""

import errno
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

# A disk with fewer free bytes counts as full.
ROOM = 1 << 20


def first_line(error: Exception) -> str:
    """The first line of a message, to be part of a sentence; the error's kind if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def describe(error: Exception) -> str:
    """A message for the user, also of an error that comes without one."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{str(error.filename)!r} cannot be used: {error.strerror}."
    if str(error).strip():
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory; use a smaller model or input, or another machine."
    return f"{type(error).__name__}."


def write_failure(error: Exception, folder: Path) -> str:
    """Why something could not be written there: libraries report a full disk in many ways."""
    if has_no_room(folder):
        return "the disk is full"
    return getattr(error, "strerror", None) or first_line(error)


def is_full(error: Exception, folder: Path) -> bool:
    """Whether an error comes from a disk or a quota without room."""
    has_code = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
    return has_code or has_no_room(folder)


def has_no_room(folder: Path) -> bool:
    return shutil.disk_usage(folder).free < ROOM


def refuse_full_disk(folder: Path, needed: int) -> None:
    """Before hdf5 is written, whose library crashes or prints its own errors on a full disk."""
    if shutil.disk_usage(folder).free < needed:
        raise OSError(errno.ENOSPC, f"the disk has no room for {needed / 1e6:,.1f} MB more")


@contextmanager
def explain_failure(
    folder: Path,
    explain: Callable[[str], str],
    clean_up: Callable[[], object] = lambda: None,
) -> Iterator[None]:
    """
    Turns a failed write into an OSError, whose message `explain` makes of the reason. `clean_up`
    removes what was written, before the message is made.
    """
    try:
        yield
    # a full disk is an OSError to Python, a RuntimeError to torch and h5py
    except (OSError, RuntimeError, SafetensorError) as error:
        # asked before the unfinished files free their space
        reason = write_failure(error, folder)
        clean_up()
        raise OSError(explain(reason)) from error
