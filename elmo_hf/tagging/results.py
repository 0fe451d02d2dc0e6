# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What a training leaves behind in files: figures, predictions and a model card."""

import json
from pathlib import Path

from datasets import Dataset

from elmo_hf.hub.cards import tagger_card
from elmo_hf.modeling_elmo import ElmoForTokenClassification
from elmo_hf.system.writing import new_file, write_text
from elmo_hf.tagging.conllu import format_sentence
from elmo_hf.tagging.evaluation import Evaluation
from elmo_hf.tagging.training import Progress


def write_results(
    folder: Path,
    splits: dict[str, Dataset],
    progress: Progress,
    evaluations: dict[str, Evaluation],
) -> dict:
    """Writes `all_results.json`, which is returned, and `predictions-SPLIT.conllu`."""
    results = {
        "train_loss": progress.history[progress.best_epoch - 1]["train_loss"],
        "best_epoch": progress.best_epoch,
        "epochs": progress.epoch,
    }
    for split, evaluation in evaluations.items():
        results |= evaluation.named(split)
        results |= {f"{split}_baseline_{evaluation.goal}": evaluation.baseline}
        results["goal"] = evaluation.goal
        write_predictions(folder / f"predictions-{split}.conllu", splits[split], evaluation.tags)
    text = json.dumps(dict(sorted(results.items())), indent=2) + "\n"
    write_text(folder / "all_results.json", text)
    return results


def write_predictions(path: Path, dataset: Dataset, tags: list[list[str]]) -> None:
    """Predictions as UPOS; where one is wrong, the last column has the right tag."""
    with new_file(path) as building, building.open("w", encoding="utf-8", newline="\n") as file:
        for row, guesses in zip(dataset, tags, strict=True):
            pairs = zip(row["tags"], guesses, strict=True)
            notes = ["_" if truth == guess else f"Gold={truth}" for truth, guess in pairs]
            file.write(format_sentence(row["tokens"], guesses, notes))


def public_name(name: str) -> str:
    """A name for a card, which may be published: of a local path only the last part."""
    return Path(name).resolve().name if Path(name).exists() else name


def write_card(
    folder: Path,
    model: ElmoForTokenClassification,
    results: dict,
    base: str,
    data: str,
    sentences: int,
    licence: str,
) -> None:
    """
    Writes the model card, README.md. `base` names the biLM, and `data` the training text;
    `sentences` is the number of training sentences.
    """
    title, base, data = folder.resolve().name, public_name(base), public_name(data)
    card = tagger_card(model, title, base, data, sentences, results, results["goal"], licence)
    write_text(folder / "README.md", card)
