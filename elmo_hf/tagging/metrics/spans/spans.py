# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""A metric module for `evaluate`: how well spans are found, as seqeval counts them."""

import evaluate
from datasets import Features, List, Value

from elmo_hf.extras import require

DESCRIPTION = """
F1, precision and recall over whole spans (tags such as B-person, I-person, O), of all of them
together and of each kind of span; and the accuracy over words.
"""


class Spans(evaluate.Metric):
    def _info(self) -> evaluate.MetricInfo:
        words = List(Value("string"))
        features = Features({"predictions": words, "references": words})
        return evaluate.MetricInfo(
            description=DESCRIPTION, citation="", inputs_description="", features=features
        )

    def _compute(self, predictions, references, tokens=None, known_tags=None) -> dict:
        """`tokens` and `known_tags` are what every metric is given; spans do not depend on them."""
        seqeval = require("seqeval.metrics", "Counting spans")
        report = seqeval.classification_report(
            references, predictions, output_dict=True, zero_division=0
        )
        figures = {
            kind: {
                "f1": float(row["f1-score"]),
                "precision": float(row["precision"]),
                "recall": float(row["recall"]),
                "number": int(row["support"]),
            }
            for kind, row in report.items()
        }
        overall = figures["micro avg"]
        return {
            **{name: overall[name] for name in ("f1", "precision", "recall")},
            "accuracy": float(seqeval.accuracy_score(references, predictions)),
            "tags": {kind: row for kind, row in figures.items() if not kind.endswith(" avg")},
        }
