# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The training, validation and test text of a run, counted."""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from tqdm.auto import tqdm

from elmo_hf.hub.loading import saved_class
from elmo_hf.pretraining.corpus import BlockCorpus, Corpus, DatasetCorpus
from elmo_hf.pretraining.settings import PretrainingSettings
from elmo_hf.pretraining.split_text import SPLITS, load_training_dataset, split_texts
from elmo_hf.text.files import find_files, size_of


class Splits(NamedTuple):
    train: BlockCorpus
    validation: BlockCorpus | None
    test: BlockCorpus | None
    # frequencies of the words of the training text; None if the vocabulary comes from elsewhere
    word_counts: Counter[str] | None


def read_splits(settings: PretrainingSettings, quiet: bool = False) -> Splits:
    """
    Reads all text that the settings name once, to count it; raw text is split into files first.
    `quiet` hides the progress bars.
    """
    dataset = None
    named = {split: getattr(settings, f"{split}_file") for split in SPLITS}
    files = {split: pattern for split, pattern in named.items() if pattern is not None}
    if settings.is_raw:
        files = split_texts(settings, quiet)
    elif settings.dataset_name is not None:
        dataset = load_training_dataset(settings.dataset_name, settings.dataset_config_name)

    def read(split: str, counts: Counter[str] | None = None) -> BlockCorpus:
        if dataset is None:
            return read_files(files[split], split, quiet, counts)
        return read_dataset(dataset, settings.text_column, split, quiet, counts)

    word_counts: Counter[str] | None = Counter() if needs_word_counts(settings) else None
    train = read("train", word_counts)
    held_out = {
        split: read(split) for split in ("validation", "test") if split in (dataset or files)
    }
    return Splits(train, held_out.get("validation"), held_out.get("test"), word_counts)


def needs_word_counts(settings: PretrainingSettings) -> bool:
    """Whether the vocabulary is made of the training text."""
    if settings.vocab_file is not None:
        return False
    if settings.model_name_or_path is None:
        return True
    return saved_class(settings.model_name_or_path) != "ElmoForPreTraining"


def has_new_softmax(settings: PretrainingSettings) -> bool:
    """Whether the softmax is not that of the model to continue from."""
    return settings.vocab_file is not None or needs_word_counts(settings)


def read_files(pattern: str | Path, split: str, quiet: bool, counts: Counter[str] | None) -> Corpus:
    files = find_files(pattern)
    with tqdm(
        total=size_of(files), desc=f"count {split}", unit="B", unit_scale=True, disable=quiet
    ) as bar:
        return Corpus(files, counts, bar.update)


def read_dataset(
    dataset: Any, column: str, split: str, quiet: bool, counts: Counter[str] | None
) -> DatasetCorpus:
    with tqdm(total=len(dataset[split]), desc=f"count {split}", disable=quiet) as bar:
        return DatasetCorpus(dataset[split], column, counts, bar.update)
