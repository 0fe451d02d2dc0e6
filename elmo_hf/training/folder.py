# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The output folder of a training: one run at a time, and never unasked in the place of a model."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from elmo_hf.hub.publish import PUBLISHED
from elmo_hf.system.processes import Processes, lock_file
from elmo_hf.training.identity import NAME, WAY_OUT

# what a run writes
OF_A_RUN = (
    NAME,
    "checkpoint-*",
    "damaged-checkpoint-*",
    ".checkpoint-*.part",
    ".model.part",
    "predictions-*.conllu",
    "report.html",
    "curve.png",
    "training_args.bin",
    "*_results.json",
    *PUBLISHED,
)
# what reveals a model or a run of somebody else
OCCUPIED = ("config.json", "*.safetensors", "*.bin", "*.hdf5", "checkpoint-*")


@contextmanager
def claimed_folder(
    folder: Path,
    overwrite: bool = False,
    base: str | None = None,
    process_index: int = 0,
    num_processes: int = 1,
) -> Iterator[None]:
    """
    Makes a folder if there is none, and keeps other runs out of it. Raises an error if it holds a
    model that no run in it has made, unless that may be overwritten; `base`, the model to start
    from, may not. A run that is killed gives the folder back.
    """
    with ExitStack() as held:

        def claim() -> None:
            refuse_folder(folder, overwrite, base)
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(folder))

        Processes(process_index, num_processes).by_the_first(claim)
        yield


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Locks the folder itself, so that no file is left behind. Windows cannot do that."""
    if os.name == "nt":
        yield
        return
    lock = os.open(folder, os.O_RDONLY)
    try:
        if not lock_file(lock):
            raise BlockingIOError(
                f"Another run is training in {str(folder)!r}; wait for it, or stop it."
            )
        yield
    finally:
        os.close(lock)


def refuse_folder(folder: Path, overwrite: bool, base: str | None) -> None:
    if base is not None and Path(base).exists() and Path(base).resolve() == folder.resolve():
        raise ValueError(
            f"{str(folder)!r} is the model that the training starts from, which would be lost; "
            "choose another --output_dir."
        )
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{str(folder)!r} is a file; choose another --output_dir.")
    occupied = [path.name for pattern in OCCUPIED for path in sorted(folder.glob(pattern))]
    if occupied and not (folder / NAME).exists() and not overwrite:
        raise FileExistsError(
            f"{str(folder)!r} holds a model or a run of unknown origin ({occupied[0]}); {WAY_OUT}."
        )


def clear(folder: Path) -> None:
    """Removes what a run writes; other files stay."""
    for pattern in OF_A_RUN:
        for path in folder.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
