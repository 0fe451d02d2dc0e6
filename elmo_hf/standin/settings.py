# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""How the stand-in behaves, kept in the environment, so that every process started by it agrees."""

import os
from collections.abc import Sequence

PREFIX = "ELMO_HF_STANDIN_"
STATES = ("carried", "fresh")
VERSIONS = ("0.9", "2.10")


def read_setting(name: str, values: Sequence[str]) -> str:
    """One of `values`; the first if nothing is set."""
    variable = PREFIX + name.upper()
    value = os.environ.get(variable) or values[0]
    if value not in values:
        raise ValueError(f"${variable} is {value!r} but must be one of {', '.join(values)}.")
    return value


def write_settings(**settings: str | None) -> None:
    """Sets what is not None."""
    for name, value in settings.items():
        if value is not None:
            os.environ[PREFIX + name.upper()] = value


def clear_settings() -> None:
    for variable in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[variable]


def starts_fresh() -> bool:
    """Whether every sentence is read from zeros, instead of from where the call before ended."""
    return read_setting("state", STATES) == "fresh"


def is_version_2() -> bool:
    """Whether masks and fields are those of AllenNLP 2.10, not of 0.9."""
    return read_setting("version", VERSIONS) == "2.10"


def weights_folder() -> str | None:
    """The folder with copies of published files, if there is one."""
    return os.environ.get(f"{PREFIX}WEIGHTS") or None
