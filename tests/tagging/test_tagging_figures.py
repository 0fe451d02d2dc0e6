"""Figures: what the metrics count, and that everything shows whatever a metric returns."""

import dataclasses
import struct
from collections import Counter

import pytest
from accelerate import Accelerator
from datasets import Dataset
from helpers.tiny import tiny_config

from elmo_hf import ElmoForTokenClassification
from elmo_hf.tagging import Evaluation, Progress, report, write_report, write_results
from elmo_hf.tagging import figures as figures_module
from elmo_hf.tagging.batches import make_batches
from elmo_hf.tagging.evaluation import Evaluator
from elmo_hf.tagging.figures import count_tags, describe, goal_of, measure, most_frequent
from elmo_hf.tagging.tasks import TASKS, Task

TRAIN = Dataset.from_list(
    [
        {"tokens": ["the", "dog", "barks"], "tags": ["DET", "NOUN", "VERB"]},
        {"tokens": ["the", "barks"], "tags": ["DET", "NOUN"]},
        {"tokens": ["barks"], "tags": ["VERB"]},
    ]
)
TEST = Dataset.from_list([{"tokens": ["the", "barks", "cat"], "tags": ["DET", "NOUN", "NOUN"]}])


def test_words_are_counted_by_what_is_known_of_them():
    counts = count_tags(TRAIN)
    baseline = most_frequent(counts, TEST)
    assert baseline[0][:2] == ["DET", "VERB"]
    found = measure("pos", TEST, [["DET", "VERB", "NOUN"]], counts)
    assert goal_of(found) == "accuracy" and found["accuracy"] == pytest.approx(2 / 3)
    assert (found["unknown_accuracy"], found["unknown_words"]) == (1.0, 1)
    assert (found["ambiguous_accuracy"], found["ambiguous_words"]) == (0.0, 1)
    row = {"f1": pytest.approx(2 / 3), "precision": 1.0, "recall": 0.5, "number": 2}
    assert found["tags"]["NOUN"] == row and found["words"] == 3
    assert describe(found).startswith("accuracy 66.67 %, unknown accuracy 100.00 %")


def test_spans_are_counted_whole():
    truth = Dataset.from_list([{"tokens": ["a"] * 4, "tags": ["B-x", "I-x", "O", "B-y"]}])
    found = measure("ner", truth, [["B-x", "O", "O", "B-y"]], {})
    assert goal_of(found) == "f1" and found["f1"] == pytest.approx(0.5)
    assert found["tags"]["y"] == {"f1": 1.0, "precision": 1.0, "recall": 1.0, "number": 1}
    assert found["accuracy"] == 0.75


METRIC = """
import evaluate
from datasets import Features, List, Value

class Delight(evaluate.Metric):
    def _info(self):
        words = List(Value("string"))
        features = Features({"predictions": words, "references": words})
        return evaluate.MetricInfo(
            description="", citation="", inputs_description="", features=features
        )

    def _compute(self, predictions, references, tokens, known_tags):
        row = {"delight_of_tag": 0.25, "number": 3}
        return {"delight": 0.875, "half": 0.5, "words": 3, "tags": {"<NOUN>": row}}
"""


def test_a_new_metric_is_one_file_and_one_line(tmp_path, monkeypatch):
    """Evaluation, results and report take the names of the figures from the metric."""
    (tmp_path / "delight").mkdir()
    (tmp_path / "delight" / "delight.py").write_text(METRIC)
    monkeypatch.setattr(figures_module, "METRICS", tmp_path)
    monkeypatch.setitem(TASKS, "joy", Task("delight", ("tags",)))
    labels = ["DET", "NOUN", "VERB"]
    splits = {
        name: data.map(lambda row: {"labels": [labels.index(tag) for tag in row["tags"]]})
        for name, data in {"train": TRAIN, "validation": TEST}.items()
    }
    model = ElmoForTokenClassification(tiny_config(num_labels=3))
    accelerator = Accelerator(cpu=True)
    batches = make_batches(accelerator, model, splits)
    evaluation = Evaluator(accelerator, batches, labels, "joy")(model, "validation")
    assert (evaluation.goal, evaluation.score, evaluation.baseline) == ("delight", 0.875, 0.875)
    progress = Progress()
    progress.end_epoch(1.0, evaluation)
    results = write_results(tmp_path, splits, progress, {"validation": evaluation})
    assert results["goal"] == "delight" and results["validation_baseline_delight"] == 0.875
    page = write_report(tmp_path, model, splits, progress.history, {"validation": evaluation})
    text = page.read_text()
    assert "validation delight<b>87.50 %" in text and "validation half<b>50.00 %" in text
    assert "most frequent tag, delight" in text


def test_tags_are_escaped_on_the_page(tmp_path):
    model = ElmoForTokenClassification(tiny_config(num_labels=3))
    row = {"f1": 0.5, "number": 1}
    splits = {"train": TRAIN, "test": Dataset.from_list([{"tokens": ["<b>"], "tags": ["<NOUN>"]}])}
    evaluation = Evaluation(1.0, {"a<b": 0.5, "tags": {"<X>": row}}, 0.5, [["<X>"]], [[0.75]])
    history = [{"train_loss": 1.0, "validation_loss": 1.0, "figures": evaluation.figures}]
    page = write_report(tmp_path, model, splits, history, {"test": evaluation})
    text = page.read_text()
    assert "&lt;X&gt;" in text and "&lt;NOUN&gt;" in text and "&lt;b&gt;" in text
    assert "<X>" not in text and "<NOUN>" not in text and "a<b" not in text
    assert "75.0 %" in text


def test_a_trained_bilm_is_not_kept(tmp_path):
    model = ElmoForTokenClassification(tiny_config(num_labels=3))
    with pytest.raises(ValueError, match="of a biLM that is trained cannot be kept"):
        make_batches(Accelerator(cpu=True), model, {"train": TRAIN}, tmp_path)


def test_evaluation_names_begin_with_the_split():
    evaluation = Evaluation(0.5, {"accuracy": 1.0, "words": 2}, 0.0, [], [])
    assert evaluation.named("test") == {
        "test_loss": 0.5,
        "test_accuracy": 1.0,
        "test_words": 2,
    }
    assert dataclasses.is_dataclass(evaluation)


@pytest.mark.parametrize("count", [3, 400], ids=["odd-tags", "many-tags"])
def test_any_tags_can_be_drawn(count, tmp_path, monkeypatch):
    # as many are drawn quickly
    monkeypatch.setattr(report, "TAGS", 10)
    tags = [r"$\frac$", "_", *(f"T{number}" for number in range(count - 2))]
    table = {tag: {"f1": 0.5, "precision": 0.5, "number": 1} for tag in tags}
    report.draw_tags(tmp_path / "tags.png", table)
    report.draw_confusion(tmp_path / "confusion.png", [tags], [tags[::-1]])
    for name in ("tags.png", "confusion.png"):
        width, height = struct.unpack(">II", (tmp_path / name).read_bytes()[16:24])
        assert max(width, height) < 1200


def test_a_confusion_shows_the_most_frequent_tags():
    pairs = Counter({(f"T{number}", f"T{number}"): number for number in range(1, 200)})
    names = report.confused_tags(pairs)
    assert len(names) == 100 and names == sorted(f"T{number}" for number in range(100, 200))
