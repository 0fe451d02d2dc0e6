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
from elmo_hf.training.folder import claimed_folder


@contextmanager
def training_run(name: str, *settings: Any) -> Iterator[Accelerator]:
    """
    Starts a run in the folder of its settings, and yields its accelerator.

    The settings are one dataclass or several. Of their fields `output_dir` is required, and these
    are used if they are there: `overwrite_output_dir`, `mixed_precision`, and `report_to`, a
    tracker, which is sent all fields. Files and folders in other fields are never overwritten.
    """
    keep_freed_memory()
    known = [(group, field) for group in settings for field in dataclasses.fields(group)]
    fields = {field.name: getattr(group, field.name) for group, field in known}
    inputs = [getattr(group, field.name) for group, field in known if may_be_path(field)]
    folder, tracker = Path(fields["output_dir"]), fields.get("report_to")
    with quiet_transformers():
        accelerator = Accelerator(
            mixed_precision=fields.get("mixed_precision"), log_with=tracker, project_dir=folder
        )
        with claimed_folder(
            folder,
            inputs,
            fields.get("overwrite_output_dir", False),
            accelerator.process_index,
            accelerator.num_processes,
        ):
            if tracker is not None:
                # every tracker takes text
                texts = {name: str(value) for name, value in fields.items()}
                accelerator.init_trackers(name, config=texts)
            yield accelerator
            # Not after an error: a process that fails must not wait for the others.
            leave_together(accelerator)


def may_be_path(field: dataclasses.Field) -> bool:
    """The name of a preset or of a splitter is none, even if a folder is called like it."""
    return "choices" not in field.metadata and field.name not in ("output_dir", "split")


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


def leave_together(accelerator: Accelerator) -> None:
    """Ends a run. The model goes before the process group: the other order may hang or abort."""
    accelerator.wait_for_everyone()
    accelerator.free_memory()
    accelerator.end_training()
