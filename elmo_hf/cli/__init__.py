# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The command `elmo-hf`."""

from elmo_hf.cli.program import app, main

__all__ = ["app", "main"]
