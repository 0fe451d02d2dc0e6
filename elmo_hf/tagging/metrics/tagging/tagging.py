# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""A metric module for `evaluate`: how well words are tagged."""

from collections import Counter

import evaluate
from datasets import Features, List, Value

DESCRIPTION = """
Accuracy over all words; over those that are not in the training text (`unknown_accuracy`) and those
that have several tags there (`ambiguous_accuracy`), if `known_tags` has the tags of its words;
F1, precision, recall and number of each tag; and the mean F1 of all tags.
"""


class Tagging(evaluate.Metric):
    def _info(self) -> evaluate.MetricInfo:
        words = List(Value("string"))
        features = Features({"predictions": words, "references": words, "tokens": words})
        return evaluate.MetricInfo(
            description=DESCRIPTION, citation="", inputs_description="", features=features
        )

    def _compute(self, predictions, references, tokens, known_tags=None) -> dict:
        triples = [
            triple
            for sentence in zip(predictions, references, tokens, strict=True)
            for triple in zip(*sentence, strict=True)
        ]
        result = {"accuracy": share_right(triples)}
        if known_tags is not None:
            unknown = [triple for triple in triples if triple[2] not in known_tags]
            ambiguous = [triple for triple in triples if len(known_tags.get(triple[2], ())) > 1]
            result["unknown_accuracy"] = share_right(unknown)
            result["ambiguous_accuracy"] = share_right(ambiguous)
            result["unknown_words"] = len(unknown)
            result["ambiguous_words"] = len(ambiguous)
        guessed = Counter(guess for guess, _, _ in triples)
        meant = Counter(truth for _, truth, _ in triples)
        right = Counter(truth for guess, truth, _ in triples if guess == truth)
        tags = {
            tag: {
                "f1": 2 * right[tag] / max(1, guessed[tag] + meant[tag]),
                "precision": right[tag] / max(1, guessed[tag]),
                "recall": right[tag] / max(1, meant[tag]),
                "number": meant[tag],
            }
            for tag in sorted(meant | guessed)
        }
        result["macro_f1"] = sum(row["f1"] for row in tags.values()) / max(1, len(tags))
        result["words"] = len(triples)
        return {**result, "tags": tags}


def share_right(triples: list[tuple[str, str, str]]) -> float:
    """The share of guesses that are right; 0 if there are none."""
    return sum(guess == truth for guess, truth, _ in triples) / max(1, len(triples))
