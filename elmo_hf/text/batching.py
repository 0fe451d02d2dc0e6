# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Batches of sentences of similar length: little padding, and a bound on memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

Result = TypeVar("Result")
# memory grows with the sentences that are read at once, and more of them make no product faster
SENTENCES_AT_ONCE = 256


def check_sentences(sentences: Iterable[Sequence[str]]) -> None:
    """Refuses sentences that are not lists of words."""
    for words in sentences:
        if isinstance(words, str):
            raise ValueError(
                f"A sentence is a list of words, not a string; split {words[:30]!r} first."
            )
        if not isinstance(words, Iterable):
            raise ValueError(f"A sentence is a list of words, not {words!r:.50}.")
        # a set of types, because asking every word takes twice as long
        if not all(issubclass(kind, str) for kind in set(map(type, words))):
            odd = next(word for word in words if not isinstance(word, str))
            raise ValueError(f"A word is a string, not {odd!r:.50}.")


def check_batch_size(most: int | None) -> int:
    """The most sentences that are read at once; refuses fewer than one."""
    if most is not None and most < 1:
        raise ValueError(f"`batch_size` is {most} but must be at least 1.")
    return SENTENCES_AT_ONCE if most is None else most


def batches_by_length(
    lengths: Sequence[int], budget: int, numbers: Iterable[int] | None = None
) -> Iterator[list[int]]:
    """
    The numbers of all sentences, or of those given, in batches of at most `budget` words including
    padding. The longest come first and ties keep their order; a sentence that is longer than the
    budget is a batch of its own.
    """
    if budget < 1:
        raise ValueError(f"`budget` is {budget} but must be at least 1.")
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
    most: int | None = None,
) -> Iterator[Result]:
    """
    The results of `work` on batches of sentences, one by one in the order of the sentences. Only
    the sentences of one window are batched by length together, so memory stays bounded for any
    number of sentences. A batch has at most `most` sentences, by default 256.
    """
    most = check_batch_size(most)
    if window < 1:
        raise ValueError(f"`window` is {window} but must be at least 1.")
    rest = iter(sentences)
    while some := list(islice(rest, window)):
        check_sentences(some)
        done: dict[int, Result] = {}
        for batch in batches_by_length([len(words) for words in some], budget):
            for start in range(0, len(batch), most):
                numbers = batch[start : start + most]
                results = work([some[number] for number in numbers])
                done.update(zip(numbers, results, strict=True))
        yield from (done[number] for number in range(len(some)))
