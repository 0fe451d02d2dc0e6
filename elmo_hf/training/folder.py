# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The output folder of a training: one run at a time, and never unasked in the place of a model."""

import glob
import os
import shutil
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatch
from pathlib import Path

from elmo_hf.hub.publish import PUBLISHED
from elmo_hf.system.addresses import refuse_address
from elmo_hf.system.processes import Processes
from elmo_hf.system.writing import locked
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
    "confusion.png",
    "layers.png",
    "learning.png",
    "tags.png",
    "training_args.bin",
    "*_results.json",
    *PUBLISHED,
)
# Sentences made of raw text. A run makes them before it has begun, so they are no obstacle to one.
SPLIT_TEXT = "split-text"
# what else reveals a model
MODELS = ("*.safetensors", "*.bin", "*.hdf5")


@contextmanager
def claimed_folder(
    folder: Path,
    inputs: Iterable[object] = (),
    overwrite: bool = False,
    process_index: int = 0,
    num_processes: int = 1,
) -> Iterator[None]:
    """
    Makes a folder if there is none, and keeps other runs out of it. A run that is killed gives it
    back. Raises an error if the folder holds a model or other files that no run in it has made,
    unless these may be overwritten; the `inputs` of the run, those that are paths, may not.
    """
    with ExitStack() as held:

        def claim() -> None:
            refuse_inputs(folder, inputs, overwrite)
            refuse_occupied(folder, overwrite)
            folder.mkdir(parents=True, exist_ok=True)
            if not held.enter_context(locked(folder)):
                raise BlockingIOError(
                    f"Another run is training in {str(folder)!r}; wait for it, or stop it."
                )

        Processes(process_index, num_processes).by_the_first(claim)
        yield


def refuse_inputs(folder: Path, inputs: Iterable[object], overwrite: bool) -> None:
    """What a run reads must not be what it replaces or removes."""
    for value in inputs:
        if not isinstance(value, (str, Path)):
            continue
        replaced = (*OF_A_RUN, SPLIT_TEXT) if overwrite else (SPLIT_TEXT,)
        for path in [value] if Path(value).exists() else glob.glob(str(value)):
            inside = Path(os.path.relpath(Path(path).resolve(), folder.resolve())).parts
            if inside and not any(fnmatch(inside[0], one) for one in replaced):
                continue
            raise ValueError(
                f"{str(value)!r} is what the training starts from, and would be lost; choose "
                "another --output_dir."
            )


def refuse_occupied(folder: Path, overwrite: bool) -> None:
    refuse_address(folder, "mount the storage, and name the folder at which it is mounted")
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{str(folder)!r} is a file; choose another --output_dir.")
    if (folder / NAME).exists() or overwrite:
        return
    for pattern in (*MODELS, *OF_A_RUN):
        for path in sorted(folder.glob(pattern)):
            raise FileExistsError(
                f"{str(folder)!r} holds a file that is not of a run in it, {path.name!r}; "
                f"{WAY_OUT}."
            )


def clear(folder: Path, keep: Collection[str] = ()) -> None:
    """Removes what a run writes, but for the names to keep; other files stay."""
    for pattern in {*OF_A_RUN, SPLIT_TEXT}.difference(keep):
        for path in folder.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
