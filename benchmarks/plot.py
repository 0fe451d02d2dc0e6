"""Pictures of the figures of `run.py`, and of the perplexity of both recipes of pretraining.

python benchmarks/plot.py benchmarks/results
"""

import argparse
import json
import statistics
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from models import SIZES
from plan import BATCHES, LENGTHS, ROWS

# side: median, of one row and one figure
Medians = dict[str, float]
COLOURS = {"elmo_hf": "#1f6f8b", "allennlp": "#d97b29", "simple_elmo": "#8a8a8a"}
SIDES = tuple(COLOURS)


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


def medians(results: dict, key: str, figure: str) -> Medians:
    figures = results.get(key, {"figures": {}})["figures"]
    found = {side: kinds[figure] for side, kinds in figures.items() if figure in kinds}
    return {side: statistics.median(values) for side, values in found.items()}


def by_side(rows: list[Medians]) -> dict[str, list]:
    """One number per row, of the sides that have any."""
    values = {side: [row.get(side) for row in rows] for side in SIDES}
    return {side: numbers for side, numbers in values.items() if any(numbers)}


def plot_speed(results: dict, path: Path) -> None:
    rows = [row for row in ROWS if row.part in ("speed", "corpus") and row.key in results]
    cases = {
        size: [(row.name.partition(", ")[2], row.key) for row in rows if row.name.startswith(size)]
        for size in SIZES
    }
    cases = {size: found for size, found in cases.items() if found}
    if not cases:
        return
    figure, axes = plt.subplots(len(cases), 1, figsize=(9, 2.6 * len(cases)), squeeze=False)
    for axis, (size, found) in zip(axes[:, 0], cases.items(), strict=True):
        names, keys = zip(*found, strict=True)
        values = by_side([medians(results, key, "words_per_second") for key in keys])
        bars(axis, list(names), values, f"{size}: words per second, more is better", "words/s")
    axes[0, 0].legend(frameon=False, fontsize=8)
    save(figure, path)


def plot_cost(results: dict, path: Path) -> None:
    """Loading time and memory at batch 32."""
    keys = {size: f"speed: {size}, batch 32" for size in SIZES}
    keys = {size: key for size, key in keys.items() if key in results}
    if not keys:
        return
    figure, axes = plt.subplots(1, 2, figsize=(9, 1.2 + 0.9 * len(keys)))
    for axis, (name, title, unit) in zip(
        axes,
        (
            ("load_seconds", "Loading", "seconds, less is better"),
            ("peak_rss_mb", "Peak memory, batch 32", "MB, less is better"),
        ),
        strict=True,
    ):
        values = by_side([medians(results, key, name) for key in keys.values()])
        bars(axis, list(keys), values, title, unit)
    axes[0].legend(frameon=False, fontsize=8)
    save(figure, path)


def plot_growth(results: dict, path: Path) -> None:
    growths = {
        "words per sentence": {n: f"growth: sentences of {n:,} words" for n in LENGTHS},
        "sentences per batch": {n: f"growth: batches of {n}" for n in BATCHES},
    }
    if not any(key in results for keys in growths.values() for key in keys.values()):
        return
    figure, axes = plt.subplots(2, len(growths), figsize=(9, 6), squeeze=False)
    units = (("words_per_second", "words/s"), ("peak_rss_mb", "peak memory, MB"))
    for column, (what, keys) in enumerate(growths.items()):
        for row, (name, unit) in enumerate(units):
            axis = axes[row, column]
            values = by_side([medians(results, key, name) for key in keys.values()])
            for side, numbers in values.items():
                axis.plot(list(keys), numbers, marker="o", color=COLOURS[side], label=side)
            axis.set_xscale("log")
            axis.set_ylim(bottom=0)
            axis.set_xlabel(what)
            axis.set_ylabel(unit)
            axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].legend(frameon=False, fontsize=8)
    save(figure, path)


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
    save(figure, path)


def save(figure, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_plots(results: dict, folder: Path) -> None:
    """Those whose figures are there."""
    plot_speed(results, folder / "speed.png")
    plot_cost(results, folder / "cost.png")
    plot_growth(results, folder / "growth.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the JSON files are")
    folder = parser.parse_args().folder
    draw_plots(json.loads((folder / "figures.json").read_text()), folder)
    plot_recipes(json.loads((folder / "recipes.json").read_text()), folder / "recipes.png")


if __name__ == "__main__":
    main()
