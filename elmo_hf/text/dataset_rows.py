# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Datasets of the `datasets` library: loading them, and their rows as lines."""

from collections.abc import Iterator
from contextlib import contextmanager
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
    return LineSource(name, row_lines(rows, name, on_error), len(rows), "line")


def load_dataset(name: str, config: str | None = None, split: str | None = None) -> Any:
    """
    A dataset from the Hub, from a folder of data files, or from a folder that `save_to_disk` wrote:
    one split of it, or all of them by name.
    """
    datasets = require("datasets", "Reading a dataset")
    is_saved_split = Path(name, "state.json").exists()
    with readable(f"The dataset {name!r}"):
        if not is_saved_split and not Path(name, "dataset_dict.json").exists():
            return datasets.load_dataset(name, config, split=split)
        saved = datasets.load_from_disk(name)
    # like a folder of data files without names of splits
    splits = datasets.DatasetDict(train=saved) if is_saved_split else saved
    if split is None:
        return splits
    if split not in splits:
        names = ", ".join(splits)
        raise ValueError(f"The dataset {name!r} has no split {split!r}; it has {names}.")
    return splits[split]


@contextmanager
def readable(what: str) -> Iterator[None]:
    """
    Turns the failure of `datasets` to read something into one sentence, which `what` begins:
    damaged and empty files make it and pyarrow fail in a dozen ways.
    """
    try:
        yield
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        # the system's own errors are one sentence
        if isinstance(error, OSError) and error.errno is not None:
            raise
        # datasets only says that something failed, and its cause says what
        cause = error.__cause__ or error
        reason = " ".join(str(cause).split())
        # an empty JSON file, and an empty text
        if isinstance(cause, StopIteration) or type(cause).__name__ == "SchemaInferenceError":
            reason = "its files have no rows"
        kind = OSError if isinstance(error, OSError) else ValueError
        raise kind(f"{what} cannot be read: {reason.rstrip('.'):.500}.") from error


def check_column(rows: Any, column: str, name: str = "The dataset") -> None:
    """Refuses a column that is not there; `name` begins the message."""
    if column not in rows.column_names:
        names = ", ".join(rows.column_names)
        raise ValueError(f"{name} has no column {column!r}; it has {names}.")


def readable_rows(rows: Any, where: str) -> Iterator[dict[str, Any]]:
    """The rows of a dataset one by one; `where` begins the message if its text is no text."""
    count = 0
    try:
        for row in rows:
            yield row
            count += 1
    # nothing else decodes: parquet and arrow files do not check that their strings are UTF-8
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{where}: the text after row {count} is not UTF-8; create the data again."
        ) from error


def check_sentence(sentence: Any, where: str) -> None:
    """Refuses what is neither text nor a list of words; `where` begins the message."""
    is_list = isinstance(sentence, list) and all(isinstance(word, str) for word in sentence)
    if not is_list and not isinstance(sentence, str):
        raise BadLineError(f"{where} should be text or a list of words, not {sentence!r:.50}.")


def row_lines(rows: "Dataset", name: str, on_error: str) -> Iterator[Line]:
    for number, sentence in enumerate(read_rows(rows, name, on_error)):
        if isinstance(sentence, str):
            yield Line(number, sentence.strip(), sentence.split(), 1)
        else:
            yield Line(number, " ".join(sentence), sentence, 1)


def read_rows(rows: "Dataset", name: str, on_error: str) -> Iterator[str | list[str]]:
    """Each row's text or words; none for a row that is neither."""
    [column] = rows.column_names
    for number, row in enumerate(readable_rows(rows, f"The dataset {name!r}")):
        sentence = row[column]
        try:
            check_sentence(sentence, f"Row {number}: {column!r}")
        except BadLineError as error:
            stop_or_skip(error, on_error)
            sentence = []
        yield sentence
