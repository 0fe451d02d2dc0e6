# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""How the stand-in behaves, kept in the environment, so that every process started by it agrees."""

import os

PREFIX = "ELMO_HF_STANDIN_"
STATES = ("carried", "fresh")
VERSIONS = ("0.9", "2.10")
CHOICES = {"state": STATES, "version": VERSIONS}


def read_setting(name: str) -> str:
    """One of its values; the first if nothing is set."""
    value = os.environ.get(PREFIX + name.upper()) or CHOICES[name][0]
    check_setting(name, value)
    return value


def check_setting(name: str, value: str) -> None:
    choices = CHOICES.get(name)
    if choices and value not in choices:
        raise ValueError(f"The stand-in's {name} is {value!r} but must be {' or '.join(choices)}.")


def write_settings(**settings: str | None) -> None:
    """Sets what is not None."""
    given = {name: value for name, value in settings.items() if value is not None}
    for name, value in given.items():
        check_setting(name, value)
    for name, value in given.items():
        os.environ[PREFIX + name.upper()] = value


def clear_settings() -> None:
    for variable in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[variable]


def starts_fresh() -> bool:
    """Whether every sentence is read from zeros, instead of from where the call before ended."""
    return read_setting("state") == "fresh"


def is_version_2() -> bool:
    """Whether masks and fields are those of AllenNLP 2.10, not of 0.9."""
    return read_setting("version") == "2.10"


def weights_folder() -> str | None:
    """The folder with copies of published files, if there is one."""
    return os.environ.get(f"{PREFIX}WEIGHTS") or None
