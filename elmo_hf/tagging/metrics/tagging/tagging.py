"""A metric module for `evaluate`: how well words are tagged."""

from collections import Counter

import evaluate
from datasets import Features, List, Value

DESCRIPTION = """
Accuracy over all words; over those that the training text lacks (`unknown_accuracy`) and those to
which it gives several tags (`ambiguous_accuracy`), if `known_tags` says which tags each of its
words has; precision, recall, F1 and number of each tag; and the mean F1 of all tags.
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
        result = {"accuracy": share(triples)}
        if known_tags is not None:
            unknown = [triple for triple in triples if triple[2] not in known_tags]
            ambiguous = [triple for triple in triples if len(known_tags.get(triple[2], ())) > 1]
            result["unknown_accuracy"] = share(unknown)
            result["ambiguous_accuracy"] = share(ambiguous)
            result["unknown_words"] = len(unknown)
            result["ambiguous_words"] = len(ambiguous)
        guessed = Counter(guess for guess, _, _ in triples)
        meant = Counter(truth for _, truth, _ in triples)
        right = Counter(truth for guess, truth, _ in triples if guess == truth)
        result["tags"] = {
            tag: {
                "precision": right[tag] / max(1, guessed[tag]),
                "recall": right[tag] / max(1, meant[tag]),
                "f1": 2 * right[tag] / max(1, guessed[tag] + meant[tag]),
                "number": meant[tag],
            }
            for tag in sorted(meant | guessed)
        }
        scores = [figures["f1"] for figures in result["tags"].values()]
        result["macro_f1"] = sum(scores) / max(1, len(scores))
        result["words"] = len(triples)
        return result


def share(triples: list[tuple[str, str, str]]) -> float:
    """Of guesses that are right; 0 of none."""
    return sum(guess == truth for guess, truth, _ in triples) / max(1, len(triples))
