"""Smaller files that a training reads: fields of a configuration, and static word vectors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from faults import crafted
from faults.corruptions import hostile_json
from faults.inputs_texts import Tagged
from faults.kind import Files, Kind, digest
from faults.programs import Pretrain

from elmo_hf import WordVocabulary
from elmo_hf.pretraining import PretrainingSettings, make_model
from elmo_hf.tagging.word_vectors import read_word_vectors

VECTORS = ["The 0.5 1.0 -1.0", "bank 0.25 1e-3 2", "Ufer 1 2 3", "Möwen 0 0 0"]


class Overrides(Kind):
    """The fields of a new model's configuration, in a JSON file."""

    name = "config overrides"
    targets = ("shape.json",)
    crafts = (hostile_json("shape.json"),)
    kept = ("out", "out/*")
    atomic = False
    program = Pretrain()

    def make(self, variant: int) -> None:
        self.program.make(variant)

    def run(self) -> Any:
        settings = PretrainingSettings(
            train_file="train.txt",
            preset="tiny",
            config_overrides=Path("shape.json"),
            output_dir=Path("out"),
        )
        model = make_model(settings, WordVocabulary(["<S>", "</S>", "<UNK>", "the"]))
        weights = [digest(part.detach().numpy()) for part in model.parameters()]
        return weights, model.config.to_dict()

    def arguments(self, output: str) -> list[str]:
        return [*self.program.arguments(output), "--preset", "tiny", "--max_train_steps", "3"]

    def result(self, output: Path) -> Any:
        weights, figures = self.program.result(output)
        return weights, figures, json.loads((output / "config.json").read_text())

    def unpacked_size(self, files: Files) -> int:
        """A field that is not there has the preset's size."""
        return 32 << 20

    def doubt(self, result: Any, in_process: bool) -> str | None:
        """Every field of the file must have arrived."""
        config, asked = result[-1], json.loads(Path("shape.json").read_bytes())
        if not in_process and not np.isfinite(result[1]["validation_perplexity"]):
            return "figures that are not finite"
        wrong = [name for name, value in asked.items() if config.get(name, ...) != value]
        unknown = [name for name in asked if name not in config]
        if unknown:
            return "an unknown field is accepted"
        return "fields have other values than in the file" if wrong else None


class WordVectors(Tagged):
    """A text file of static word vectors."""

    targets = ("vectors.txt",)

    def __init__(self) -> None:
        super().__init__("conllu")
        self.name, self.crafts = "word vectors", (crafted.lines("vectors.txt"),)

    def make(self, variant: int) -> None:
        super().make(variant)
        lines = VECTORS[::-1] if variant else VECTORS
        Path("vectors.txt").write_bytes("\n".join([*lines, ""]).encode())

    def run(self) -> Any:
        words, vectors = read_word_vectors(Path("vectors.txt"), {"The", "bank", "Ufer", "Dogs"})
        return list(words), np.asarray(vectors).tolist()

    def arguments(self, output: str) -> list[str]:
        return [*super().arguments(output), "--word_vectors", "vectors.txt"]

    def doubt(self, result: Any, in_process: bool) -> str | None:
        if not in_process:
            return super().doubt(result, in_process)
        words, vectors = result
        if len(words) != len(vectors) or not np.isfinite(np.array(vectors)).all():
            return "other numbers of vectors than of words, or not finite"
        return None
