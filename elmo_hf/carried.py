# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The model that comes with the package: a small English biLM and a tagger on it, for first steps.

Its card is `carried_model/README.md`; `examples/carried_model` made it.
"""

from pathlib import Path

# what every command calls it; a folder of this name is reached as ./carried
CARRIED = "carried"
FOLDER = Path(__file__).resolve().parent / "carried_model"


def carried_model() -> str:
    """The biLM's folder, as in `ElmoModel.from_pretrained(carried_model())`."""
    return str(FOLDER)


def carried_tagger() -> str:
    """The folder of a part-of-speech tagger on it."""
    return str(FOLDER / "tagger")


def find_model(name: str) -> str:
    """The folder behind a model's name, or the name itself."""
    return carried_model() if name == CARRIED else name


def find_tagger(name: str) -> str:
    return carried_tagger() if name == CARRIED else name
