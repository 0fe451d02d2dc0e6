"""How a training run under accelerate begins and ends."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from transformers.utils import logging

from elmo_hf.system.memory import keep_freed_memory


class Help(argparse.RawDescriptionHelpFormatter):
    """A script's own description as it is, and every option's default that says something."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default is None or action.default is False or action.default == argparse.SUPPRESS:
            return action.help
        return f"{action.help} (default: %(default)s)"


@contextmanager
def training_run(
    name: str,
    output_dir: Path,
    report_to: str | None = None,
    mixed_precision: str | None = None,
    settings: Any = None,
) -> Iterator[Accelerator]:
    """A run of this name; a tracker, if one is named, is told the settings."""
    keep_freed_memory()
    # their bars would break ours, and a new head is no news
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    output_dir.mkdir(parents=True, exist_ok=True)
    accelerator = Accelerator(
        mixed_precision=mixed_precision, log_with=report_to, project_dir=output_dir
    )
    if report_to is not None:
        config = {name: str(value) for name, value in vars(settings).items()} if settings else {}
        accelerator.init_trackers(name, config=config)
    yield accelerator
    leave_together(accelerator)


def whole_checkpoint(folder: str) -> str | None:
    """The newest of a Trainer's that was not cut short: its state is what is written last."""
    whole = [state.parent for state in Path(folder).glob("checkpoint-*/trainer_state.json")]
    return max(map(str, whole), key=lambda path: int(path.rpartition("-")[2]), default=None)


def leave_together(accelerator: Accelerator) -> None:
    """The model goes before the group it talks through: the other way round may hang or abort."""
    accelerator.wait_for_everyone()
    accelerator.free_memory()
    accelerator.end_training()
