# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`elmo-hf models`."""

import dataclasses
import json
from typing import Annotated

import typer

from elmo_hf.hub.registry import PublishedModel, read_registry
from elmo_hf.system.untrusted import printable

HEAD = ("name", "model", "language", "cells", "size", "licence", "format")


def models(
    language: Annotated[
        str | None,
        typer.Option("--language", help="Only models of this language, as in fi or Finnish."),
    ] = None,
    family: Annotated[
        str | None, typer.Option("--family", help="Only models of this family, as in many-langs.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Everything that is known, as a JSON list.")
    ] = False,
) -> None:
    """List the published models that `download` and `convert` know by name."""
    found = read_registry().select(language, family)
    if as_json:
        print(json.dumps([dataclasses.asdict(model) for model in found], indent=1))
        return
    rows = [HEAD, *(row(model) for model in found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for cells in rows:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        print(printable("  ".join(padded).rstrip()))


def row(model: PublishedModel) -> tuple[str, ...]:
    """A line of the list; what is not known is a dash."""
    size = "" if model.size is None else f"{model.size / 1e6:,.0f} MB"
    cells = (
        model.name,
        model.title,
        ",".join(model.languages),
        model.shape.replace(" ", ""),
        size,
        model.licence,
        model.format,
    )
    return tuple(cell or "-" for cell in cells)
