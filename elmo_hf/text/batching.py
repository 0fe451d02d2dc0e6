# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Sentences of about one length go together: little padding, and a bound on memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

Result = TypeVar("Result")
# memory grows with the sentences that are read at once, and more of them make no product faster
SENTENCES_AT_ONCE = 256


def batches_by_length(
    lengths: Sequence[int], budget: int, numbers: Iterable[int] | None = None
) -> Iterator[list[int]]:
    """
    The numbers of all sentences, or those given, longest first, in batches of at most `budget`
    words with their padding; a longer sentence is a batch of its own. Ties stay in their order.
    """
    order = range(len(lengths)) if numbers is None else numbers
    batch: list[int] = []
    for number in sorted(order, key=lambda number: -lengths[number]):
        # the first of a batch is its longest
        if batch and (len(batch) + 1) * lengths[batch[0]] > budget:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def map_by_length(
    work: Callable[[list[Sequence[str]]], Iterable[Result]],
    sentences: Iterable[Sequence[str]],
    window: int,
    budget: int,
) -> Iterator[Result]:
    """
    What `work` makes of batches of sentences, one by one in the sentences' order: those of a window
    are batched by length, so that any number of sentences takes bounded memory.
    """
    rest = iter(sentences)
    while some := list(islice(rest, window)):
        for words in some:
            if isinstance(words, str):
                raise ValueError(
                    f"A sentence is a list of words, not a string; split {words[:30]!r} first."
                )
        done: dict[int, Result] = {}
        for batch in batches_by_length([len(words) for words in some], budget):
            for start in range(0, len(batch), SENTENCES_AT_ONCE):
                numbers = batch[start : start + SENTENCES_AT_ONCE]
                results = work([some[number] for number in numbers])
                done.update(zip(numbers, results, strict=True))
        yield from (done[number] for number in range(len(some)))
