# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What all trainings share: settings, the beginning and the end of a run, checkpoints."""

from elmo_hf.system.lazy import lazy_names

__getattr__, __all__ = lazy_names(
    __name__,
    checkpoints=["Checkpoints", "save_model"],
    run=["training_run"],
    settings=["option", "parse_settings"],
)
