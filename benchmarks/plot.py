"""Pictures of what `compare.py`, `growth.py` and runs of both recipes of pretraining measured.

python benchmarks/plot.py benchmarks/results
"""

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

COLOURS = {"elmo_hf": "#1f6f8b", "allennlp": "#d97b29", "simple_elmo": "#8a8a8a"}
SIDES = tuple(COLOURS)
SIZES = ("small", "medium", "original")


def bars(axis, labels: list[str], values: dict[str, list], title: str, unit: str) -> None:
    """One group per label, one bar per side; `None` leaves a gap."""
    height = 0.8 / len(values)
    for number, (side, numbers) in enumerate(values.items()):
        places = [place + number * height for place in range(len(labels))]
        shown = axis.barh(places, [value or 0 for value in numbers], height, color=COLOURS[side])
        shown.set_label(side)
        for place, value in zip(places, numbers, strict=True):
            if value:
                shown_value = f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
                axis.text(value, place, f" {shown_value}", va="center", fontsize=8)
    axis.set_yticks([place + 0.4 - height / 2 for place in range(len(labels))], labels)
    axis.invert_yaxis()
    axis.set_title(title, loc="left", fontsize=11)
    axis.set_xlabel(unit)
    axis.margins(x=0.15)
    axis.spines[["top", "right"]].set_visible(False)


def plot_speed(results: dict, path: Path) -> None:
    names = list(results)
    figure, axes = plt.subplots(len(names), 1, figsize=(9, 2.6 * len(names)), squeeze=False)
    for axis, name in zip(axes[:, 0], names, strict=True):
        cases = {
            case: figures for case, figures in results[name].items() if case != "largest_error"
        }
        values = {
            side: [figures.get(side, {}).get("words_per_second") for figures in cases.values()]
            for side in SIDES
        }
        values = {side: numbers for side, numbers in values.items() if any(numbers)}
        bars(axis, list(cases), values, f"{name}: words per second, more is better", "words/s")
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def plot_cost(results: dict, path: Path) -> None:
    """Loading time and memory at batch 32."""
    names = [name for name in results if "batch 32" in results[name]]
    figure, axes = plt.subplots(1, 2, figsize=(9, 1.2 + 0.9 * len(names)))
    for axis, (key, title, unit) in zip(
        axes,
        (
            ("load_seconds", "Loading", "seconds, less is better"),
            ("peak_rss_mb", "Peak memory, batch 32", "MB, less is better"),
        ),
        strict=True,
    ):
        values = {
            side: [results[name]["batch 32"].get(side, {}).get(key) for name in names]
            for side in SIDES
        }
        values = {side: numbers for side, numbers in values.items() if any(numbers)}
        bars(axis, names, values, title, unit)
    axes[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def plot_growth(results: dict, path: Path) -> None:
    figure, axes = plt.subplots(2, len(results), figsize=(9, 6), squeeze=False)
    units = (("tokens_per_second", "words/s"), ("peak_rss_mb", "peak memory, MB"))
    for column, (what, sizes) in enumerate(results.items()):
        for row, (key, unit) in enumerate(units):
            axis = axes[row, column]
            for side in SIDES:
                points = [
                    (int(size), sides[side][key]) for size, sides in sizes.items() if side in sides
                ]
                if points:
                    axis.plot(
                        *zip(*points, strict=True), marker="o", color=COLOURS[side], label=side
                    )
            axis.set_xscale("log")
            axis.set_ylim(bottom=0)
            axis.set_xlabel(what)
            axis.set_ylabel(unit)
            axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def plot_recipes(results: dict, path: Path) -> None:
    """Held-out perplexity after each epoch of the same text, for both recipes of pretraining."""
    figure, axis = plt.subplots(figsize=(6.5, 3.6))
    for recipe, colour in (("adamw", "#1f6f8b"), ("bilm", "#d97b29")):
        curve = results[recipe]["validation"]
        label = f"{recipe}: test {results[recipe]['test']:.1f}"
        axis.plot(range(1, len(curve) + 1), curve, marker="o", color=colour, label=label)
    axis.set(xlabel="epoch", ylabel="perplexity on WikiText-2 valid")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the JSON files are")
    folder = parser.parse_args().folder
    speed = json.loads((folder / "speed.json").read_text())
    # the published sizes from small to large, any others after them
    speed = {name: speed[name] for name in sorted(speed, key=lambda n: (*SIZES, n).index(n))}
    plot_speed(speed, folder / "speed.png")
    plot_cost(speed, folder / "cost.png")
    plot_growth(json.loads((folder / "growth.json").read_text()), folder / "growth.png")
    plot_recipes(json.loads((folder / "recipes.json").read_text()), folder / "recipes.png")


if __name__ == "__main__":
    main()
