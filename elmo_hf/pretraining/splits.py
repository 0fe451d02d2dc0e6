# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The training, validation and test text of a run, counted."""

from collections import Counter
from typing import Any, NamedTuple

from tqdm.auto import tqdm

from elmo_hf.hub.loading import saved_class
from elmo_hf.pretraining.corpus import BlockCorpus, Corpus, DatasetCorpus
from elmo_hf.pretraining.settings import PretrainingSettings
from elmo_hf.text.dataset_rows import load_dataset
from elmo_hf.text.files import find_files, size_of


class Splits(NamedTuple):
    train: BlockCorpus
    validation: BlockCorpus | None
    test: BlockCorpus | None
    # frequencies of the words of the training text; None if the vocabulary comes from elsewhere
    word_counts: Counter[str] | None


def read_splits(settings: PretrainingSettings, quiet: bool = False) -> Splits:
    """Reads all text that the settings name once, to count it; `quiet` hides the progress bars."""
    dataset = None
    if settings.dataset_name is not None:
        dataset = load_dataset(settings.dataset_name, settings.dataset_config_name)

    def read(split: str, counts: Counter[str] | None = None) -> BlockCorpus | None:
        if dataset is None:
            return read_files(getattr(settings, f"{split}_file"), split, quiet, counts)
        return read_dataset(dataset, settings.text_column, split, quiet, counts)

    word_counts: Counter[str] | None = Counter() if needs_word_counts(settings) else None
    train = read("train", word_counts)
    if train is None:
        raise ValueError(f"The dataset {settings.dataset_name!r} has no split named train.")
    return Splits(train, read("validation"), read("test"), word_counts)


def needs_word_counts(settings: PretrainingSettings) -> bool:
    """Whether the vocabulary is made of the training text."""
    if settings.vocab_file is not None:
        return False
    if settings.model_name_or_path is None:
        return True
    return saved_class(settings.model_name_or_path) != "ElmoForPreTraining"


def read_files(
    pattern: str | None, split: str, quiet: bool, counts: Counter[str] | None
) -> Corpus | None:
    if pattern is None:
        return None
    files = find_files(pattern)
    with tqdm(
        total=size_of(files), desc=f"count {split}", unit="B", unit_scale=True, disable=quiet
    ) as bar:
        return Corpus(files, counts, bar.update)


def read_dataset(
    dataset: Any, column: str, split: str, quiet: bool, counts: Counter[str] | None
) -> DatasetCorpus | None:
    if split not in dataset:
        return None
    with tqdm(total=len(dataset[split]), desc=f"count {split}", disable=quiet) as bar:
        return DatasetCorpus(dataset[split], column, counts, bar.update)
