# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The model that comes with the package: a small English biLM and a tagger on it, for first steps.

Its card is `bundled_model/README.md`; `examples/bundled_model` made it.
"""

from pathlib import Path

# what every command calls it; a folder of this name is reached as ./carried
BUNDLED = "bundled"
FOLDER = Path(__file__).resolve().parents[1] / "bundled_model"


def bundled_model() -> str:
    """The biLM's folder, as in `ElmoModel.from_pretrained(bundled_model())`."""
    return str(FOLDER)


def bundled_tagger() -> str:
    """The folder of a part-of-speech tagger on it."""
    return str(FOLDER / "tagger")


def find_model(name: str) -> str:
    """The folder behind a model's name, or the name itself."""
    return bundled_model() if name == BUNDLED else name


def find_tagger(name: str) -> str:
    return bundled_tagger() if name == BUNDLED else name
