# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""A study of word senses to look at: one PNG, and one page whose dots show their sentences."""

import html
from itertools import cycle
from pathlib import Path

from elmo_hf.pages.page import section, write_page
from elmo_hf.pages.plane import Dot, draw_plane, layer_name, project_to_plane
from elmo_hf.pages.plots import as_label, new_figure, save_figure
from elmo_hf.pages.senses import WordStudy

COLORS = ("#d1603d", "#3d7ea6", "#5a9367", "#8a5a9b")


def sense_colors(study: WordStudy) -> dict[str, str]:
    """A color for each sense of the word; a fifth sense has the color of the first."""
    senses = dict.fromkeys(one.sense for one in study.occurrences)
    return dict(zip(senses, cycle(COLORS), strict=False))


def share_note(study: WordStudy, layer: int) -> str:
    return f"same-sense neighbours: {study.shares[layer]:.0%}"


def draw_senses(studies: list[WordStudy], path: Path) -> None:
    """A PNG with a row per word and a column per layer."""
    layers = len(studies[0].vectors)
    figure, grid = new_figure(2.5 * layers + 0.9, 2.2 * len(studies) + 0.4, len(studies), layers)
    for study, line in zip(studies, grid, strict=True):
        for layer, axes in enumerate(line):
            _draw_layer(axes, study, layer)
        line[0].set_ylabel(as_label(study.word), fontsize=15, fontweight="bold", labelpad=8)
        line[-1].legend(
            frameon=False, fontsize=11, loc="center left", bbox_to_anchor=(1, 0.5), handletextpad=0
        )
    for layer, axes in enumerate(grid[0]):
        axes.set_title(layer_name(layer), fontsize=12, pad=10)
    save_figure(figure, path)


def _draw_layer(axes, study: WordStudy, layer: int) -> None:
    places = project_to_plane(study.vectors[layer])
    coincide = not places.any()
    for start, end in () if coincide else study.links(layer):
        axes.plot(*places[[start, end]].T, color="#aeb7c0", linewidth=1.2, zorder=1)
    for sense, color in sense_colors(study).items():
        mine = [number for number, one in enumerate(study.occurrences) if one.sense == sense]
        color = "#8b949e" if coincide else color
        axes.scatter(
            *places[mine].T, color=color, label=as_label(sense), s=80, edgecolor="white", zorder=2
        )
    if coincide:
        axes.text(0, -0.16, "one vector for\nall sentences", ha="center", va="top", color="#66707c")
    axes.set(xticks=[], yticks=[], xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), box_aspect=0.85)
    axes.set_xlabel(share_note(study, layer), fontsize=9.5, color="#4a545e", labelpad=5)
    axes.set_facecolor("#f3f5f8")
    axes.spines[:].set_visible(False)


def write_senses_page(studies: list[WordStudy], path: Path) -> None:
    """A self-contained HTML page."""
    title = "One word, several senses"
    parts = [
        f"<h1>{title}</h1>",
        '<p class="dim">Every dot is the word in another sentence; point at a dot to read it. '
        "Lines lead to the nearest neighbour by cosine. The token layer does not see the sentence, "
        "so all of its dots coincide.</p>",
    ]
    for study in studies:
        parts.append(section(study.word, _legend(study) + _planes(study) + _neighbours(study)))
    write_page(path, title, parts)


def _legend(study: WordStudy) -> str:
    entries = [
        f'<span style="color:{color}">&#9679;</span> {html.escape(sense)}'
        for sense, color in sense_colors(study).items()
    ]
    return f'<p class="dim">{" ".join(entries)}</p>'


def _planes(study: WordStudy) -> str:
    colors = sense_colors(study)
    dots = [Dot(colors[one.sense], f"{one.sense}: {one.sentence}") for one in study.occurrences]
    planes = [
        draw_plane(
            vectors,
            dots,
            layer_name(layer),
            share_note(study, layer),
            # in the token layer all are equally near
            study.links(layer) if layer else (),
        )
        for layer, vectors in enumerate(study.vectors)
    ]
    return f'<div class="planes wide">{"".join(planes)}</div>'


def _neighbours(study: WordStudy) -> str:
    """A table of each sentence and its nearest neighbour in the top layer."""
    lines = []
    for number, near in study.links(-1):
        one, other = study.occurrences[number], study.occurrences[near]
        mark = "good" if one.sense == other.sense else "bad"
        lines.append(
            f"<tr><td>{html.escape(one.sentence)}</td>"
            f'<td class="{mark}">{html.escape(other.sentence)}</td></tr>'
        )
    head = "<tr><th>sentence</th><th>nearest in the top layer</th></tr>"
    return (
        "<details><summary>nearest neighbours</summary>"
        f'<div class="wide"><table>{head}{"".join(lines)}</table></div></details>'
    )
