# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Figures drawn with matplotlib and saved as PNG files; no display is needed."""

from pathlib import Path
from typing import Any

from elmo_hf.extras import require
from elmo_hf.system.writing import new_file

DPI = 130


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
    """
    A figure of that many inches and its axes, an array of shape (rows, columns).

    The figure belongs to no window and to no global list, so it is freed like any other object.
    """
    figure = require("matplotlib.figure", "Drawing a figure").Figure(
        figsize=(width, height), layout="constrained"
    )
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat:
        axes.spines[["top", "right"]].set_visible(False)
    return figure, grid


def as_label(text: str) -> str:
    """
    A text of somebody else for a title, a label or a tick, shown as it is: matplotlib reads what is
    between two dollars as mathematics, and leaves labels with a leading underscore out of legends.
    """
    text = text.replace("$", r"\$")
    # nobody sees the space
    return f" {text}" if text.startswith("_") else text


def save_figure(figure: Any, path: Path) -> None:
    """Writes a PNG; missing parent folders are created."""
    with new_file(path) as building:
        figure.savefig(building, dpi=DPI, format="png")
