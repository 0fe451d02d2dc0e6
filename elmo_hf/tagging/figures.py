"""How well sentences are tagged: figures, a baseline, and predictions as CoNLL-U."""

from collections import Counter, defaultdict
from pathlib import Path

import evaluate
from datasets import Dataset

METRICS = Path(__file__).resolve().parent / "metrics"


def count_tags(train: Dataset) -> dict[str, Counter]:
    """How often each word of the training text has which tag."""
    counts: dict[str, Counter] = defaultdict(Counter)
    for row in train:
        for word, tag_ in zip(row["tokens"], row["tags"], strict=True):
            counts[word][tag_] += 1
    return counts


def most_frequent(counts: dict[str, Counter], dataset: Dataset) -> list[list[str]]:
    """The baseline: a word's most frequent tag, and for unknown words the most frequent of all."""
    everything: Counter = sum(counts.values(), Counter())
    best = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
    usual = everything.most_common(1)[0][0]
    return [[best.get(word, usual) for word in tokens] for tokens in dataset["tokens"]]


def measure(task: str, dataset: Dataset, tags: list[list[str]], counts: dict[str, Counter]) -> dict:
    """The figures of predicted tags, by the metric modules beside this script."""
    name = {"pos": "tagging", "ner": "spans"}[task]
    metric = evaluate.load(str(METRICS / name))
    given = {"predictions": tags, "references": dataset["tags"]}
    if task == "ner":
        return metric.compute(**given)
    known = {word: sorted(tags) for word, tags in counts.items()}
    return metric.compute(**given, tokens=dataset["tokens"], known_tags=known)


def scalars(figures: dict) -> dict[str, float]:
    return {name: value for name, value in figures.items() if isinstance(value, float)}


def describe(figures: dict) -> str:
    names = ("loss", "accuracy", "unknown_accuracy", "f1")
    shown = [name for name in figures if name.split("_", 1)[1] in names]
    return ", ".join(f"{name.replace('_', ' ')} {figures[name]:.4f}" for name in shown)


def write_conllu(path: Path, dataset: Dataset, tags: list[list[str]]) -> None:
    """Predictions in the column of tags; where they are wrong, the right tag in the last column."""
    lines = []
    for row, guesses in zip(dataset, tags, strict=True):
        for number, (word, truth, guess) in enumerate(
            zip(row["tokens"], row["tags"], guesses, strict=True), start=1
        ):
            note = "_" if truth == guess else f"Gold={truth}"
            lines.append("\t".join([str(number), word, "_", guess, *["_"] * 5, note]))
        lines.append("")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
