# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Errors of AllenNLP's that old code catches."""


class ConfigurationError(Exception):
    """What AllenNLP raises when it is used wrongly."""

    def __init__(self, message: str):
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return repr(self.message)
