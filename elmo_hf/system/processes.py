# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Processes that share one job: their number, their device, and files only one of them may use."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import IO, Any

import torch
from torch import distributed

from elmo_hf.system.failures import first_line

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

# one process may wait for the others as long as they work
AS_LONG_AS_IT_TAKES = timedelta(days=365)


@dataclass(frozen=True)
class Processes:
    """This process among those that accelerate or torchrun started."""

    rank: int = 0
    count: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def by_the_first(self, work: Callable[[], Any], takes_long: bool = False) -> Any:
        """
        Only the first process does the work; all of them get its result, or raise its error. Work
        of more than a few minutes needs `takes_long`, or the others give up.
        """
        group = None
        if takes_long and self.count > 1:
            group = distributed.new_group(backend="gloo", timeout=AS_LONG_AS_IT_TAKES)
        found = None
        if self.is_first:
            try:
                found = work()
            except (ImportError, OSError, ValueError) as error:
                found = error
        if self.count > 1:
            box = [found]
            distributed.broadcast_object_list(box, group=group)
            [found] = box
        if group is not None:
            distributed.destroy_process_group(group)
        if isinstance(found, Exception):
            raise found
        return found

    def wait_for_all(self) -> None:
        if self.count > 1:
            distributed.barrier()


@contextmanager
def process_group() -> Iterator[Processes]:
    """Connects the processes of this run; a run without a launcher is one process."""
    count = int(os.environ.get("WORLD_SIZE", 1))
    if count == 1:
        yield Processes()
        return
    distributed.init_process_group("gloo", timeout=AS_LONG_AS_IT_TAKES)
    try:
        yield Processes(distributed.get_rank(), count)
    finally:
        distributed.destroy_process_group()


def choose_device(name: str | None = None) -> str:
    """The named device, if it can be used; by default this process's own GPU, or else the CPU."""
    if name is None:
        rank = os.environ.get("LOCAL_RANK", "0")
        return f"cuda:{rank}" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    # torch has errors of several kinds for an unknown name and for a GPU that is not there
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(f"The device {name!r} cannot be used: {first_line(error)}.") from error
    return name


def lock_file(file: IO | int) -> bool:
    """
    Locks an open file, or the folder of a descriptor, for this process; False if another process
    has locked it. Where the system or the file system knows no locks, any process succeeds.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some file systems of clusters
        pass
    return True
