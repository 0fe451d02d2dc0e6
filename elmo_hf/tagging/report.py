"""What a tagger learned, as PNGs and one self-contained HTML page."""

import base64
import html
from collections import Counter
from pathlib import Path

from datasets import Dataset

from elmo_hf import ElmoForTokenClassification
from elmo_hf.pages.page import section, write_page

# mistakes that are shown, and the words on either side of them
MISTAKES, CONTEXT = 30, 6


def write_report(
    folder: Path,
    model: ElmoForTokenClassification,
    splits: dict[str, Dataset],
    history: list[dict],
    results: dict,
    predictions: dict[str, tuple],
) -> Path:
    """`report.html` and its pictures; returns the page."""
    split = "test" if "test" in predictions else "validation"
    tags, sure = predictions[split]
    truth = splits[split]["tags"]
    pictures = {
        "learning.png": draw_learning(folder / "learning.png", history),
        "layers.png": draw_layers(folder / "layers.png", model),
        "confusion.png": draw_confusion(folder / "confusion.png", truth, tags),
        "tags.png": draw_tags(folder / "tags.png", results[f"{split}_tags"]),
    }
    parts = [
        f"<h1>{html.escape(folder.resolve().name)}</h1>",
        f'<p class="dim">{len(splits["train"]):,} training sentences, {len(model.config.id2label)} '
        f"tags, {model.num_parameters():,} weights of which "
        f"{model.num_parameters(only_trainable=True):,} were trained</p>",
        cards(results),
        section("Learning", picture(folder, pictures["learning.png"], "loss and score by epoch")),
    ]
    if pictures["layers.png"]:
        shown = picture(folder, pictures["layers.png"], "weight of each layer")
        parts.append(section("What is read of the biLM", shown))
    parts += [
        section(f"Tags on {split}", picture(folder, pictures["tags.png"], "F1 of each tag")),
        section("Taken for one another", picture(folder, pictures["confusion.png"], "confusion")),
        section("Most confident mistakes", mistakes(splits[split], tags, sure)),
    ]
    path = folder / "report.html"
    write_page(path, f"{folder.resolve().name}: tagging report", parts)
    return path


def cards(results: dict) -> str:
    """The figures that people look for first."""
    shown = []
    for split in ("validation", "test"):
        for name in ("accuracy", "f1", "baseline_accuracy", "baseline_f1", "unknown_accuracy"):
            value = results.get(f"{split}_{name}")
            if value is not None:
                label = f"{split} {name.replace('_', ' ')}".replace(
                    "baseline", "most frequent tag,"
                )
                shown.append(f'<div class="card">{label}<b>{100 * value:.2f} %</b></div>')
    return f'<div class="cards">{"".join(shown)}</div>'


def picture(folder: Path, name: str, what: str) -> str:
    data = base64.b64encode((folder / name).read_bytes()).decode()
    return f'<div class="wide"><img alt="{what}" src="data:image/png;base64,{data}"></div>'


def mistakes(dataset: Dataset, tags: list[list[str]], sure: list[list[float]]) -> str:
    """A table of wrong tags, the surest first, each in its sentence."""
    found = [
        (chance, row, place)
        for row, (guesses, truth, chances) in enumerate(
            zip(tags, dataset["tags"], sure, strict=True)
        )
        for place, (guess, tag, chance) in enumerate(zip(guesses, truth, chances, strict=True))
        if guess != tag
    ]
    if not found:
        return "<p>There are none.</p>"
    lines = []
    for chance, row, place in sorted(found, reverse=True)[:MISTAKES]:
        words = dataset[row]["tokens"]
        before = html.escape(" ".join(words[max(0, place - CONTEXT) : place]))
        after = html.escape(" ".join(words[place + 1 : place + 1 + CONTEXT]))
        lines.append(
            f'<tr><td class="n">{100 * chance:.1f} %</td><td class="bad">{tags[row][place]}</td>'
            f'<td class="good">{dataset[row]["tags"][place]}</td>'
            f"<td>{before} <mark>{html.escape(words[place])}</mark> {after}</td></tr>"
        )
    head = '<tr><th class="n">sure</th><th>said</th><th>right</th><th>in context</th></tr>'
    return f'<div class="wide"><table>{head}{"".join(lines)}</table></div>'


