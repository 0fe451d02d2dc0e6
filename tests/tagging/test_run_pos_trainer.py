"""transformers' Trainer on ELMo, as a user runs it."""

import json
import shutil

import pytest
import torch
from helpers.launch import (
    EXAMPLES,
    assert_divergence_stops,
    assert_only_the_same_run_goes_on,
    assert_same_weights,
    run,
)
from helpers.tiny import tiny_config
from transformers import AutoModelForTokenClassification

from elmo_hf import ElmoModel, ElmoTokenizer
from elmo_hf.tagging import read_tagged

pytestmark = pytest.mark.program

SCRIPT = "run_pos_trainer.py"


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    """A biLM without dropout, and few sentences: the arguments that name them."""
    folder = tmp_path_factory.mktemp("setting")
    torch.manual_seed(0)
    config = tiny_config(hidden_dropout=0.0, classifier_dropout=0.0)
    ElmoModel(config).save_pretrained(folder / "elmo")
    ElmoTokenizer(max_characters_per_token=config.max_characters_per_token).save_pretrained(
        folder / "elmo"
    )
    sentences = list(read_tagged(EXAMPLES / "sample" / "train.conllu"))[:64]
    rows = [{"tokens": one["tokens"], "tags": one["tags"]} for one in sentences]
    file = folder / "sentences.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["--model_name_or_path", folder / "elmo", "--use_cpu", "--logging_steps", 1]
    return [*arguments, "--train_file", file, "--validation_file", file]


def checkpoints(folder) -> list:
    return sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name[11:]))


def losses(folder) -> list[float]:
    state = json.loads((checkpoints(folder)[-1] / "trainer_state.json").read_text())
    return [row["loss"] for row in state["log_history"] if "loss" in row]


@pytest.fixture(scope="module")
def trained(setting, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "tagger"
    run(SCRIPT, [*setting, "--output_dir", folder, "--num_train_epochs", 3])
    return folder


def test_the_best_model_is_saved_and_judged(setting, tmp_path):
    """The best by the largest loss, so that it is not the last one, too."""
    goal = ["--metric_for_best_model", "loss", "--greater_is_better", "True"]
    run(SCRIPT, [*setting, "--output_dir", tmp_path, "--num_train_epochs", 3, *goal])
    model = AutoModelForTokenClassification.from_pretrained(tmp_path)
    assert model.config.label2id["NOUN"] in model.config.id2label
    state = json.loads((checkpoints(tmp_path)[-1] / "trainer_state.json").read_text())
    seen = [row["eval_loss"] for row in state["log_history"] if "eval_loss" in row]
    results = json.loads((tmp_path / "all_results.json").read_text())
    assert results["validation_loss"] == pytest.approx(max(seen)) and max(seen) > seen[-1]


def test_resumed_run_ends_with_the_same_weights(setting, trained, tmp_path):
    resumed = tmp_path / "resumed"
    last = checkpoints(trained)[-1]
    shutil.copytree(trained, resumed, ignore=lambda folder, names: {last.name, "model.safetensors"})
    # the checkpoints that are left keep their weights
    [earlier] = resumed.glob("checkpoint-*")
    shutil.copy(trained / earlier.name / "model.safetensors", earlier)
    # killed while it wrote the next one
    shutil.copytree(last, resumed / last.name, ignore=lambda *_: {"trainer_state.json"})
    run(SCRIPT, [*setting, "--output_dir", resumed, "--num_train_epochs", 3])
    assert_same_weights(resumed, trained)


def test_only_the_same_run_goes_on_in_a_folder(setting, trained):
    arguments = [*setting, "--output_dir", trained, "--num_train_epochs", 3, "--split", "english"]
    assert_only_the_same_run_goes_on(SCRIPT, arguments, trained)
    assert ElmoTokenizer.from_pretrained(trained).word_splitter == "english"


def test_a_run_that_diverges_stops_and_saves_nothing(setting, tmp_path):
    assert_divergence_stops(SCRIPT, [*setting, "--output_dir", tmp_path, "--num_train_epochs", 3])
    assert not list(tmp_path.glob("checkpoint-*"))


@pytest.mark.parametrize(
    "processes, extra",
    [
        (1, ["--per_device_train_batch_size", 4, "--gradient_accumulation_steps", 4]),
        (2, ["--per_device_train_batch_size", 8, "--ddp_backend", "gloo"]),
    ],
)
def test_parts_of_a_batch_sum_to_the_whole(processes, extra, setting, trained, tmp_path):
    """The loss is over the words of the whole batch, in however many parts it comes."""
    run(SCRIPT, [*setting, "--output_dir", tmp_path, "--num_train_epochs", 3, *extra], processes)
    assert losses(tmp_path) == pytest.approx(losses(trained), rel=1e-4)
