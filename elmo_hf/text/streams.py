# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Answering a stream at once: what has come so far is a batch, be it one line or a thousand."""

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def as_they_come(items: Iterable[Item], most: int) -> Iterator[list[Item]]:
    """
    The items in lists of at most `most`: waits for the next item, then takes all others that are
    there already. Another thread reads them meanwhile, ahead by one list at most.
    """
    arrived: queue.Queue[Item | BaseException | None] = queue.Queue(most)

    def read() -> None:
        try:
            for item in items:
                arrived.put(item)
            arrived.put(None)
        except BaseException as error:
            arrived.put(error)

    # a program that ends must not wait for a line that is never typed
    threading.Thread(target=read, daemon=True).start()
    end: Item | BaseException | None = None
    is_over = False
    while not is_over:
        batch: list[Item] = []
        while len(batch) < most and not (batch and arrived.empty()):
            item = arrived.get()
            is_over = item is None or isinstance(item, BaseException)
            if is_over:
                end = item
                break
            batch.append(item)  # type: ignore[arg-type]
        if batch:
            yield batch
    if isinstance(end, BaseException):
        raise end
