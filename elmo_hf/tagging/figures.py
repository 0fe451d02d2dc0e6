# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""How well sentences are tagged: the figures of a metric, and a baseline.

A metric is a module for `evaluate` in metrics/, and `tasks.py` says which one a task has. Whatever
shows figures relies on this convention for the dict that a metric returns: the first entry chooses
the best epoch; floats are fractions, shown in per cent; ints are counts; and `tags` has such a dict
for each tag or kind of span.
"""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import evaluate
from datasets import Dataset

from elmo_hf.tagging.tasks import TASKS

METRICS = Path(__file__).resolve().parent / "metrics"
Figures = dict[str, Any]


def measure(
    task: str, dataset: Dataset, tags: list[list[str]], counts: dict[str, Counter] | None
) -> Figures:
    """The figures of predicted tags; `counts` are those of the training text, if it is known."""
    known = None if counts is None else {word: sorted(some) for word, some in counts.items()}
    metric = evaluate.load(str(METRICS / TASKS[task].metric))
    return metric.compute(
        predictions=tags,
        references=dataset["tags"],
        tokens=dataset["tokens"],
        known_tags=known,
    )


def goal_of(figures: Figures) -> str:
    """The name of the figure that chooses the best epoch."""
    return next(iter(figures))


def fractions(figures: Figures) -> dict[str, float]:
    return {name: value for name, value in figures.items() if isinstance(value, float)}


def describe(figures: Figures) -> str:
    """All fractions in one line."""
    return ", ".join(
        f"{name.replace('_', ' ')} {100 * value:.2f} %"
        for name, value in fractions(figures).items()
    )


def count_tags(train: Dataset) -> dict[str, Counter]:
    """How often each word of the training text has which tag."""
    counts: dict[str, Counter] = defaultdict(Counter)
    for row in train:
        for word, tag in zip(row["tokens"], row["tags"], strict=True):
            counts[word][tag] += 1
    return counts


def most_frequent(counts: dict[str, Counter], dataset: Dataset) -> list[list[str]]:
    """The baseline: a word's most frequent tag, and for unknown words the most frequent of all."""
    everything: Counter = sum(counts.values(), Counter())
    best = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
    usual = everything.most_common(1)[0][0]
    return [[best.get(word, usual) for word in tokens] for tokens in dataset["tokens"]]
