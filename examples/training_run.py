"""How a training run under accelerate begins and ends."""

import argparse
import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from accelerate import Accelerator
from transformers.utils import logging

# of glibc's malloc.h
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


@contextmanager
def training_run(args: argparse.Namespace, name: str) -> Iterator[Accelerator]:
    """A run of this name, with `output_dir`, `report_to` and maybe `mixed_precision` in `args`."""
    keep_freed_memory()
    # their bars would break ours, and a new head is no news
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    args.output_dir.mkdir(parents=True, exist_ok=True)
    accelerator = Accelerator(
        mixed_precision=getattr(args, "mixed_precision", None),
        log_with=args.report_to,
        project_dir=args.output_dir,
    )
    if args.report_to is not None:
        settings = {name: str(value) for name, value in vars(args).items()}
        accelerator.init_trackers(name, config=settings)
    yield accelerator
    leave_together(accelerator)


def leave_together(accelerator: Accelerator) -> None:
    """The model goes before the group it talks through: the other way round may hang or abort."""
    accelerator.wait_for_everyone()
    accelerator.free_memory()
    accelerator.end_training()


def keep_freed_memory() -> None:
    """
    Lets the process keep the memory it frees, for its next step.

    By default glibc hands large pieces back to the system and asks for them again at every step of
    a training, which on a CPU costs up to a third of the time. Elsewhere nothing happens.
    """
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
        library.mallopt(M_MMAP_THRESHOLD, 2**30)
