# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What every job has: the columns that it reads, keeps and makes, and the rows that it refuses."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa

from elmo_hf.hub.bundled import BUNDLED
from elmo_hf.text.dataset_rows import check_sentence
from elmo_hf.text.lines import BadLineError, check_on_error
from elmo_hf.text_splitting import SplitSentence
from elmo_hf.word_encoding import Span

# made by every job: the number of a sentence in its row, and why a sentence has no values
NUMBER = pa.field("number", pa.int32())
ERROR = pa.field("error", pa.string())


class BadRowError(ValueError):
    """A row cannot be read; the message names it by its keys."""


class Sentence(NamedTuple):
    """A sentence of a row of a batch."""

    row: int
    # counted from 0 in its row
    number: int
    words: list[str]
    # where the words are in the row's text, if that is raw
    spans: list[Span] | None


class Reader(Protocol):
    """A job with its model loaded."""

    def split(self, text: str) -> Iterable[SplitSentence]: ...

    def values(self, sentences: list[Sentence]) -> list[pa.Array]:
        """One array for each of the job's fields."""
        ...


@dataclass(frozen=True, kw_only=True)
class Job:
    """
    The settings of a job, which an engine sends to its workers.

    `keys`: the columns that tell rows apart; they are kept, because engines keep no order.
    `column`: the text, as strings or as lists of words. `model`: "bundled", a folder or a Hub name.
    `split`: how a string becomes sentences and words, the name of a splitter; by default the one
    saved with the model, and "whitespace" for tokenised sentences. `on_error`: "stop" at a row that
    cannot be read, or "skip" it, which leaves its keys and an error without values. `max_words`: a
    sentence of more words cannot be read, because the memory it takes could end the worker.
    """

    keys: Sequence[str]
    column: str = "text"
    model: str = BUNDLED
    split: str | None = None
    on_error: str = "stop"
    max_words: int = 10_000

    def __post_init__(self) -> None:
        check_on_error(self.on_error)
        keys = (self.keys,) if isinstance(self.keys, str) else tuple(self.keys)
        # hashable, because a process keeps what it has loaded for a job
        object.__setattr__(self, "keys", keys)
        names = [*keys, *(field.name for field in self.added_fields())]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"There would be two columns {twice!r}; rename the one in `keys`.")

    def fields(self) -> list[pa.Field]:
        """The columns of values that the job makes, known without its model."""
        raise NotImplementedError

    def open(self, device: str) -> Reader:
        raise NotImplementedError

    def added_fields(self) -> list[pa.Field]:
        return [NUMBER, *self.fields(), ERROR]

    def columns(self, known: Sequence[str]) -> list[str]:
        """The columns to read of those that are known."""
        wanted = list(dict.fromkeys([*self.keys, self.column]))
        for name in wanted:
            if name not in known:
                raise ValueError(f"There is no column {name!r}; there are {', '.join(known)}.")
        return wanted

    def result_schema(self, schema: pa.Schema) -> pa.Schema:
        return pa.schema([*(schema.field(key) for key in self.keys), *self.added_fields()])

    def name_of(self, table: pa.Table, row: int) -> str:
        """What an error message calls a row."""
        keys = [f"{key} {table[key][row].as_py()!r:.100}" for key in self.keys]
        return f"The row with {', '.join(keys)}" if keys else f"Row {row} of a batch"

    def text_of(self, table: pa.Table, row: int) -> str | list[str]:
        """A row's text or words."""
        place = f"{self.name_of(table, row)}: {self.column!r}"
        try:
            text = table[self.column][row].as_py()
        except UnicodeDecodeError as error:
            raise BadLineError(f"{place} is not UTF-8.") from error
        check_sentence(text, place)
        return text


def reason_of(error: BaseException) -> str | None:
    """
    The message of a `BadRowError` inside the error of an engine, which tells the whole way it came;
    none if the engine has failed for another reason.
    """
    found = re.search(rf"{BadRowError.__name__}: (.*)", str(error))
    return found and found[1]
