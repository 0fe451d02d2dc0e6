"""A metric module for `evaluate`: how well spans are found, as seqeval counts."""

import evaluate
from datasets import Features, List, Value

DESCRIPTION = """
Precision, recall and F1 over whole spans (tags such as B-person, I-person, O), of each kind of span
and of all together; and the accuracy over words.
"""


class Spans(evaluate.Metric):
    def _info(self) -> evaluate.MetricInfo:
        words = List(Value("string"))
        features = Features({"predictions": words, "references": words})
        return evaluate.MetricInfo(
            description=DESCRIPTION, citation="", inputs_description="", features=features
        )

    def _compute(self, predictions, references) -> dict:
        try:
            from seqeval.metrics import accuracy_score, classification_report
        except ImportError as error:
            raise ImportError(
                "Spans are counted by seqeval, which is not installed: pip install seqeval"
            ) from error
        report = classification_report(references, predictions, output_dict=True, zero_division=0)
        names = {"f1-score": "f1", "support": "number"}
        figures = {
            kind: {names.get(name, name): float(value) for name, value in row.items()}
            for kind, row in report.items()
        }
        overall = figures["micro avg"]
        return {
            "accuracy": accuracy_score(references, predictions),
            **{name: overall[name] for name in ("precision", "recall", "f1")},
            "tags": {kind: row for kind, row in figures.items() if not kind.endswith(" avg")},
        }
