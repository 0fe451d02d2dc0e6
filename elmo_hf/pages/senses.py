"""The vectors of ambiguous words on a plane, layer by layer: a PNG, and a page to point at."""

import html
from itertools import cycle
from pathlib import Path

import torch

from elmo_hf.pages.page import section, write_page

COLORS = ("#d1603d", "#3d7ea6", "#5a9367", "#8a5a9b")
# of a plane on the page
SIZE, MARGIN = 220, 14


def plane(vectors: torch.Tensor) -> torch.Tensor:
    """The two directions in which the vectors differ most, (n, 2), between -1 and 1."""
    centred = vectors - vectors.mean(dim=0)
    if centred.abs().max() < 1e-4:
        # one vector for all
        return torch.zeros(len(vectors), 2)
    _, _, directions = torch.linalg.svd(centred, full_matrices=False)
    places = centred @ directions[:2].T
    return places / places.abs().max()


def senses(study) -> dict[str, str]:
    """A colour for each sense of a word; a fifth sense has the first one's again."""
    return dict(zip(dict.fromkeys(row.sense for row in study.rows), cycle(COLORS), strict=False))


def layer_name(number: int) -> str:
    return f"biLSTM layer {number}" if number else "token layer"


def draw_senses(studies: list, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    num_layers = len(studies[0].vectors)
    figure, grid = pyplot.subplots(
        len(studies),
        num_layers,
        figsize=(3 * num_layers, 2.6 * len(studies)),
        layout="constrained",
        squeeze=False,
    )
    for study, line in zip(studies, grid, strict=True):
        for number, axes in enumerate(line):
            places = plane(study.vectors[number])
            for sense, color in senses(study).items():
                mine = [n for n, row in enumerate(study.rows) if row.sense == sense]
                axes.scatter(*places[mine].T, color=color, label=sense, s=44, edgecolor="white")
            axes.set(xticks=[], yticks=[], xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))
            axes.set_title(f"{study.shares[number]:.0%} beside their own sense", fontsize=9)
            axes.spines[:].set_color("#cccccc")
        line[0].set_ylabel(study.word, fontsize=12, fontweight="bold")
        line[-1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    for number, axes in enumerate(grid[0]):
        axes.set_title(f"{layer_name(number)}\n{axes.get_title()}", fontsize=9)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def write_senses(studies: list, path: Path) -> None:
    parts = [
        "<h1>One word, two senses</h1>",
        '<p class="dim">Every dot is the word in another sentence; point at it to read it. Lines '
        "lead to the nearest neighbour by cosine. The token layer sees the word alone, so all its "
        "dots fall together.</p>",
    ]
    for study in studies:
        key = " ".join(
            f'<span style="color:{color}">&#9679;</span> {html.escape(sense)}'
            for sense, color in senses(study).items()
        )
        planes = "".join(draw_plane(study, number) for number in range(len(study.vectors)))
        planes = f'<div class="wide" style="display:flex;gap:1rem">{planes}</div>'
        body = f'<p class="dim">{key}</p>{planes}{table(study)}'
        parts.append(section(study.word, body))
    write_page(path, "One word, two senses", parts)


def draw_plane(study, number: int) -> str:
    """A layer's plane as SVG; the sentences are the dots' titles."""
    places = (SIZE / 2 + plane(study.vectors[number]) * (SIZE / 2 - MARGIN)).tolist()
    colors = senses(study)
    shapes = []
    if number:
        for (x, y), near in zip(places, study.nearest[number], strict=True):
            to_x, to_y = places[near[0]]
            line = f'x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"'
            shapes.append(f'<line {line} stroke="currentColor" opacity=".25"/>')
    for row, (x, y) in zip(study.rows, places, strict=True):
        title = html.escape(f"{row.sense}: {row.sentence}")
        shapes.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{colors[row.sense]}" stroke="#fff">'
            f"<title>{title}</title></circle>"
        )
    frame = f'<svg viewBox="0 0 {SIZE} {SIZE}" width="{SIZE}" height="{SIZE}" role="img"'
    what = f"{study.word}, {layer_name(number)}"
    style = 'style="background:var(--card);border-radius:.6rem;flex:none"'
    share = f"{study.shares[number]:.0%} beside their own sense"
    return (
        f'<figure style="margin:0">{frame} aria-label="{html.escape(what)}" {style}>'
        f"{''.join(shapes)}</svg><figcaption>{layer_name(number)}<br>"
        f'<span class="dim">{share}</span></figcaption></figure>'
    )


def table(study) -> str:
    """Each sentence and its nearest neighbour by the top layer."""
    lines = []
    for row, near in zip(study.rows, study.nearest[-1], strict=True):
        other = study.rows[near[0]]
        mark = "good" if row.sense == other.sense else "bad"
        lines.append(
            f"<tr><td>{html.escape(row.sentence)}</td>"
            f'<td class="{mark}">{html.escape(other.sentence)}</td></tr>'
        )
    head = "<tr><th>sentence</th><th>nearest by the top layer</th></tr>"
    return (
        f"<details><summary>neighbours</summary>"
        f'<div class="wide"><table>{head}{"".join(lines)}</table></div></details>'
    )
