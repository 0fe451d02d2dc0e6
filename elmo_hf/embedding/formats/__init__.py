# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The file formats of vectors. Every module in this folder whose name has no underscore in front
defines one, as `FORMAT`; a new module is a new format, and nothing else needs to know of it."""

import importlib
import pkgutil
from pathlib import Path

from elmo_hf.embedding.formats._format import OutputFormat


def discover() -> dict[str, OutputFormat]:
    """The formats of all modules in this folder, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    public = [name for name in names if not name.startswith("_")]
    found = [importlib.import_module(f"{__name__}.{name}").FORMAT for name in public]
    return {known.name: known for known in found}


FORMATS = discover()
# the format of every file ending
SUFFIXES = {suffix: known for known in FORMATS.values() for suffix in known.suffixes}


def find_format(output: Path, name: str | None = None) -> OutputFormat:
    """The format of this name, or by default the one that the file's ending stands for."""
    if name is not None:
        if name not in FORMATS:
            names = ", ".join(FORMATS)
            raise ValueError(f"The output format is {name!r} but must be one of {names}.")
        return FORMATS[name]
    if output.suffix not in SUFFIXES:
        endings = ", ".join(SUFFIXES)
        raise ValueError(f"{str(output)!r} must end in its format, one of {endings}.")
    return SUFFIXES[output.suffix]


__all__ = ["FORMATS", "SUFFIXES", "OutputFormat", "find_format"]
