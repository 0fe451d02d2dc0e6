"""Commands that write: they are killed, run out of disk, and meet each other."""

import contextlib
import json
from pathlib import Path
from random import Random
from typing import Any

from faults.inputs_texts import SENTENCES, write_model, write_tagged
from faults.inputs_weights import write_published
from faults.kind import Command, digest
from helpers.tiny import PRETRAINING_SHAPE
from safetensors import safe_open

SHAPE = PRETRAINING_SHAPE | {"num_negative_samples": 4}


class Convert(Command):
    name = "convert"

    def make(self, variant: int) -> None:
        # not beside the output, or the second run would find the first one's
        Path("published").mkdir()
        with contextlib.chdir("published"):
            write_published(variant)

    def arguments(self, output: str) -> list[str]:
        return ["elmo-hf", "convert", "published", "--output-dir", output]


class Export(Command):
    name = "export"

    def make(self, variant: int) -> None:
        write_model(cell_clip=3.0 + variant)

    def arguments(self, output: str) -> list[str]:
        return ["elmo-hf", "export", "--model", "model", "--output-dir", output]


class Embed(Command):
    name = "embed"
    output = "out.npy"
    kept = ("out.offsets.npy",)

    def make(self, variant: int) -> None:
        write_model()
        draw = Random(variant)
        lines = [draw.choice(SENTENCES) for _ in range(5000)]
        Path("text.txt").write_bytes("\n".join(lines).encode())

    def arguments(self, output: str) -> list[str]:
        model = ["--model", "model", "--layers", "top"]
        return ["elmo-hf", "embed", "text.txt", *model, "--output", output]

    def result(self, output: Path) -> Any:
        files = (output, output.with_name("out.offsets.npy"))
        return [digest(file.read_bytes()) for file in files]


class Vocab(Command):
    name = "vocab"
    output = "out.txt"

    def make(self, variant: int) -> None:
        draw = Random(variant)
        words = [f"word{draw.randrange(20_000)}" for _ in range(100_000)]
        lines = [" ".join(words[at : at + 10]) for at in range(0, len(words), 10)]
        Path("text.txt").write_text("\n".join(lines))

    def arguments(self, output: str) -> list[str]:
        return ["elmo-hf", "vocab", "text.txt", "--output", output]

    def result(self, output: Path) -> Any:
        return digest(output.read_bytes())


class Training(Command):
    """A training script, which resumes from its checkpoints."""

    atomic = False
    patience = 120.0
    weight = 3.0

    def result(self, output: Path) -> Any:
        """Weights, and all figures but times and speeds."""
        figures = json.loads((output / "all_results.json").read_text())
        stable = {
            name: figure
            for name, figure in figures.items()
            if not any(part in name for part in ("second", "runtime", "flos"))
        }
        with safe_open(output / "model.safetensors", "numpy") as file:
            weights = {name: digest(file.get_tensor(name)) for name in sorted(file.keys())}
        return weights, stable


class Tagger(Training):
    name = "run_pos"

    def make(self, variant: int) -> None:
        write_model(hidden_dropout=0.0)
        write_tagged("conllu", "train.conllu", variant, 60)
        write_tagged("conllu", "dev.conllu")

    def arguments(self, output: str) -> list[str]:
        files = ["--train_file", "train.conllu", "--validation_file", "dev.conllu"]
        sizes = ["--num_train_epochs", "3", "--task_lstm_size", "4", "--words_per_batch", "32"]
        saves = ["--checkpointing_steps", "3", "--output_dir", output]
        return ["run_pos.py", *files, "--model_name_or_path", "model", *sizes, *saves]


class TrainerTagger(Tagger):
    name = "run_pos_trainer"

    def arguments(self, output: str) -> list[str]:
        files = ["--train_file", "train.conllu", "--validation_file", "dev.conllu"]
        saves = ["--num_train_epochs", "3", "--use_cpu", "--output_dir", output]
        return ["run_pos_trainer.py", *files, "--model_name_or_path", "model", *saves]


class Pretrain(Training):
    name = "run_pretrain"

    def make(self, variant: int) -> None:
        draw = Random(variant)
        lines = [draw.choice([line for line in SENTENCES if line]) for _ in range(60)]
        Path("train.txt").write_bytes("\n".join(lines).encode())
        Path("shape.json").write_text(json.dumps(SHAPE))

    def arguments(self, output: str) -> list[str]:
        text = ["--train_file", "train.txt", "--validation_file", "train.txt"]
        sizes = ["--config_overrides", "shape.json", "--per_device_train_batch_size", "4"]
        saves = ["--window_size", "5", "--num_train_epochs", "2", "--checkpointing_steps", "5"]
        return ["run_pretrain.py", *text, *sizes, *saves, "--output_dir", output]


PROGRAMS: list[Command] = [
    Convert(),
    Export(),
    Embed(),
    Vocab(),
    Tagger(),
    Pretrain(),
    TrainerTagger(),
]
