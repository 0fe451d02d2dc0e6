"""Runs of pretraining that continue from a model."""

from pathlib import Path
from typing import Any

from accelerate import Accelerator

from elmo_hf.pretraining import (
    Pretraining,
    PretrainingSettings,
    make_model,
    make_streams,
    make_vocabulary,
    read_splits,
)


def start_training(folder: Path, model: Path, text: Path, **changes: Any) -> Pretraining:
    """A run that has not taken a step."""
    settings = PretrainingSettings(
        train_file=str(text),
        model_name_or_path=str(model),
        per_device_train_batch_size=2,
        window_size=4,
        max_train_steps=2,
        output_dir=folder,
        **changes,
    )
    accelerator = Accelerator(cpu=True)
    splits = read_splits(settings, quiet=True)
    language_model = make_model(settings, make_vocabulary(settings, splits.word_counts))
    streams = make_streams(accelerator, splits.train, 2, 4, settings.seed)
    return Pretraining(settings, accelerator, language_model, streams)
