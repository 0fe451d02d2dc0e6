"""What a training run under accelerate saves: each of it is there whole or not at all."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from accelerate import Accelerator

from elmo_hf import ElmoPreTrainedModel, ElmoTokenizer

KEPT = 2
# bytes; with fewer left a disk is full
ROOM = 1 << 20


class Checkpoints:
    """
    The last two states of a run, as folders `checkpoint-STEP`.

    A state holds what accelerate was given to prepare and all that was registered with
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
        """Saves the state of this step, and only then drops an old one."""
        final = self.folder / f"checkpoint-{step}"
        building = self.folder / f".{final.name}.part"
        main = self.accelerator.is_main_process
        if final.exists():
            return
        if main:
            shutil.rmtree(building, ignore_errors=True)
        self.accelerator.wait_for_everyone()
        with told(f"The checkpoint of step {step}", self.folder, building):
            self.accelerator.save_state(str(building))
        self.accelerator.wait_for_everyone()
        if main:
            building.rename(final)
            for old in all_checkpoints(self.folder)[:-KEPT]:
                shutil.rmtree(old)
        self.accelerator.wait_for_everyone()


def all_checkpoints(folder: Path) -> list[Path]:
    """Those that are whole, the oldest first."""
    found = {
        int(match[1]): path
        for path in folder.glob("checkpoint-*")
        if (match := re.fullmatch(r"checkpoint-(\d+)", path.name))
    }
    return [found[step] for step in sorted(found)]


@contextmanager
def told(what: str, folder: Path, building: Path) -> Iterator[None]:
    """Says in one sentence that something could not be written, and drops what there is of it."""
    try:
        yield
    except Exception as error:
        # torch and safetensors report a full disk each in a way of their own
        full = shutil.disk_usage(folder).free < ROOM
        reason = "the disk is full" if full else str(error).splitlines()[0]
        shutil.rmtree(building, ignore_errors=True)
        last = [path.name for path in all_checkpoints(folder)][-1:] or ["none"]
        raise OSError(
            f"{what} could not be written ({reason}). The last good checkpoint is {last[0]}; the "
            "same command goes on from there."
        ) from error


def save_model(model: ElmoPreTrainedModel, folder: Path) -> None:
    """A model and its tokenizer, file by file under a passing name: none is ever half written."""
    building = folder / ".model.part"
    shutil.rmtree(building, ignore_errors=True)
    width = model.config.max_characters_per_token
    with told("The model", folder, building):
        model.save_pretrained(building)
        ElmoTokenizer(max_characters_per_token=width).save_pretrained(building)
    for file in building.iterdir():
        os.replace(file, folder / file.name)
    building.rmdir()
