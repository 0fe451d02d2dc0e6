"""Vectors on a plane, figures, and the frame of a page."""

import sys

import pytest
import torch
from matplotlib import cbook

from elmo_hf.pages import (
    Dot,
    as_label,
    draw_plane,
    new_figure,
    project_to_plane,
    save_figure,
    section,
    write_page,
)


def test_plane_keeps_what_differs_most():
    turn, _ = torch.linalg.qr(torch.randn(6, 6))
    flat = torch.tensor([[3.0, 1.0], [-3.0, 1.0], [3.0, -1.0], [-3.0, -1.0]])
    places = project_to_plane(torch.nn.functional.pad(flat, (0, 4)) @ turn + 5)
    assert places.abs().max() == 1
    torch.testing.assert_close(torch.cdist(places, places), torch.cdist(flat, flat) / 3)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_equal_vectors_are_at_the_origin(count):
    assert torch.equal(project_to_plane(torch.ones(count, 8)), torch.zeros(count, 2))


def test_dots_have_titles_labels_and_links():
    dots = [Dot("#123456", "<first>", label="1"), Dot("#654321", "second")]
    figure = draw_plane(torch.randn(2, 8), dots, "layer & name", "a < b", links=[(0, 1)])
    assert figure.count("<circle") == 2 and figure.count("<line") == figure.count("<text") == 1
    assert "&lt;first&gt;" in figure and "layer &amp; name" in figure and "a &lt; b" in figure
    assert "<first>" not in figure


def test_figure_is_a_grid_and_a_png(tmp_path):
    figure, grid = new_figure(4, 3, rows=2, columns=3)
    assert grid.shape == (2, 3)
    grid[1, 2].plot([1, 2])
    save_figure(figure, tmp_path / "new" / "figure.png")
    assert (tmp_path / "new" / "figure.png").read_bytes().startswith(b"\x89PNG")


ODD = [r"$\frac$", "$x", "a$b$c", r"\$_{$", "_x", "__nolegend__", "^", "{}", "a\nb"]


@pytest.mark.parametrize("text", ODD)
def test_a_text_is_shown_as_it_is(text, tmp_path):
    figure, grid = new_figure(4, 3)
    axes = grid[0, 0]
    axes.plot([1, 2], label=as_label(text))
    axes.set_yticks([0], [as_label(text)])
    axes.set(title=as_label(text), xlabel=as_label(text))
    [shown] = axes.legend().get_texts()
    assert not cbook.is_math_text(shown.get_text())
    # this is what matplotlib draws of a text that is no mathematics
    assert shown.get_text().replace(r"\$", "$").strip(" ") == text
    save_figure(figure, tmp_path / "figure.png")


def test_missing_matplotlib_names_its_extra(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"requires matplotlib: pip install 'elmo_hf\[plot\]'"):
        new_figure(4, 3)


def test_titles_of_a_page_are_escaped(tmp_path):
    write_page(tmp_path / "page.html", "a <b>", [section("<i>", "<p>html</p>")])
    page = (tmp_path / "page.html").read_text()
    assert "<title>a &lt;b&gt;</title>" in page and "<h2>&lt;i&gt;</h2><p>html</p>" in page
