"""The tagging script as a user runs it: results, cache, crashes, two processes, bad input."""

import json
import re

import pytest
import torch
from helpers.launch import (
    EXAMPLES,
    assert_divergence_stops,
    assert_only_the_same_run_goes_on,
    assert_same_weights,
    run,
    run_killed,
)
from helpers.tiny import tiny_config
from transformers import AutoModelForTokenClassification, AutoTokenizer

from elmo_hf import ElmoForTokenClassification, ElmoModel, ElmoTokenizer
from elmo_hf.tagging import read_tagged

pytestmark = pytest.mark.program

SCRIPT = "run_pos.py"


@pytest.fixture(scope="module")
def bilm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bilm") / "elmo"
    torch.manual_seed(0)
    ElmoModel(tiny_config(hidden_dropout=0.1)).save_pretrained(folder)
    width = tiny_config().max_characters_per_token
    ElmoTokenizer(width, word_splitter="moses", language="fr").save_pretrained(folder)
    return folder


def command(bilm, output, *extra) -> list:
    arguments = ["--model_name_or_path", bilm, "--output_dir", output, "--num_train_epochs", 3]
    return [*arguments, "--max_train_samples", 120, "--task_lstm_size", 8, *extra]


def results(folder) -> dict:
    return json.loads((folder / "all_results.json").read_text())


@pytest.fixture(scope="module")
def trained(bilm, tmp_path_factory):
    output = tmp_path_factory.mktemp("trained") / "tagger"
    printed = run(SCRIPT, command(bilm, output))
    tokenizer = ElmoTokenizer.from_pretrained(output)
    # those of the biLM
    assert (tokenizer.word_splitter, tokenizer.language) == ("moses", "fr")
    return output, printed