def new_figure(width: float, height: float, columns: int = 1):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, columns, figsize=(width, height), layout="constrained", squeeze=False
    )
    for one in axes[0]:
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes[0]


def save(figure, path: Path) -> str:
    from matplotlib import pyplot

    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return path.name


def draw_learning(path: Path, history: list[dict]) -> str:
    figure, (left, right) = new_figure(10, 3.6, 2)
    epochs = range(1, len(history) + 1)
    for name, label in (("train_loss", "train"), ("validation_loss", "validation")):
        left.plot(epochs, [entry[name] for entry in history], marker=".", label=label)
    left.set(xlabel="epoch", ylabel="loss")
    left.legend(frameon=False)
    names = ("accuracy", "unknown_accuracy", "ambiguous_accuracy", "f1")
    for name in names:
        if f"validation_{name}" in history[0]:
            scores = [100 * entry[f"validation_{name}"] for entry in history]
            right.plot(epochs, scores, marker=".", label=name.replace("_", " "))
    right.set(xlabel="epoch", ylabel="% on validation")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.locator_params(axis="x", integer=True)
    return save(figure, path)


def draw_layers(path: Path, model: ElmoForTokenClassification) -> str | None:
    """The softmax of each mix's weights, and its scale; None where there is no mix."""
    mixes = model.elmo.mixes
    if not mixes:
        return None
    figure, axes = new_figure(3.4 * len(mixes) + 1.6, 3.2, len(mixes))
    for number, (mix, one) in enumerate(zip(mixes, axes, strict=True), start=1):
        weights = mix.scalars.detach().softmax(dim=0).tolist()
        names = ["characters", *(f"biLSTM {layer}" for layer in range(1, len(weights)))]
        bars = one.bar(names, weights, color="#4c78a8", width=0.6)
        one.bar_label(bars, [f"{weight:.2f}" for weight in weights], padding=3)
        which = f"mix {number}: " if len(mixes) > 1 else ""
        one.set(title=f"{which}gamma {mix.gamma.item():.2f}", ylim=(0, max(weights) * 1.18))
    return save(figure, path)


def draw_confusion(path: Path, truth: list[list[str]], tags: list[list[str]]) -> str:
    pairs = Counter(
        pair for row in zip(truth, tags, strict=True) for pair in zip(*row, strict=True)
    )
    names = sorted({name for pair in pairs for name in pair})
    shares = []
    for right in names:
        total = sum(pairs[right, guess] for guess in names)
        shares.append([pairs[right, guess] / max(1, total) for guess in names])
    size = max(4.0, 0.36 * len(names) + 2)
    figure, (axes,) = new_figure(size, size)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.set_yticks(range(len(names)), names)
    for row, right in enumerate(names):
        for column, guess in enumerate(names):
            if pairs[right, guess]:
                color = "white" if shares[row][column] > 0.5 else "black"
                count = pairs[right, guess]
                axes.text(column, row, count, ha="center", va="center", fontsize=7, color=color)
    axes.set(xlabel="said", ylabel="right")
    return save(figure, path)


def draw_tags(path: Path, figures: dict[str, dict]) -> str:
    rows = sorted(figures.items(), key=lambda item: item[1]["f1"])
    figure, (axes,) = new_figure(8, 0.3 * len(rows) + 1)
    bars = axes.barh(
        [tag for tag, _ in rows], [100 * row["f1"] for _, row in rows], color="#4c78a8"
    )
    axes.bar_label(
        bars, [f"{100 * row['f1']:.1f}   ({row['number']:.0f})" for _, row in rows], padding=4
    )
    axes.set(xlabel="F1 in %, and number of words or spans", xlim=(0, 118))
    return save(figure, path)
