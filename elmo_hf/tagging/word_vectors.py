# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Static word vectors from the text files of GloVe, word2vec and fastText."""

from collections.abc import Collection
from pathlib import Path

import torch


def read_word_vectors(path: Path, words: Collection[str]) -> tuple[list[str], torch.Tensor]:
    """Those of `words` that are in the file, and their vectors, (words, size)."""
    found: dict[str, list[float]] = {}
    size = None
    # Large files of this kind have broken characters in words that nobody asks for.
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            word, *values = line.rstrip("\n").rstrip(" ").split(" ")
            # word2vec and fastText begin with a line of two counts
            if number == 1 and len(values) == 1:
                continue
            size = size or len(values)
            if len(values) != size:
                raise ValueError(
                    f"{str(path)!r}, line {number}: {word!r} has {len(values)} numbers where the "
                    f"words before it have {size}; the file must have one word per line and "
                    "spaces between the numbers."
                )
            if word in words and word not in found:
                found[word] = read_numbers(values, f"{str(path)!r}, line {number}: {word!r}")
    if not found:
        raise ValueError(
            f"{str(path)!r} has no vector for any of the training words that the "
            "biLM can tell from all others."
        )
    return [*found], torch.tensor([*found.values()])


def read_numbers(values: list[str], where: str) -> list[float]:
    """The numbers of a vector; `where` begins the message if one is none."""
    try:
        numbers = [float(value) for value in values]
    except ValueError as error:
        raise ValueError(f"{where} is not followed by numbers alone; correct the line.") from error
    if not numbers or not torch.tensor(numbers).isfinite().all():
        raise ValueError(f"{where} is not followed by finite numbers; correct the line.")
    return numbers