def test_run_leaves_a_model_figures_predictions_and_a_report(trained):
    folder, printed = trained
    figures = results(folder)
    assert 0.1 < figures["test_accuracy"] < 1 and 0.7 < figures["test_baseline_accuracy"] < 0.9
    assert f"{figures['test_accuracy']:.4f}" in printed and figures["goal"] == "accuracy"
    assert figures["validation_loss"] > 0 and figures["train_loss"] > 0
    gold = list(read_tagged(EXAMPLES / "sample" / "test.conllu"))
    guessed = list(read_tagged(folder / "predictions-test.conllu"))
    pairs = [
        (guess, tag)
        for one, other in zip(guessed, gold, strict=True)
        for guess, tag in zip(one["tags"], other["tags"], strict=True)
    ]
    assert len(pairs) == figures["test_words"]
    right = sum(guess == tag for guess, tag in pairs)
    assert right / len(pairs) == pytest.approx(figures["test_accuracy"])
    page = (folder / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 4 and "http" not in re.sub('data:.*?"', "", page)
    # the folder is a tagger that says what the script wrote
    model = AutoModelForTokenClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    words = [row["tokens"] for row in gold]
    batch = tokenizer(words, is_split_into_words=True, padding=True, return_tensors="pt")
    with torch.inference_mode():
        numbers = model(**batch).logits.argmax(dim=-1)
    for row, guess in zip(numbers, guessed, strict=True):
        tags = [model.config.id2label[number] for number in row[: len(guess["tags"])].tolist()]
        assert tags == guess["tags"]


def test_only_the_same_run_goes_on_in_a_folder(bilm, trained):
    folder, _ = trained
    # the splitter is for later text, and may change
    assert_only_the_same_run_goes_on(SCRIPT, command(bilm, folder, "--split", "english"), folder)
    assert ElmoTokenizer.from_pretrained(folder).word_splitter == "english"


def test_a_run_that_diverges_stops_and_saves_nothing(bilm, tmp_path):
    assert_divergence_stops(SCRIPT, command(bilm, tmp_path))
    assert not (tmp_path / "model.safetensors").exists()


def test_frozen_bilm_stays_and_its_cache_changes_nothing(bilm, trained, tmp_path):
    folder, _ = trained
    run(SCRIPT, command(bilm, tmp_path / "plain", "--no_feature_cache"))
    cached = ElmoForTokenClassification.from_pretrained(folder)
    plain = ElmoForTokenClassification.from_pretrained(tmp_path / "plain")
    for name, weight in ElmoModel.from_pretrained(bilm).named_parameters():
        if not name.startswith("mixes"):
            assert torch.equal(cached.elmo.get_parameter(name), weight)
    for name, weight in cached.named_parameters():
        torch.testing.assert_close(plain.get_parameter(name), weight, rtol=1e-3, atol=1e-4)
    names = [path.name for path in (folder, tmp_path / "plain")]
    texts = [
        (path / "predictions-test.conllu").read_text() for path in (folder, tmp_path / "plain")
    ]
    assert texts[0] == texts[1], names


@pytest.mark.parametrize("processes", [1, 2])
def test_killed_runs_end_with_the_same_weights(bilm, trained, tmp_path, processes):
    expected = trained[0]
    if processes > 1:
        expected = tmp_path / "undisturbed"
        run(SCRIPT, command(bilm, expected), processes)
    folder = tmp_path / "killed"
    arguments = command(bilm, folder, "--checkpointing_steps", 1)
    run_killed(SCRIPT, arguments, folder, times=2, processes=processes, seed=processes)
    assert_same_weights(folder, expected)
    assert results(folder) == results(expected)


def test_two_processes_and_two_machines_follow_one(bilm, tmp_path):
    """Fixed batches, half of each for every process, no dropout: the same but for rounding."""
    common = ["--dropout", 0, "--no_feature_cache", "--num_train_epochs", 1]
    common += ["--max_train_samples", 400, "--checkpointing_steps", 50]
    for name, size, processes, machines in (
        ("one", 8, 1, 1),
        ("processes", 4, 2, 1),
        ("machines", 4, 2, 2),
    ):
        arguments = command(bilm, tmp_path / name, *common, "--per_device_train_batch_size", size)
        run(SCRIPT, arguments, processes, machines)

    def losses(name: str) -> list[float]:
        [state] = torch.load(tmp_path / name / "checkpoint-50" / "states.pt", weights_only=True)
        return state["losses"]

    assert len(losses("one")) == 50 and losses("one")[-1] < losses("one")[0]
    for name in ("processes", "machines"):
        assert losses(name) == pytest.approx(losses("one"), rel=1e-4)
        for figure in ("test_words", "validation_words"):
            assert results(tmp_path / name)[figure] == results(tmp_path / "one")[figure]
        loss = results(tmp_path / name)["validation_loss"]
        assert loss == pytest.approx(results(tmp_path / "one")["validation_loss"], rel=1e-4)


def test_everything_at_once(bilm, tmp_path):
    """Fine-tuning, two mixes, one after the LSTM, word vectors, accumulation, mixed precision."""
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("3 2\nthe 0.5 1\n, -1 2\nthe 9 9\nzebra 1 1\n")
    extra = ["--finetune_bilm", "--num_mixes", 2, "--mix_after_lstm", "--word_vectors", vectors]
    extra += ["--gradient_accumulation_steps", 2, "--mixed_precision", "bf16", "--seed", 1]
    extra += ["--words_per_batch", 200]
    run(SCRIPT, command(bilm, tmp_path / "out", *extra))
    model = ElmoForTokenClassification.from_pretrained(tmp_path / "out")
    assert len(model.elmo.mixes) == 2 and model.config.num_word_vectors == 2
    before = ElmoModel.from_pretrained(bilm).layers[0].forward_cell.input_linear.weight
    assert not torch.equal(model.elmo.layers[0].forward_cell.input_linear.weight, before)


def test_names_are_counted_as_spans_and_tagged_with_a_crf(bilm, tmp_path):
    text = "Ada\tB-person\nLovelace\tI-person\nwrote\tO\n.\tO\n\nLondon\tB-place\nslept\tO\n\n"
    for split in ("train", "dev"):
        (tmp_path / split).write_text(text * 4)
    files = ["--train_file", tmp_path / "train", "--validation_file", tmp_path / "dev"]
    arguments = ["--model_name_or_path", bilm, "--output_dir", tmp_path / "out", *files]
    arguments += ["--task", "ner", "--words_per_batch", 10, "--num_train_epochs", 20]
    arguments += ["--patience", 20, "--dropout", 0, "--learning_rate", 0.02]
    run(SCRIPT, [*arguments, "--crf", "--crf_constraints", "BIO"])
    crf = ElmoForTokenClassification.from_pretrained(tmp_path / "out").crf
    assert crf.scheme == "BIO" and all(part.any() for part in crf.parameters())
    assert "under a CRF" in (tmp_path / "out" / "README.md").read_text()
    figures = results(tmp_path / "out")
    assert figures["validation_f1"] > 0.9
    assert set(figures["validation_tags"]) == {"person", "place"}
    assert figures["goal"] == "f1" and "validation_baseline_f1" in figures
    printed = run("tagging_table.py", [tmp_path / "out"])
    assert f"{100 * figures['validation_f1']:.2f}" in printed


def test_no_local_path_is_in_the_card(bilm, tmp_path):
    """It may be published."""
    private = tmp_path / "private" / "corpus"
    rows = [{"tokens": ["a", "b"], "tags": ["X", "Y"]}] * 4
    for split in ("train", "validation"):
        private.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (private / f"{split}.jsonl").write_text(lines)
    arguments = ["--model_name_or_path", bilm, "--output_dir", tmp_path / "out"]
    arguments += ["--dataset_name", private, "--num_train_epochs", 1]
    run(SCRIPT, arguments)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "corpus" in card and str(tmp_path) not in card


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a/X b/Y\n", "dev, line 1: the tag 'Y' is not in the training text"),
        ("\n", "There is no sentence in"),
        ("a/X\n\nb\n", "line 3: 'b' has no '/' between a word and its tag"),
        ('{"tokens": ["a"], "tags": ["X"]}\n["a"]\n', "line 2: this is not a JSON object"),
        ('{"tokens": [], "tags": []}\n', "There is no word in any sentence of"),
    ],
)
def test_bad_input_is_one_sentence(bilm, tmp_path, text, sentence):
    (tmp_path / "train").write_text("a/X b/X\n")
    (tmp_path / "dev").write_text(text)
    files = ["--train_file", tmp_path / "train", "--validation_file", tmp_path / "dev"]
    arguments = ["--model_name_or_path", bilm, "--output_dir", tmp_path / "out", *files]
    printed = run(SCRIPT, arguments, code=1)
    assert sentence in printed and "Traceback" not in printed


