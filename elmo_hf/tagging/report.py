# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What a tagger learned, as PNG files and one self-contained HTML page."""

import base64
from collections import Counter
from html import escape
from pathlib import Path
from typing import cast

import torch
from datasets import Dataset

from elmo_hf.modeling_elmo import ElmoForTokenClassification
from elmo_hf.pages.page import section, write_page
from elmo_hf.pages.plots import as_label, new_figure, save_figure
from elmo_hf.tagging.evaluation import Evaluation
from elmo_hf.tagging.figures import fractions

# How many mistakes are shown, and how many words on either side of each.
MISTAKES, CONTEXT = 30, 6
# How many tags a picture shows: its size grows with them, and memory with the square of its size.
TAGS = 100
BLUE = "#4c78a8"


def write_report(
    folder: Path,
    model: ElmoForTokenClassification,
    splits: dict[str, Dataset],
    history: list[dict],
    evaluations: dict[str, Evaluation],
) -> Path:
    """
    Writes `report.html` and its pictures, and returns the page. The last of the evaluations is the
    one that is shown tag by tag.
    """
    split, evaluation = [*evaluations.items()][-1]
    title = folder.resolve().name
    draw_learning(folder / "learning.png", history)
    draw_confusion(folder / "confusion.png", splits[split]["tags"], evaluation.tags)
    draw_tags(folder / "tags.png", evaluation.figures["tags"])
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="dim">{len(splits["train"]):,} training sentences, {model.num_labels} '
        f"tags, {model.num_parameters():,} weights of which "
        f"{model.num_parameters(only_trainable=True):,} were trained</p>",
        cards(evaluations),
        section("Learning", picture(folder / "learning.png", "loss and score by epoch")),
    ]
    if draw_layers(folder / "layers.png", model):
        shown = picture(folder / "layers.png", "weight of each layer")
        parts.append(section("What is read of the biLM", shown))
    parts += [
        section(f"Tags on {split}", picture(folder / "tags.png", "score of each tag")),
        section("Tags taken for one another", picture(folder / "confusion.png", "confusion")),
        section("Most confident mistakes", mistakes(splits[split], evaluation)),
    ]
    path = folder / "report.html"
    write_page(path, f"{title}: tagging report", parts)
    return path


def cards(evaluations: dict[str, Evaluation]) -> str:
    """The figures of each split, after the first one that of the baseline."""
    shown = []
    for split, evaluation in evaluations.items():
        first, *others = fractions(evaluation.figures).items()
        baseline = (f"most frequent tag, {evaluation.goal}", evaluation.baseline)
        shown += [(f"{split} {name}", value) for name, value in (first, baseline, *others)]
    divisions = "".join(
        f'<div class="card">{escape(name.replace("_", " "))}<b>{100 * value:.2f} %</b></div>'
        for name, value in shown
    )
    return f'<div class="cards">{divisions}</div>'


def picture(path: Path, what: str) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<div class="wide"><img alt="{what}" src="data:image/png;base64,{data}"></div>'


def mistakes(dataset: Dataset, evaluation: Evaluation) -> str:
    """A table of wrong tags, the most probable first, each in its sentence."""
    found = [
        (probability, row, place)
        for row, (guesses, truth, probabilities) in enumerate(
            zip(evaluation.tags, dataset["tags"], evaluation.probabilities, strict=True)
        )
        for place, (guess, tag, probability) in enumerate(
            zip(guesses, truth, probabilities, strict=True)
        )
        if guess != tag
    ]
    if not found:
        return "<p>There are none.</p>"
    lines = []
    for probability, row, place in sorted(found, reverse=True)[:MISTAKES]:
        words = dataset[row]["tokens"]
        before = escape(" ".join(words[max(0, place - CONTEXT) : place]))
        after = escape(" ".join(words[place + 1 : place + 1 + CONTEXT]))
        lines.append(
            f'<tr><td class="n">{100 * probability:.1f} %</td>'
            f'<td class="bad">{escape(evaluation.tags[row][place])}</td>'
            f'<td class="good">{escape(dataset[row]["tags"][place])}</td>'
            f"<td>{before} <mark>{escape(words[place])}</mark> {after}</td></tr>"
        )
    head = '<th class="n">probability</th><th>predicted</th><th>right</th><th>in context</th>'
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(lines)}</table></div>'


