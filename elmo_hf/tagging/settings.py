# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The settings of a tagger's training, which are also the options of `run_pos.py`.

Default files are left to the script.
"""

from dataclasses import dataclass
from pathlib import Path

from elmo_hf.crf_constraints import SCHEMES
from elmo_hf.hub.bundled import BUNDLED
from elmo_hf.tagging.tasks import TASKS
from elmo_hf.text.split_option import splitter_name
from elmo_hf.text_splitting import SPLITTERS
from elmo_hf.training.settings import RATES, SEEDS, check_values, option

# What a head may read besides single layers.
LAYERS = ("mix", "top", "mean", "all")


@dataclass(kw_only=True)
class DataSettings:
    """The tagged text, and how it is kept."""

    _argument_group_name = "data"

    train_file: Path | None = option(None, help="tagged text to learn from")
    validation_file: Path | None = option(None, help="tagged text that chooses the best epoch")
    test_file: Path | None = option(None, help="tagged text that the best epoch is tested on")
    dataset_name: str | None = option(
        None, help="a dataset on the Hub, or a folder, instead of files"
    )
    dataset_config_name: str | None = option(None, help="the configuration of the dataset")
    token_column: str | None = option(
        None, help="the column of words; by default it is recognised by its name"
    )
    tag_column: str | None = option(
        None, help="the column of tags, by name or number; by default it is recognised by its name"
    )
    task: str = option("pos", help="kind of tags; ner is scored by spans", choices=[*TASKS])
    max_train_samples: int | None = option(
        None, help="use only this many training sentences", at_least=1
    )
    cache_dir: Path | None = option(
        None, help="folder for the cached layers of the biLM; default: OUTPUT_DIR/features"
    )
    no_feature_cache: bool = option(
        False, help="do not cache the layers; run the biLM in every epoch"
    )

    def __post_init__(self) -> None:
        check_values(self)
        if self.dataset_name and self.files:
            raise ValueError("Pass either files or --dataset_name, not both.")

    @property
    def files(self) -> dict[str, Path]:
        """The files that are named, by their splits."""
        files = {
            "train": self.train_file,
            "validation": self.validation_file,
            "test": self.test_file,
        }
        return {split: file for split, file in files.items() if file is not None}


@dataclass(kw_only=True)
class ModelSettings:
    """The biLM, and the head on it."""

    _argument_group_name = "model"

    model_name_or_path: str = option(BUNDLED, help="an ELMo folder or Hub name")
    split: str | None = option(
        None,
        help="how the tagger will split raw text, its training text being split already: "
        f"{', '.join(SPLITTERS)}; default: like the biLM",
    )
    finetune_bilm: bool = option(False, help="train the biLM as well")
    layers: str = option(
        "mix",
        help="what the head reads of the biLM: mix, top, mean, the number of a layer, or all "
        "for all layers side by side",
    )
    num_mixes: int = option(1, help="number of mixes of the layers", at_least=1)
    mix_after_lstm: bool = option(False, help="join the last mix after the task BiLSTM")
    task_lstm_size: int = option(
        200, help="size of the task BiLSTM; 0 for a linear head", at_least=0
    )
    crf: bool = option(
        False, help="choose the tags of a sentence together, with scores of tag pairs"
    )
    crf_constraints: str | None = option(
        None, help="with --crf, tag only what this scheme of names allows", choices=[*SCHEMES]
    )
    word_vectors: Path | None = option(None, help="a text file of GloVe, word2vec or fastText")
    elmo_dropout: float = option(0.0, help="dropout on ELMo's vectors", at_least=0, below=1)
    dropout: float = option(0.5, help="dropout before the classifier", at_least=0, below=1)

    def __post_init__(self) -> None:
        check_values(self)
        if self.split is not None:
            splitter_name(self.split)
        if self.layers not in LAYERS and not self.layers.isdecimal():
            raise ValueError(
                f"`layers` is {self.layers!r} but must be one of {', '.join(LAYERS)}, or the "
                "number of a layer."
            )
        if self.crf_constraints is not None and not self.crf:
            raise ValueError(f"--crf_constraints {self.crf_constraints} requires --crf.")
        if self.num_mixes > 1 and self.layers not in ("mix", "all"):
            raise ValueError(f"--num_mixes {self.num_mixes} requires --layers mix.")
        if self.mix_after_lstm and self.num_mixes < 2:
            raise ValueError("--mix_after_lstm requires --num_mixes 2 or more.")
        if self.mix_after_lstm and (self.layers == "all" or not self.task_lstm_size):
            raise ValueError("--mix_after_lstm requires --layers mix and a --task_lstm_size.")


@dataclass(kw_only=True)
class TrainingSettings:
    """The training loop."""

    _argument_group_name = "training"

    num_train_epochs: int = option(40, help="the largest number of epochs", at_least=1)
    patience: int = option(8, help="stop after this many epochs without a better one", at_least=1)
    words_per_batch: int = option(
        300, help="words per batch and process, in sentences of similar length", at_least=1
    )
    per_device_train_batch_size: int | None = option(
        None, help="sentences per batch and process, instead of words_per_batch", at_least=1
    )
    gradient_accumulation_steps: int = option(1, help="batches per step", at_least=1)
    learning_rate: float = option(3e-3, help="learning rate of the head", **RATES)
    bilm_learning_rate: float = option(3e-4, help="learning rate of the biLM", **RATES)
    weight_decay: float = option(0.01, help="weight decay of AdamW", at_least=0)
    mix_l2: float = option(0.001, help="L2 penalty on the mix weights", at_least=0)
    max_grad_norm: float = option(1.0, help="gradients are clipped to this norm", above=0)
    warmup_ratio: float = option(
        0.05, help="share of all steps used for warm-up", at_least=0, at_most=1
    )
    mixed_precision: str | None = option(
        None, help="mixed precision mode of accelerate", choices=["no", "fp16", "bf16"]
    )
    checkpointing_steps: int | None = option(
        None, help="steps between checkpoints; default: one after every epoch", at_least=1
    )
    seed: int = option(42, help="random seed", **SEEDS)
    report_to: str | None = option(None, help="a tracker of accelerate, such as tensorboard")
    output_dir: Path = option(help="folder for the model and the report; a run in it is resumed")
    overwrite_output_dir: bool = option(
        False, help="train anew: remove the run or the model that is in the folder"
    )

    def __post_init__(self) -> None:
        check_values(self)


@dataclass(kw_only=True)
class HubSettings:
    """What happens with the trained tagger."""

    _argument_group_name = "hub"

    push_to_hub: bool = option(False, help="publish the tagger, as `elmo-hf push` does")
    hub_model_id: str | None = option(None, help="the Hub repository, such as me/elmo-pos")
    license: str = option("other", help="licence of your weights, for the model card")

    def __post_init__(self) -> None:
        if self.push_to_hub and not self.hub_model_id:
            raise ValueError("--push_to_hub requires --hub_model_id.")
