# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Small helpers of AllenNLP's that programs around ELMo use."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from tqdm.auto import tqdm

A = TypeVar("A")


def lazy_groups_of(iterable: Iterable[A], group_size: int) -> Iterator[list[A]]:
    """Lists of `group_size`, the last one perhaps shorter."""
    iterator = iter(iterable)
    while group := list(islice(iterator, group_size)):
        yield group


class Tqdm:
    """A progress bar with AllenNLP's settings."""

    default_mininterval = 0.1

    @staticmethod
    def set_default_mininterval(value: float) -> None:
        Tqdm.default_mininterval = value

    @staticmethod
    def set_slower_interval(use_slower_interval: bool) -> None:
        Tqdm.default_mininterval = 10.0 if use_slower_interval else 0.1

    @staticmethod
    def tqdm(*args: Any, **kwargs: Any) -> tqdm:
        return tqdm(*args, **{"mininterval": Tqdm.default_mininterval, **kwargs})
