# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Old ELMo code as it is: AllenNLP's and simple_elmo's names for this package's network.

    python -m elmo_hf.standin script.py --its --own --options

Nothing happens when this is imported. `install()` and `uninstall()` do the same inside a program,
`%load_ext elmo_hf.standin` in a notebook, `pytest -p elmo_hf.standin` for tests.
"""

from elmo_hf.standin.finder import install, uninstall

__all__ = ["install", "uninstall"]


def load_ipython_extension(ipython: object) -> None:
    install()


def unload_ipython_extension(ipython: object) -> None:
    uninstall()


def pytest_load_initial_conftests() -> None:
    # before the first file of tests is imported
    install()


def pytest_unconfigure() -> None:
    uninstall()
