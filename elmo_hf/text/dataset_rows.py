# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The rows of a `datasets` dataset as lines."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

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
    rows = load_column(name, config, split, column)
    return LineSource(name, row_lines(rows, on_error), len(rows), "line")


def load_column(name: str, config: str | None, split: str, column: str) -> "Dataset":
    datasets = require("datasets", "Reading a dataset")
    try:
        rows = datasets.load_dataset(name, config, split=split)
    except datasets.exceptions.DatasetGenerationError as error:
        raise ValueError(f"The dataset {name!r} cannot be read: {error.__cause__}") from error
    if column not in rows.column_names:
        names = ", ".join(rows.column_names)
        raise ValueError(f"The dataset {name!r} has no column {column!r}; it has {names}.")
    return rows.select_columns([column])


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
