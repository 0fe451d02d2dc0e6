# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What a process does with memory that it frees; elsewhere than with glibc nothing happens."""

import ctypes
import sys

# of glibc's malloc.h
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> None:
    """
    Lets the process keep the memory it frees, for its next batch.

    By default large pieces go back to the system and are asked for again at every batch, which on a
    CPU costs up to a third of the time of a training.
    """
    call("mallopt", M_TRIM_THRESHOLD, 2**31 - 1)
    call("mallopt", M_MMAP_THRESHOLD, 2**30)


def hand_back_memory() -> None:
    """The holes between the pieces that a long run keeps would add up."""
    call("malloc_trim", 0)


def call(name: str, *arguments: int) -> None:
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if hasattr(library, name):
        getattr(library, name)(*arguments)
