# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Sentences of about one length go together: little padding, and a bound on memory."""

from collections.abc import Iterable, Iterator, Sequence


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