@pytest.mark.parametrize(
    ("option", "value"),
    [("dropout", 1), ("layers", 7), ("layers", "foo"), ("num_train_epochs", 0), ("patience", 0)],
)
def test_bad_values_are_one_sentence(bilm, tmp_path, option, value):
    printed = run(SCRIPT, command(bilm, tmp_path / "out", f"--{option}", value), code=1)
    assert f"Error: `{option}` is" in printed and "Traceback" not in printed
    assert not list(tmp_path.glob("out/*"))


def test_empty_sentences_and_odd_tags_do_no_harm(bilm, tmp_path):
    rows = [
        {"tokens": ["a", "b"], "tags": [r"$\frac$", "_X"]},
        {"tokens": [], "tags": []},
        {"tokens": ["b"], "tags": ["_X"]},
    ]
    for split in ("train", "dev"):
        (tmp_path / split).write_text("\n".join(json.dumps(row) for row in rows * 3))
    files = ["--train_file", tmp_path / "train", "--validation_file", tmp_path / "dev"]
    printed = run(SCRIPT, command(bilm, tmp_path / "out", *files))
    for split in ("train", "dev"):
        notice = f"{split}: sentences without words are left out (3, the first of them at line 2)."
        assert notice in printed
    assert results(tmp_path / "out")["validation_words"] == 9


def test_runs_stand_side_by_side(trained, tmp_path):
    folder, _ = trained
    better = tmp_path / "better"
    better.mkdir()
    figures = results(folder) | {"validation_accuracy": 0.9876}
    (better / "all_results.json").write_text(json.dumps(figures))
    printed = run("tagging_table.py", [better, folder]).splitlines()
    assert [line.split("|")[1].strip() for line in printed[-2:]] == [folder.name, "better"]
    assert "98.76" in printed[-1] and f"{100 * figures['test_accuracy']:.2f}" in printed[-2]
    (better / "all_results.json").unlink()
    assert "the run is not over" in run("tagging_table.py", [better], code=1)
