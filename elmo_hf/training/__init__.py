# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What every training shares: starting and ending a run, checkpoints, and settings as options."""

from elmo_hf.system.lazy import lazy_names

__getattr__, __all__ = lazy_names(
    __name__,
    checkpoints=["Checkpoints", "save_model"],
    run=["leave_together", "newest_trainer_checkpoint", "training_run"],
    settings=["option", "parse_settings"],
)
