# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Datasets of the `datasets` library: loading them, and their rows as lines."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_hf.extras import require
from elmo_hf.text.lines import BadLineError, Line, LineSource, check_on_error, stop_or_skip

if TYPE_CHECKING:
    from datasets import Dataset


def dataset_source(
    name: str,
    config: str | None = None,
    split: str = "train",
    column: str = "text",
    on_error: str = "stop",
) -> LineSource:
    """
    One line per row of a dataset from the Hub or a folder: the column holds strings, or lists of
    words. With `on_error="skip"` any other row is reported and counts as an empty line.
    """
    check_on_error(on_error)
    rows = load_dataset(name, config, split)
    check_column(rows, column, f"The dataset {name!r}")
    rows = rows.select_columns([column])
    return LineSource(name, row_lines(rows, on_error), len(rows), "line")


def load_dataset(name: str, config: str | None = None, split: str | None = None) -> Any:
    """
    A dataset from the Hub, from a folder of data files, or from a folder that `save_to_disk` wrote:
    one split of it, or all of them by name.
    """
    datasets = require("datasets", "Reading a dataset")
    is_saved_split = Path(name, "state.json").exists()
    if not is_saved_split and not Path(name, "dataset_dict.json").exists():
        try:
            return datasets.load_dataset(name, config, split=split)
        except datasets.exceptions.DatasetGenerationError as error:
            raise ValueError(f"The dataset {name!r} cannot be read: {error.__cause__}") from error
    saved = datasets.load_from_disk(name)
    # like a folder of data files without names of splits
    splits = datasets.DatasetDict(train=saved) if is_saved_split else saved
    if split is None:
        return splits
    if split not in splits:
        names = ", ".join(splits)
        raise ValueError(f"The dataset {name!r} has no split {split!r}; it has {names}.")
    return splits[split]


def check_column(rows: Any, column: str, name: str = "The dataset") -> None:
    """Refuses a column that is not there; `name` begins the message."""
    if column not in rows.column_names:
        names = ", ".join(rows.column_names)
        raise ValueError(f"{name} has no column {column!r}; it has {names}.")


def row_lines(rows: "Dataset", on_error: str) -> Iterator[Line]:
    [column] = rows.column_names
    for number, row in enumerate(rows):
        sentence = row[column]
        if isinstance(sentence, str):
            yield Line(number, sentence.strip(), sentence.split(), 1)
            continue
        if not isinstance(sentence, list) or not all(isinstance(word, str) for word in sentence):
            message = (
                f"Row {number}: {column!r} should be text or a list of words, not {sentence!r:.50}."
            )
            stop_or_skip(BadLineError(message), on_error)
            sentence = []
        yield Line(number, " ".join(sentence), sentence, 1)
