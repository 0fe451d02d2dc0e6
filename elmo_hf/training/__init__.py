# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What every training shares: starting and ending a run, checkpoints, and settings as options."""

from typing import TYPE_CHECKING

from elmo_hf.system.lazy import lazy_names

if TYPE_CHECKING:
    from elmo_hf.training.checkpoints import Checkpoints as Checkpoints
    from elmo_hf.training.checkpoints import save_model as save_model
    from elmo_hf.training.folder import claimed_folder as claimed_folder
    from elmo_hf.training.run import leave_together as leave_together
    from elmo_hf.training.run import training_run as training_run
    from elmo_hf.training.settings import option as option
    from elmo_hf.training.settings import parse_settings as parse_settings
    from elmo_hf.training.trainer import resume_trainer as resume_trainer
    from elmo_hf.training.trainer import trainer_errors as trainer_errors

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    checkpoints=["Checkpoints", "save_model"],
    folder=["claimed_folder"],
    run=["leave_together", "training_run"],
    settings=["option", "parse_settings"],
    trainer=["trainer_errors", "resume_trainer"],
)
