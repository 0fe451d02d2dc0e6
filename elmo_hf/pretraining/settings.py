# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The settings of a pretraining run, which are also the options of `run_pretrain.py`."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from elmo_hf.configuration_elmo import ElmoConfig
from elmo_hf.system.failures import first_line
from elmo_hf.system.untrusted import read_json
from elmo_hf.text.paragraphs import PARAGRAPHS
from elmo_hf.text.split_option import NONE, check_split
from elmo_hf.text_splitting import SPLITTERS
from elmo_hf.training.settings import RATES, SEEDS, check_values, option

# shapes of models, as fields of ElmoConfig
PRESETS: dict[str, dict[str, Any]] = {
    # Peters et al. 2018
    "paper": {"hidden_dropout": 0.1},
    # the smallest model that AllenNLP published
    "small": {
        "hidden_dropout": 0.1,
        "cell_size": 1024,
        "projection_size": 128,
        "num_highway_layers": 1,
    },
    # for a first try on a laptop
    "tiny": {
        "hidden_dropout": 0.1,
        "char_filters": [[1, 32], [2, 32], [3, 64], [4, 128]],
        "cell_size": 256,
        "projection_size": 64,
        "num_highway_layers": 1,
        "num_negative_samples": 1024,
    },
}


class Recipe(NamedTuple):
    """What goes with an optimizer."""

    learning_rate: float
    max_grad_norm: float
    # the model that is kept is a mean over this last part of the steps; 0 for no mean
    averaged_part: float


RECIPES = {
    # AdamW with a warm-up, then a cosine down to half of the rate. A mean of late weights needs no
    # lower rate: down to a tenth, its perplexity was 2 % higher.
    "adamw": Recipe(learning_rate=5e-3, max_grad_norm=1.0, averaged_part=0.125),
    # bilm-tf: Adagrad at a constant rate; its loss is summed over the window before clipping
    "bilm": Recipe(learning_rate=0.2, max_grad_norm=10.0, averaged_part=0.0),
}


@dataclass(kw_only=True)
class TextOptions:
    """The text, and its words."""

    _argument_group_name = "text"

    train_file: str | None = option(
        None,
        help="training text: a file, which may be .gz, a glob in quotes, or an address such as "
        "s3://bucket/text.txt",
    )
    validation_file: str | None = option(None, help="held-out text, evaluated after every epoch")
    test_file: str | None = option(None, help="held-out text, evaluated at the end")
    dataset_name: str | None = option(
        None, help="a dataset on the Hub, or a folder, instead of files"
    )
    dataset_config_name: str | None = option(None, help="the configuration of the dataset")
    text_column: str = option("text", help="the column of the dataset that has the sentences")
    split: str = option(
        NONE,
        help=f"how raw text becomes sentences and words: {', '.join(SPLITTERS)}; {NONE}: words are "
        "separated by blanks, and a line is a sentence",
    )
    paragraphs: str = option(
        "line",
        help="where paragraphs of raw text end: after every line, or at a blank line",
        choices=list(PARAGRAPHS),
    )
    vocab_file: Path | None = option(
        None, help="the words of the softmax, one per line; default: those of the training text"
    )


@dataclass(kw_only=True)
class ModelOptions:
    """The shape of a new model, or the one to continue from."""

    _argument_group_name = "model"

    preset: str = option("small", help="the shape of a new model", choices=list(PRESETS))
    config_overrides: Path | None = option(
        None, help="a JSON file of ElmoConfig fields that replace those of the preset"
    )
    model_name_or_path: str | None = option(
        None, help="continue from this model; without --vocab_file, also with its softmax"
    )


@dataclass(kw_only=True)
class TrainingOptions:
    """The training loop."""

    _argument_group_name = "training"

    recipe: str = option(
        "adamw", help="optimizer with its learning rate and clipping", choices=list(RECIPES)
    )
    learning_rate: float | None = option(
        None, help="the highest learning rate; default: that of the recipe", **RATES
    )
    num_train_epochs: int = option(10, help="how many times to read the training text", at_least=1)
    max_train_steps: int | None = option(
        None, help="how many steps to take, instead of epochs", at_least=1
    )
    per_device_train_batch_size: int = option(32, help="rows of text per process", at_least=1)
    window_size: int = option(20, help="words that a row reads at once", at_least=1)
    gradient_accumulation_steps: int = option(
        1, help="windows of every row per step, one after the other", at_least=1
    )
    warmup_steps: int = option(200, help="warm-up steps; adamw only", at_least=0)
    weight_decay: float = option(0.01, help="weight decay; adamw only", at_least=0)
    mixed_precision: str | None = option(
        None, help="mixed precision mode of accelerate", choices=["no", "bf16"]
    )
    checkpointing_steps: int = option(500, help="steps between checkpoints", at_least=1)
    seed: int = option(42, help="random seed", **SEEDS)
    report_to: str | None = option(None, help="a tracker of accelerate, such as tensorboard")
    output_dir: Path = option(
        help="folder for the model and the checkpoints; a run in it is resumed"
    )
    overwrite_output_dir: bool = option(
        False, help="train anew: remove the run or the model that is in the folder"
    )


@dataclass(kw_only=True)
class PretrainingSettings(TextOptions, ModelOptions, TrainingOptions):
    """Text, model and training of a run; either `train_file` or `dataset_name` is required."""

    def __post_init__(self) -> None:
        if (self.train_file is None) == (self.dataset_name is None):
            raise ValueError("Pass either train_file or dataset_name, and not both.")
        if self.dataset_name is not None and (self.validation_file or self.test_file):
            raise ValueError(
                "dataset_name brings its own validation and test text; leave validation_file and "
                "test_file out."
            )
        check_values(self)
        check_split(self.split, self.paragraphs)
        if self.config_overrides is not None:
            # now, and not when a large text has been counted
            self.new_config()

    def new_config(self, **more: Any) -> ElmoConfig:
        """The configuration of a new model: that of the preset, the overrides, and these fields."""
        chosen = PRESETS[self.preset]
        if self.config_overrides is None:
            return ElmoConfig.from_dict(chosen | more)
        overrides = read_overrides(self.config_overrides)
        try:
            return ElmoConfig.from_dict(chosen | overrides | more)
        # some of its checks need values of the right type
        except (ValueError, TypeError) as error:
            raise ValueError(f"{str(self.config_overrides)!r}: {first_line(error)}.") from error

    @property
    def is_raw(self) -> bool:
        """Whether the text has yet to be split."""
        return self.split != NONE

    @property
    def highest_learning_rate(self) -> float:
        rate = self.learning_rate
        return RECIPES[self.recipe].learning_rate if rate is None else rate


def read_overrides(path: Path) -> dict[str, Any]:
    """The fields of `ElmoConfig` in a JSON file."""
    found = read_json(path)
    known = {field.name for field in fields(ElmoConfig)}
    unknown = [name for name in found if name not in known]
    if unknown:
        raise ValueError(f"{str(path)!r}: ElmoConfig has no field {unknown[0]!r}; correct it.")
    return found
