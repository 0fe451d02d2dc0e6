# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Ambiguous words in context: do the vectors of a word know which of its senses is meant?

Each word occurs in several sentences, once in each, and in one of its senses. A layer tells the
senses apart if the nearest other vector of the word, by cosine, is from a sentence with the same
sense.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from elmo_hf.modeling_elmo import ElmoModel
from elmo_hf.text_lines import read_lines
from elmo_hf.tokenization_elmo import ElmoTokenizer

# Cosines that differ by less than this differ only by rounding.
TIE = 1e-5


class Occurrence(NamedTuple):
    """A word in a sentence of tokens separated by spaces."""

    word: str
    sense: str
    sentence: str


class WordStudy(NamedTuple):
    """
    What each layer makes of one word.

    `vectors` (layers, occurrences, hidden_size); `nearest[layer][i]` are the numbers of the
    occurrences nearest to occurrence `i`, several if they tie; `shares[layer]` is how often the
    nearest one has the same sense.
    """

    word: str
    occurrences: list[Occurrence]
    vectors: torch.Tensor
    nearest: list[list[list[int]]]
    shares: list[float]

    def links(self, layer: int) -> list[tuple[int, int]]:
        """Pairs of every occurrence and its nearest one."""
        return [(number, near[0]) for number, near in enumerate(self.nearest[layer])]


def read_occurrences(path: Path) -> list[Occurrence]:
    """
    Reads a table of tab-separated values with the columns word, sense and sentence. Every word
    needs two sentences at least, because an occurrence is compared with the others of its word.
    """
    lines = enumerate(read_lines(path), start=1)
    if next(lines, (1, ""))[1].split("\t") != list(Occurrence._fields):
        raise ValueError(f"{path}: the first line must name the columns word, sense, sentence.")
    found: list[Occurrence] = []
    for number, line in lines:
        if not line:
            continue
        row = line.split("\t")
        if len(row) != len(Occurrence._fields):
            raise ValueError(f"{path}, line {number}: there must be three columns.")
        found.append(Occurrence(*row))
        times = found[-1].sentence.split().count(found[-1].word)
        if times != 1:
            raise ValueError(
                f"{path}, line {number}: {found[-1].word!r} must occur exactly once in its "
                f"sentence, not {times} times."
            )
    if not found:
        raise ValueError(f"{path}: there is no sentence under the first line.")
    counts = Counter(one.word for one in found)
    lonely = next((word for word, count in counts.items() if count < 2), None)
    if lonely is not None:
        raise ValueError(f"{path}: {lonely!r} has only one sentence; a word needs at least two.")
    return found


@torch.inference_mode()
def vectors_in_context(
    model: ElmoModel, tokenizer: ElmoTokenizer, word: str, sentences: Sequence[list[str]]
) -> torch.Tensor:
    """The word's vector in each layer and sentence of words, (layers, sentences, hidden_size)."""
    batch = tokenizer(
        list(sentences), is_split_into_words=True, padding=True, return_tensors="pt"
    ).to(model.device)
    layers = model(**batch, output_hidden_states=True).hidden_states
    places = [sentence.index(word) for sentence in sentences]
    return torch.stack(layers)[:, range(len(places)), places].cpu()


def nearest_neighbours(vectors: torch.Tensor) -> list[list[int]]:
    """For each of the vectors (n, size) the numbers of those with the largest cosine."""
    unit = torch.nn.functional.normalize(vectors, dim=-1)
    cosines = (unit @ unit.T).fill_diagonal_(-2)
    best = cosines.max(dim=1, keepdim=True).values
    return [row.nonzero().flatten().tolist() for row in cosines >= best - TIE]


def same_sense_share(occurrences: list[Occurrence], nearest: list[list[int]]) -> float:
    """How often the nearest occurrence has the same sense; ties count by their share."""
    shares = [
        sum(occurrences[other].sense == one.sense for other in others) / len(others)
        for one, others in zip(occurrences, nearest, strict=True)
    ]
    return sum(shares) / len(shares)


def chance_share(occurrences: list[Occurrence]) -> float:
    """How often any other occurrence of the same word has the same sense."""
    shares = []
    for one in occurrences:
        others = [other for other in occurrences if other.word == one.word and other is not one]
        shares.append(sum(other.sense == one.sense for other in others) / max(1, len(others)))
    return sum(shares) / len(shares)


def study_words(
    model: ElmoModel, tokenizer: ElmoTokenizer, occurrences: list[Occurrence]
) -> list[WordStudy]:
    """Studies every word apart, in the order in which the words first occur."""
    studies = []
    for word in dict.fromkeys(one.word for one in occurrences):
        some = [one for one in occurrences if one.word == word]
        vectors = vectors_in_context(model, tokenizer, word, [one.sentence.split() for one in some])
        nearest = [nearest_neighbours(layer) for layer in vectors]
        shares = [same_sense_share(some, found) for found in nearest]
        studies.append(WordStudy(word, some, vectors, nearest, shares))
    return studies
