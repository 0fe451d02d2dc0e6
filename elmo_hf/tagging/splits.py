# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Tagged sentences as datasets: training, validation and test text, with the numbers of their tags.

The datasets lie on disk and are mapped into memory, so a file may be larger than memory.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset, Features, List, Value
from datasets.exceptions import DatasetGenerationError
from transformers.utils import logging

from elmo_hf.system.checksums import hash_file
from elmo_hf.tagging.formats import Columns, Sentence, read_rows, read_tagged
from elmo_hf.text.dataset_rows import load_dataset
from elmo_hf.text.files import check_file

logger = logging.get_logger(__name__)

SPLITS = ("train", "validation", "test")
FEATURES = Features(
    {"tokens": List(Value("string")), "tags": List(Value("string")), "line": Value("int64")}
)


def load_splits(
    source: str | Mapping[str, str | Path],
    config: str | None = None,
    task: str = "pos",
    token_column: str | None = None,
    tag_column: str | None = None,
    max_train_samples: int | None = None,
) -> tuple[dict[str, Dataset], list[str]]:
    """
    Reads the files named for `train`, `validation` and maybe `test`, or a dataset, by its name on
    the Hub or its folder, and its configuration. Returns the splits, whose `labels` are the numbers
    of their tags, and the tags of the training text.
    """
    if isinstance(source, str):
        splits = load_named(source, config, task, token_column, tag_column)
        names = dict.fromkeys(splits, source)
    else:
        names = {split: str(file) for split, file in source.items()}
        splits = {
            split: load_tagged(Path(file), task, token_column, tag_column)
            for split, file in names.items()
        }
    missing = {"train", "validation"} - splits.keys()
    if missing and isinstance(source, str):
        raise ValueError(f"{source!r} has no split named {' or '.join(sorted(missing))}.")
    if missing:
        raise ValueError("Pass both --train_file and --validation_file.")
    labels = sorted({tag for tags in splits["train"]["tags"] for tag in tags})
    if max_train_samples is not None:
        count = min(max_train_samples, len(splits["train"]))
        splits["train"] = splits["train"].select(range(count))
    numbers = {label: number for number, label in enumerate(labels)}
    numbered = {
        split: number_tags(splits[split], names[split], numbers)
        for split in SPLITS
        if split in splits
    }
    return numbered, labels


def load_tagged(
    path: Path, task: str = "pos", token_column: str | None = None, tag_column: str | None = None
) -> Dataset:
    """The sentences of a file: `tokens`, `tags` and the `line` at which each begins."""
    content = hash_input(path)
    settings = {"task": task, "token_column": token_column, "tag_column": tag_column}
    key = hashlib.sha256(json.dumps([content, str(path), settings]).encode()).hexdigest()
    return generate(read_tagged, {"path": path, **settings}, key[:32])


def load_named(
    name: str,
    config: str | None = None,
    task: str = "pos",
    token_column: str | None = None,
    tag_column: str | None = None,
) -> dict[str, Dataset]:
    """The splits of a dataset by their names."""
    columns = Columns(task, token_column, tag_column)
    return {
        split: generate(
            read_rows, {"rows": rows, "where": f"{name}, split {split}", "columns": columns}
        )
        for split, rows in load_dataset(name, config).items()
    }


def generate(
    read: Callable[..., Iterator[Sentence]],
    settings: dict[str, Any],
    fingerprint: str | None = None,
) -> Dataset:
    """
    The sentences that a function yields, as a dataset on disk. Those without words are left out:
    most formats cannot even write them, and there is nothing to learn or to measure.
    """
    try:
        sentences = Dataset.from_generator(
            read, gen_kwargs=settings, features=FEATURES, fingerprint=fingerprint
        )
    except DatasetGenerationError as error:
        # The cause names the line of the file; the error itself only says that there is one.
        raise error.__cause__ or error from None
    chunks = sentences.data.column("tokens").chunks
    lengths = [length for chunk in chunks for length in chunk.value_lengths().to_pylist()]
    filled = [number for number, length in enumerate(lengths) if length]
    if len(filled) == len(lengths):
        return sentences
    name = settings.get("where") or str(settings["path"])
    if not filled:
        raise ValueError(f"There is no word in any sentence of {name!r}.")
    logger.warning(
        f"{name}: sentences without words are left out ({len(lengths) - len(filled)}, the first of "
        f"them at line {sentences[lengths.index(0)]['line']})."
    )
    return sentences.select(filled)


def hash_input(path: Path) -> str:
    try:
        check_file(path)
        return hash_file(path)
    except PermissionError:
        raise PermissionError(
            f"{str(path)!r} cannot be read: permission denied; try chmod u+r."
        ) from None


def number_tags(dataset: Dataset, where: str, numbers: Mapping[str, int]) -> Dataset:
    """The same sentences with `labels`, the numbers of their tags; `where` is for errors."""

    def labels_of(row: Sentence) -> dict[str, list[int]]:
        for tag in row["tags"]:
            if tag not in numbers:
                raise ValueError(
                    f"{where}, line {row['line']}: the tag {tag!r} is not in the training text; "
                    "correct it, or add sentences with it to the training text."
                )
        return {"labels": [numbers[tag] for tag in row["tags"]]}

    return dataset.map(labels_of, desc=f"tags of {Path(where).name}")