def draw_learning(path: Path, history: list[dict]) -> None:
    figure, grid = new_figure(10, 3.6, columns=2)
    left, right = grid[0]
    epochs = range(1, len(history) + 1)
    for name, label in (("train_loss", "train"), ("validation_loss", "validation")):
        left.plot(epochs, [entry[name] for entry in history], marker=".", label=label)
    left.set(xlabel="epoch", ylabel="loss")
    for name in fractions(history[0]["figures"]):
        scores = [100 * entry["figures"][name] for entry in history]
        right.plot(epochs, scores, marker=".", label=as_label(name.replace("_", " ")))
    right.set(xlabel="epoch", ylabel="% on validation")
    for axes in (left, right):
        axes.legend(frameon=False)
        axes.grid(alpha=0.3)
        axes.locator_params(axis="x", integer=True)
    save_figure(figure, path)


def draw_layers(path: Path, model: ElmoForTokenClassification) -> bool:
    """The softmax of each mix's weights, and its scale; False where there is no mix to draw."""
    mixes = model.elmo.mixes
    if not mixes:
        return False
    figure, grid = new_figure(3.4 * len(mixes) + 1.6, 3.2, columns=len(mixes))
    for number, (mix, axes) in enumerate(zip(mixes, grid[0], strict=True), start=1):
        weights = cast(torch.Tensor, mix.scalars).detach().softmax(dim=0).tolist()
        names = ["characters", *(f"biLSTM {layer}" for layer in range(1, len(weights)))]
        bars = axes.bar(names, weights, color=BLUE, width=0.6)
        axes.bar_label(bars, [f"{weight:.2f}" for weight in weights], padding=3)
        gamma = cast(torch.Tensor, mix.gamma).item()
        which = f"mix {number}: " if len(mixes) > 1 else ""
        axes.set(title=f"{which}gamma {gamma:.2f}", ylim=(0, max(weights) * 1.18))
    save_figure(figure, path)
    return True


def confused_tags(pairs: Counter[tuple[str, str]]) -> list[str]:
    """The tags in alphabetical order, or the most frequent ones if there are too many to draw."""
    counts: Counter[str] = Counter()
    for pair, count in pairs.items():
        for name in pair:
            counts[name] += count
    return sorted(name for name, _ in counts.most_common(TAGS))


def draw_confusion(path: Path, truth: list[list[str]], tags: list[list[str]]) -> None:
    pairs = Counter(
        pair for row in zip(truth, tags, strict=True) for pair in zip(*row, strict=True)
    )
    names = confused_tags(pairs)
    shares = []
    for right in names:
        total = sum(count for pair, count in pairs.items() if pair[0] == right)
        shares.append([pairs[right, guess] / max(1, total) for guess in names])
    size = max(4.0, 0.36 * len(names) + 2)
    figure, grid = new_figure(size, size)
    axes = grid[0, 0]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    shown = [as_label(name) for name in names]
    axes.set_xticks(range(len(names)), shown, rotation=90)
    axes.set_yticks(range(len(names)), shown)
    for row, right in enumerate(names):
        for column, guess in enumerate(names):
            count = pairs[right, guess]
            if count:
                color = "white" if shares[row][column] > 0.5 else "black"
                axes.text(column, row, count, ha="center", va="center", fontsize=7, color=color)
    axes.set(xlabel="predicted", ylabel="right")
    save_figure(figure, path)


def draw_tags(path: Path, table: dict[str, dict]) -> None:
    """The first figure of each tag, and its counts."""
    name = next((name for row in table.values() for name in row), "")
    # the lowest ones, if there are too many to draw
    rows = sorted(table.items(), key=lambda item: item[1][name])[:TAGS]
    figure, grid = new_figure(8, 0.3 * len(rows) + 1)
    axes = grid[0, 0]
    bars = axes.barh(range(len(rows)), [100 * row[name] for _, row in rows], color=BLUE)
    axes.set_yticks(range(len(rows)), [as_label(tag) for tag, _ in rows])
    labels = []
    for _, row in rows:
        counts = [str(value) for value in row.values() if isinstance(value, int)]
        labels.append(f"{100 * row[name]:.1f}   ({', '.join(counts)})")
    axes.bar_label(bars, labels, padding=4)
    what = as_label(name.replace("_", " "))
    axes.set(xlabel=f"{what} in %, and number of words or spans", xlim=(0, 118))
    save_figure(figure, path)
