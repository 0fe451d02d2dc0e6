# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What a training run under accelerate saves: every part of it is there whole or not at all."""

import os
import re
import shutil
from contextlib import AbstractContextManager
from pathlib import Path

from accelerate import Accelerator

from elmo_hf.modeling_elmo import ElmoPreTrainedModel
from elmo_hf.system.failures import explain_failure
from elmo_hf.tokenization_elmo import ElmoTokenizer

# How many checkpoints are kept.
KEPT = 2


class Checkpoints:
    """
    The last two states of a run, as folders `checkpoint-STEP`.

    A state holds everything that accelerate has prepared, everything that was registered with
    `register_for_checkpointing`, and the random generators of every process.
    """

    def __init__(self, accelerator: Accelerator, folder: Path):
        self.accelerator, self.folder = accelerator, folder

    def resume(self) -> bool:
        """Loads the last state, if there is one."""
        last = all_checkpoints(self.folder)[-1:]
        for path in last:
            self.accelerator.load_state(str(path))
        return bool(last)

    def save(self, step: int) -> None:
        """Saves the state of this step, and only then removes an old one."""
        final = self.folder / f"checkpoint-{step}"
        # One name for all processes, since each of them writes a part.
        building = self.folder / f".{final.name}.part"
        main = self.accelerator.is_main_process
        if final.exists():
            return
        if main:
            shutil.rmtree(building, ignore_errors=True)
        self.accelerator.wait_for_everyone()
        with report_failure(f"The checkpoint of step {step}", self.folder, building):
            self.accelerator.save_state(str(building))
        self.accelerator.wait_for_everyone()
        if main:
            building.rename(final)
            for old in all_checkpoints(self.folder)[:-KEPT]:
                shutil.rmtree(old)
        self.accelerator.wait_for_everyone()


def all_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints that are whole, the oldest first."""
    found = {
        int(match[1]): path
        for path in folder.glob("checkpoint-*")
        if (match := re.fullmatch(r"checkpoint-(\d+)", path.name))
    }
    return [found[step] for step in sorted(found)]


def report_failure(what: str, folder: Path, building: Path) -> AbstractContextManager[None]:
    """Turns a failed write into one sentence, and removes what was written of it."""

    def explain(reason: str) -> str:
        last = [path.name for path in all_checkpoints(folder)][-1:] or ["none"]
        return (
            f"{what} could not be written ({reason}). The last good checkpoint is {last[0]}; to "
            "resume from it, repeat the command."
        )

    return explain_failure(folder, explain, lambda: shutil.rmtree(building, ignore_errors=True))


def save_model(model: ElmoPreTrainedModel, folder: Path) -> None:
    """Saves a model and its tokenizer. Each file takes its name whole; other files stay."""
    building = folder / ".model.part"
    shutil.rmtree(building, ignore_errors=True)
    width = model.config.max_characters_per_token
    with report_failure("The model", folder, building):
        model.save_pretrained(building)
        ElmoTokenizer(max_characters_per_token=width).save_pretrained(building)
    for file in building.iterdir():
        os.replace(file, folder / file.name)
    building.rmdir()
