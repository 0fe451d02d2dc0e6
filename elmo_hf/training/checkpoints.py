# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What a training run under accelerate saves: every part of it is there whole or not at all."""

import os
import pickle
import re
import shutil
import sys
from collections.abc import Collection
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import RNG_STATE_NAME
from accelerate.utils import load as load_saved
from safetensors import safe_open
from tqdm.auto import tqdm

from elmo_hf.hub.bundled import WEIGHTS
from elmo_hf.hub.loading import Loaded, load_model, make_tokenizer
from elmo_hf.modeling_elmo import ElmoPreTrainedModel
from elmo_hf.system.checksums import NAME as CHECKSUMS
from elmo_hf.system.checksums import checksum, find_damage, write_checksums
from elmo_hf.system.failures import explain_failure, first_line
from elmo_hf.system.processes import Processes
from elmo_hf.system.writing import give_usual_permissions
from elmo_hf.tokenization_elmo import ElmoTokenizer
from elmo_hf.training.folder import clear
from elmo_hf.training.identity import (
    NAME,
    WAY_OUT,
    read_identity,
    refuse_other_run,
    report_versions,
    write_identity,
)

# How many checkpoints are kept.
KEPT = 2
STATES = "states.pt"


class Stateful(Protocol):
    """Has a state of numbers, texts, lists, dictionaries and tensors."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any], /) -> None: ...


class Checkpoints:
    """
    The last two states of a run, as folders `checkpoint-STEP`, and `run.json`, its identity.

    A state holds everything that accelerate has prepared, the random generators of every process,
    and the `states` of further objects. These are not registered with accelerate, which would
    unpickle them: loading a checkpoint of a stranger must not run code.
    """

    def __init__(
        self,
        accelerator: Accelerator,
        folder: Path,
        identity: dict[str, Any],
        *states: Stateful,
    ):
        self.accelerator, self.folder, self.identity = accelerator, folder, identity
        self.states = states
        self.processes = Processes(accelerator.process_index, accelerator.num_processes)

    def resume(self, overwrite: bool = False, keep: Collection[str] = ()) -> bool:
        """
        Loads the newest state that is not damaged, if there is one. Another run in the folder is an
        error, or is removed if it may be overwritten; `keep` names what this run has made already.
        """
        path = self.processes.by_the_first(
            lambda: begin_run(self.folder, self.identity, overwrite, keep)
        )
        if path is None:
            return False
        try:
            # accelerate itself goes on in silence without random states
            load_saved(path / f"{RNG_STATE_NAME}_{self.processes.rank}.pkl")["torch_manual_seed"]
            self.accelerator.load_state(str(path))
            # mapped, because a state may be as large as the model
            saved = torch.load(path / STATES, map_location="cpu", weights_only=True, mmap=True)
            for one, state in zip(self.states, saved, strict=True):
                one.load_state_dict(state)
        except (MemoryError, OSError, torch.OutOfMemoryError):
            raise
        # Its checksums are right, so it was made like this: by another version, or by a stranger.
        except Exception as error:
            raise ValueError(cannot_load(path, error)) from error
        return True

    def load_model(self, kind: type[Loaded], expected: int | None) -> Loaded:
        """The best model of the run from its folder; `expected` is the checksum of its weights."""
        self.check_best(expected)
        return load_model(kind, str(self.folder))

    def load_weights(self, model: ElmoPreTrainedModel, expected: int | None) -> None:
        """Gives a model the weights of the best one, which are never in memory twice."""
        self.check_best(expected)
        with safe_open(self.folder / WEIGHTS, framework="pt") as file:
            for name, weight in model.state_dict().items():
                weight.copy_(file.get_tensor(name))

    def check_best(self, expected: int | None) -> None:
        self.accelerator.wait_for_everyone()
        path = self.folder / WEIGHTS

        def check() -> None:
            if not path.exists() or checksum(path) != expected:
                raise ValueError(
                    f"{str(path)!r} is missing, or has changed since the run saved it; {WAY_OUT}."
                )

        self.processes.by_the_first(check)

    def save(self, step: int) -> None:
        """Saves the state of this step, and only then removes an old one."""
        final = self.folder / f"checkpoint-{step}"
        # One name for all processes, since each of them writes a part.
        building = self.folder / f".{final.name}.part"
        main = self.accelerator.is_main_process
        if final.exists():
            return
        # Every process takes part: a state may be gathered from all of them.
        states = [plain_values(one.state_dict()) for one in self.states]
        if main:
            shutil.rmtree(building, ignore_errors=True)
        self.accelerator.wait_for_everyone()
        with report_failure(f"The checkpoint of step {step}", self.folder, building):
            self.accelerator.save_state(str(building))
            if main:
                torch.save(states, building / STATES)
        self.accelerator.wait_for_everyone()
        if main:
            with report_failure(f"The checkpoint of step {step}", self.folder, building):
                seal(building, self.identity)
            building.rename(final)
            for old in all_checkpoints(self.folder)[:-KEPT]:
                shutil.rmtree(old)
        self.accelerator.wait_for_everyone()


def cannot_load(path: Path, error: Exception) -> str:
    reason = first_line(error)
    # torch's own message advises to load it in the way that runs code
    if isinstance(error, pickle.UnpicklingError):
        reason = "it holds more than tensors and plain values"
    return (
        f"{str(path)!r} cannot be loaded ({reason}); remove it to resume from an older checkpoint, "
        "or pass --overwrite_output_dir to train anew."
    )


def plain_values(state: Any) -> Any:
    """A state without numbers of numpy, which can only be unpickled."""
    if isinstance(state, dict):
        return {name: plain_values(value) for name, value in state.items()}
    if isinstance(state, (list, tuple)):
        return [plain_values(value) for value in state]
    return state.item() if isinstance(state, np.generic) else state


def begin_run(
    folder: Path, identity: dict[str, Any], overwrite: bool, keep: Collection[str] = ()
) -> Path | None:
    """The checkpoint to resume from, if there is one; the folder belongs to the run from now on."""
    if overwrite:
        clear(folder, keep)
    known = read_identity(folder)
    if known is not None:
        refuse_other_run(folder, known, identity)
    newest = newest_whole(folder)
    if newest is not None:
        known = read_identity(newest)
        refuse_other_run(folder, known, identity)
    elif known is None and (folder / NAME).exists():
        raise ValueError(f"{str(folder / NAME)!r} is damaged; {WAY_OUT}.")
    if known is not None:
        report_versions(known["versions"], identity["versions"])
    if read_identity(folder) is None:
        write_identity(folder, identity)
    return newest


def seal(checkpoint: Path, identity: dict[str, Any]) -> None:
    """Adds to a checkpoint whose it is, and the checksums that make it a whole one."""
    write_identity(checkpoint, identity)
    write_checksums(checkpoint)


def newest_whole(folder: Path) -> Path | None:
    """
    The newest checkpoint that is not damaged. Damaged ones are moved aside, and those that the
    Trainer did not finish are removed.
    """
    for path in reversed(all_checkpoints(folder)):
        damage = find_damage(path)
        if damage is None:
            return path
        # transformers' Trainer writes a checkpoint under its final name, and is killed in between
        if (path / CHECKSUMS).exists() or (path / STATES).exists():
            aside = path.with_name(f"damaged-{path.name}")
            shutil.rmtree(aside, ignore_errors=True)
            path.rename(aside)
            now = f"is now {aside.name}"
        else:
            shutil.rmtree(path)
            damage, now = "it was not finished", "is removed"
        tqdm.write(
            f"{path.name} cannot be used ({damage}) and {now}; resuming from an older checkpoint, "
            "or from the beginning if there is none.",
            file=sys.stderr,
        )
    return None


def all_checkpoints(folder: Path) -> list[Path]:
    """The oldest first."""
    found = {
        int(match[1]): path
        for path in folder.glob("checkpoint-*")
        if (match := re.fullmatch(r"checkpoint-(\d+)", path.name))
    }
    return [found[step] for step in sorted(found)]


def finished_checkpoints(folder: Path) -> list[Path]:
    """Those that have their checksums."""
    return [path for path in all_checkpoints(folder) if (path / CHECKSUMS).exists()]


def way_on(folder: Path) -> str:
    """What to do after a run has failed that can be repeated."""
    kept = [path.name for path in finished_checkpoints(folder)][-1:]
    if not kept:
        return "There is no checkpoint yet; repeat the command to start again."
    return (
        f"The last good checkpoint is {kept[0]}; to resume from it, repeat the command without "
        "--overwrite_output_dir."
    )


def report_failure(what: str, folder: Path, building: Path) -> AbstractContextManager[None]:
    """Turns a failed write into one sentence, and removes what was written of it."""

    def explain(reason: str) -> str:
        return f"{what} could not be written ({reason}). {way_on(folder)}"

    return explain_failure(folder, explain, lambda: shutil.rmtree(building, ignore_errors=True))


def save_model(
    model: ElmoPreTrainedModel, folder: Path, tokenizer: ElmoTokenizer | None = None
) -> int:
    """
    Saves a model and its tokenizer, by default one that splits at blanks. Each file takes its name
    whole; other files stay. Returns the checksum of the weights.
    """
    save_files(folder, model, tokenizer or make_tokenizer(model))
    return checksum(folder / WEIGHTS)


def save_files(folder: Path, *parts: ElmoPreTrainedModel | ElmoTokenizer) -> None:
    """Saves a model, a tokenizer or both."""
    building = folder / ".model.part"
    shutil.rmtree(building, ignore_errors=True)
    with report_failure("The model", folder, building):
        for part in parts:
            part.save_pretrained(building)
    give_usual_permissions(building)
    for file in building.iterdir():
        os.replace(file, folder / file.name)
    building.rmdir()
