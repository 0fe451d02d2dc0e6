# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The settings of a tagger's training, which are also the options of `run_pos.py`.

Default files are left to the script.
"""

from dataclasses import dataclass
from pathlib import Path

from elmo_hf.hub.bundled import BUNDLED
from elmo_hf.tagging.tasks import TASKS
from elmo_hf.training.settings import option


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
    max_train_samples: int | None = option(None, help="use only this many training sentences")
    cache_dir: Path | None = option(
        None, help="folder for the cached layers of the biLM; default: OUTPUT_DIR/features"
    )
    no_feature_cache: bool = option(
        False, help="do not cache the layers; run the biLM in every epoch"
    )

    def __post_init__(self) -> None:
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
    finetune_bilm: bool = option(False, help="train the biLM as well")
    layers: str = option(
        "mix",
        help="what the head reads of the biLM: mix, top, mean, the number of a layer, or all "
        "for all layers side by side",
    )
    num_mixes: int = option(1, help="number of mixes of the layers")
    mix_after_lstm: bool = option(False, help="join the last mix after the task BiLSTM")
    task_lstm_size: int = option(200, help="size of the task BiLSTM; 0 for a linear head")
    word_vectors: Path | None = option(None, help="a text file of GloVe, word2vec or fastText")
    elmo_dropout: float = option(0.0, help="dropout on ELMo's vectors")
    dropout: float = option(0.5, help="dropout before the classifier")

    def __post_init__(self) -> None:
        if self.mix_after_lstm and self.num_mixes < 2:
            raise ValueError("--mix_after_lstm requires --num_mixes 2 or more.")


@dataclass(kw_only=True)
class TrainingSettings:
    """The training loop."""

    _argument_group_name = "training"

    num_train_epochs: int = option(40, help="the largest number of epochs")
    patience: int = option(8, help="stop after this many epochs without a better one")
    words_per_batch: int = option(
        300, help="words per batch and process, in sentences of similar length"
    )
    per_device_train_batch_size: int | None = option(
        None, help="sentences per batch and process, instead of words_per_batch"
    )
    gradient_accumulation_steps: int = option(1, help="batches per step")
    learning_rate: float = option(3e-3, help="learning rate of the head")
    bilm_learning_rate: float = option(3e-4, help="learning rate of the biLM")
    weight_decay: float = option(0.01, help="weight decay of AdamW")
    mix_l2: float = option(0.001, help="L2 penalty on the mix weights")
    max_grad_norm: float = option(1.0, help="gradients are clipped to this norm")
    warmup_ratio: float = option(0.05, help="share of all steps used for warm-up")
    mixed_precision: str | None = option(
        None, help="mixed precision mode of accelerate", choices=["no", "fp16", "bf16"]
    )
    checkpointing_steps: int | None = option(
        None, help="steps between checkpoints; default: one after every epoch"
    )
    seed: int = option(42, help="random seed")
    report_to: str | None = option(None, help="a tracker of accelerate, such as tensorboard")
    output_dir: Path = option(help="folder for the model and the report; a run in it is resumed")
    overwrite_output_dir: bool = option(
        False, help="train anew: remove the run or the model that is in the folder"
    )


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
