# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The biLM as a language model of words: how probable a sentence is, and which words would fit."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from elmo_hf.bilm_elmo import evaluating
from elmo_hf.hub.loading import load_model, refuse_other_classes
from elmo_hf.language_model_elmo import ElmoForPreTraining, align, predictions
from elmo_hf.pretraining.batches import encode_tokens, known_words, number_tokens
from elmo_hf.softmax_elmo import LOGITS_AT_ONCE
from elmo_hf.text.batching import check_sentences
from elmo_hf.word_vocabulary import SPECIAL_WORDS


class SentenceScore(NamedTuple):
    """Natural logarithms of the probabilities that the two directions give to a sentence."""

    # of each word and of `</S>`, given the words to its left
    forward: list[float]
    # of `<S>` and of each word, given the words to its right
    backward: list[float]

    @property
    def perplexity_forward(self) -> float:
        return perplexity_of(self.forward)

    @property
    def perplexity_backward(self) -> float:
        return perplexity_of(self.backward)

    @property
    def perplexity(self) -> float:
        """exp of the mean of both directions' mean losses."""
        return math.sqrt(self.perplexity_forward * self.perplexity_backward)


def perplexity_of(logarithms: list[float]) -> float:
    """Infinite if it is larger than any number."""
    try:
        return math.exp(-sum(logarithms) / len(logarithms))
    except OverflowError:
        return math.inf


class Substitute(NamedTuple):
    """A word that fits a place, and the logarithms of its probability there."""

    word: str
    # the mean of the two directions
    score: float
    forward: float
    backward: float


class ElmoScorer:
    """
    A language model with its vocabulary, ready to score words.

        scorer = ElmoScorer("my-elmo")
        scorer.score([["Stocks", "fell", "."]])[0].perplexity
        scorer.substitutes(["Stocks", "fell", "."], k=5)  # five words for each place

    A model that is passed in stays in its mode, so one that is being trained can be scored.
    """

    def __init__(
        self, model: str | Path | ElmoForPreTraining, device: str | torch.device | None = None
    ):
        """`model` is a model, a folder or a Hub name; it moves to `device` if one is given."""
        if isinstance(model, ElmoForPreTraining):
            self.model = model
        else:
            self.model = load_language_model(str(model))
        self.vocabulary = known_words(self.model)
        if device is not None:
            self.model.to(device)  # type: ignore[arg-type]

    @torch.no_grad()
    def score(
        self, sentences: Sequence[Sequence[str]], batch_size: int = 32
    ) -> list[SentenceScore]:
        """
        How probable each word of tokenised sentences is for each direction, by the full softmax.

        Every sentence is read by itself. A word that the vocabulary lacks counts as `<UNK>`.
        """
        if batch_size < 1:
            raise ValueError(f"`batch_size` is {batch_size} but must be at least 1.")
        check_sentences(sentences)
        scores = []
        with evaluating(self.model):
            for start in range(0, len(sentences), batch_size):
                scores += self._score_batch(sentences[start : start + batch_size])
        return scores

    def _score_batch(self, sentences: Sequence[Sequence[str]]) -> list[SentenceScore]:
        input_ids, labels = self.encode(sentences)
        mask, packing, layers, _ = self.model.read(input_ids, labels >= 0)
        numbers = self.model.token_numbers(labels, packing)
        grids = []
        for hidden, goal in predictions(layers[-1], packing):
            chances = -self.model.softmax.losses(hidden, numbers[goal]).unsqueeze(1)
            grid = align(chances, goal, packing, mask, boundaries=True).squeeze(-1)
            grids.append(grid.tolist())
        # the columns are `<S>`, the words, `</S>`
        return [
            SentenceScore(forward[1 : len(words) + 2], backward[: len(words) + 1])
            for words, forward, backward in zip(sentences, *grids, strict=True)
        ]

    @torch.no_grad()
    def substitutes(self, sentence: Sequence[str], k: int = 10) -> list[list[Substitute]]:
        """The `k` words that fit best at each place, given the words to its left and right."""
        if k < 1:
            raise ValueError(f"`k` is {k} but must be at least 1.")
        check_sentences([sentence])
        with evaluating(self.model):
            input_ids, labels = self.encode([sentence])
            mask, packing, layers, _ = self.model.read(input_ids, labels >= 0)
            forward, backward = (
                align(*part, packing, mask)[0] for part in predictions(layers[-1], packing)
            )
            places = max(1, LOGITS_AT_ONCE // self.model.softmax.out_features)
            parts = zip(forward.split(places), backward.split(places), strict=True)
            return [best for left, right in parts for best in self._best_words(left, right, k)]

    def _best_words(
        self, forward: torch.Tensor, backward: torch.Tensor, k: int
    ) -> list[list[Substitute]]:
        """The best words of some places, from the vectors that predict them."""
        words = self.vocabulary.words
        specials = [self.vocabulary.number(word) for word in SPECIAL_WORDS]
        chances = [self.model.softmax(part).log_softmax(dim=-1) for part in (forward, backward)]
        mean = (chances[0] + chances[1]) / 2
        mean[:, specials] = float("-inf")
        best, numbers = mean.topk(min(k, len(words) - len(specials)))
        values = [best, *(chance.gather(1, numbers) for chance in chances)]
        return [
            [Substitute(words[number], *value) for number, *value in zip(*place, strict=True)]
            for place in zip(numbers.tolist(), *(part.tolist() for part in values), strict=True)
        ]

    def encode(self, sentences: Sequence[Sequence[str]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Character ids and word numbers of tokenised sentences, padded with zeros and -100."""
        longest = max(map(len, sentences))
        input_ids = encode_tokens(sentences, longest, self.model.word_rows)
        labels = number_tokens(sentences, longest, self.vocabulary)
        return input_ids.to(self.model.device), labels.to(self.model.device)


def load_language_model(name: str) -> ElmoForPreTraining:
    """The model of a folder or of the Hub; one that was saved without its softmax is refused."""
    refuse_other_classes(
        name,
        "ElmoForPreTraining",
        "without a softmax over words; use a model that was pretrained, or converted with its "
        "softmax.",
    )
    return load_model(ElmoForPreTraining, name)
