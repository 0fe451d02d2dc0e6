# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""How a training run under accelerate begins and ends."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from transformers.utils import logging

from elmo_hf.system.memory import keep_freed_memory


@contextmanager
def training_run(
    name: str,
    output_dir: Path,
    report_to: str | None = None,
    mixed_precision: str | None = None,
    settings: Any = None,
) -> Iterator[Accelerator]:
    """
    Starts a run and yields its accelerator. The tracker `report_to` is sent the fields of
    `settings`, a dataclass or a tuple of several. `output_dir` is created.
    """
    keep_freed_memory()
    output_dir.mkdir(parents=True, exist_ok=True)
    with quiet_transformers():
        accelerator = Accelerator(
            mixed_precision=mixed_precision, log_with=report_to, project_dir=output_dir
        )
        if report_to is not None:
            accelerator.init_trackers(name, config=as_text_fields(settings))
        yield accelerator
        # Not after an error: a process that fails must not wait for the others.
        leave_together(accelerator)


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Its progress bars would break ours, and it warns about every new head."""
    verbosity, had_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if had_bars:
            logging.enable_progress_bar()


def as_text_fields(settings: Any) -> dict[str, str]:
    """The fields of one dataclass or of several as text, which every tracker takes."""
    groups = settings if isinstance(settings, tuple) else (settings,)
    return {
        field.name: str(getattr(group, field.name))
        for group in groups
        if group is not None
        for field in dataclasses.fields(group)
    }


def leave_together(accelerator: Accelerator) -> None:
    """Ends a run. The model goes before the process group: the other order may hang or abort."""
    accelerator.wait_for_everyone()
    accelerator.free_memory()
    accelerator.end_training()


def newest_trainer_checkpoint(folder: str) -> str | None:
    """The newest whole checkpoint of transformers' Trainer, which writes its state last."""
    whole = [state.parent for state in Path(folder).glob("checkpoint-*/trainer_state.json")]
    return max(map(str, whole), key=lambda path: int(path.rpartition("-")[2]), default=None)
