# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Vectors on a plane: their two main directions, drawn as dots in an SVG."""

import html
from collections.abc import Sequence
from typing import NamedTuple

import torch

# The side of a plane in pixels, and the room between its edge and the outermost dot.
SIZE, MARGIN = 220, 16
# Vectors whose components differ by less than this count as one vector.
SAME = 1e-4


class Dot(NamedTuple):
    """How one vector is shown: `title` appears when the mouse is over it, `label` is inside it."""

    color: str
    title: str
    label: str = ""


def layer_name(number: int) -> str:
    return f"biLSTM layer {number}" if number else "token layer"


def project_to_plane(vectors: torch.Tensor) -> torch.Tensor:
    """
    Places (n, 2) between -1 and 1 along the two directions in which the vectors (n, size) differ
    most. Vectors that are all the same are at the origin.
    """
    centred = vectors - vectors.mean(dim=0)
    if centred.abs().max() < SAME:
        return torch.zeros(len(vectors), 2)
    _, _, directions = torch.linalg.svd(centred, full_matrices=False)
    places = centred @ directions[:2].T
    return places / places.abs().max()


def draw_plane(
    vectors: torch.Tensor,
    dots: Sequence[Dot],
    name: str,
    note: str,
    links: Sequence[tuple[int, int]] = (),
) -> str:
    """
    A `<figure class="plane">` of vectors (n, size) with a caption of two lines. `links` are pairs
    of vectors to be joined by a line. All texts are escaped.
    """
    places = (SIZE / 2 + project_to_plane(vectors) * (SIZE / 2 - MARGIN)).tolist()
    shapes = []
    for start, end in links:
        (x, y), (to_x, to_y) = places[start], places[end]
        shapes.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" '
            'stroke="currentColor" opacity=".25"/>'
        )
    for dot, (x, y) in zip(dots, places, strict=True):
        shapes.append(_draw_dot(dot, x, y))
    return (
        f'<figure class="plane"><svg viewBox="0 0 {SIZE} {SIZE}" width="{SIZE}" height="{SIZE}" '
        f'role="img" aria-label="{html.escape(name)}">{"".join(shapes)}</svg>'
        f"<figcaption>{html.escape(name)}<br><small>{html.escape(note)}</small></figcaption>"
        "</figure>"
    )


def _draw_dot(dot: Dot, x: float, y: float) -> str:
    label = ""
    if dot.label:
        label = (
            f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle" font-size="12" fill="#fff">'
            f"{html.escape(dot.label)}</text>"
        )
    return (
        f'<g><title>{html.escape(dot.title)}</title><circle cx="{x:.1f}" cy="{y:.1f}" '
        f'r="{11 if label else 6}" fill="{html.escape(dot.color)}" stroke="#fff"/>{label}</g>'
    )
