"""The pretraining script as a user runs it: results, crashes, two processes, bad input."""

import json
import random
from pathlib import Path

import h5py
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
from helpers.tiny import PRETRAINING_SHAPE

from elmo_hf import ElmoForPreTraining, ElmoModel, ElmoState
from elmo_hf.conversion.export_hf_to_allennlp import export
from elmo_hf.pretraining import ElmoScorer
from elmo_hf.pretraining.training import WINDOWS_UNTIL_FRESH, start_afresh
from elmo_hf.pretraining.weight_average import WeightAverage

pytestmark = pytest.mark.program

SCRIPT = "run_pretrain.py"
SHAPE = PRETRAINING_SHAPE | {"num_negative_samples": 10, "hidden_dropout": 0.1}
NOUNS, VERBS = ["dog", "cat", "child", "bird", "teacher"], ["sees", "hears", "likes", "follows"]


def write_text(path: Path, sentences: int, seed: int) -> Path:
    draw = random.Random(seed)
    lines = [
        f"the {draw.choice(NOUNS)} {draw.choice(VERBS)} the "
        + "small " * draw.randrange(3)
        + f"{draw.choice(NOUNS)} {number % 7} ."
        for number in range(sentences)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    (folder / "shape.json").write_text(json.dumps(SHAPE))
    (folder / "full.json").write_text(
        json.dumps(SHAPE | {"num_negative_samples": None, "hidden_dropout": 0.0})
    )
    (folder / "sampled.json").write_text(json.dumps(SHAPE | {"hidden_dropout": 0.0}))
    write_text(folder / "train.txt", 600, seed=0)
    write_text(folder / "valid.txt", 60, seed=1)
    return folder


def command(data: Path, output: Path, *extra, shape: str = "shape.json") -> list[str]:
    arguments = ["--train_file", data / "train.txt", "--validation_file", data / "valid.txt"]
    arguments += ["--test_file", data / "valid.txt", "--config_overrides", data / shape]
    arguments += [
        "--per_device_train_batch_size",
        4,
        "--num_train_epochs",
        2,
        "--learning_rate",
        0.01,
    ]
    return [str(part) for part in (*arguments, "--output_dir", output, *extra)]


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    output = tmp_path_factory.mktemp("trained") / "elmo"
    return output, run(SCRIPT, command(data, output))


def test_run_leaves_a_model_figures_and_a_curve(trained):
    folder, printed = trained
    results = json.loads((folder / "all_results.json").read_text())
    # 22 words, far from evenly distributed
    assert 1 < results["test_perplexity"] < 10
    assert results["test_perplexity"] == pytest.approx(results["validation_perplexity"])
    product = results["test_perplexity_forward"] * results["test_perplexity_backward"]
    assert results["test_perplexity"] == pytest.approx(product**0.5)
    assert results["train_words_per_second"] > 0
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert "full softmax" not in printed and "10 negative samples" in printed
    assert sorted(path.name for path in folder.glob("checkpoint-*")) != []
    assert len(list(folder.glob("checkpoint-*"))) <= 2
    model = ElmoForPreTraining.from_pretrained(folder)
    assert len(model.vocabulary) == model.config.lm_vocab_size
    words = ["the", "dog", "sees", "the", "cat", "3", "."]
    likely, odd = ElmoScorer(model).score([words, words[::-1]])
    assert likely.perplexity < odd.perplexity
    assert ElmoModel.from_pretrained(folder).config.hidden_size == 16


def test_only_the_same_run_goes_on_in_a_folder(data, trained):
    folder, _ = trained
    assert_only_the_same_run_goes_on(SCRIPT, command(data, folder), folder)


@pytest.mark.parametrize("recipe", ["adamw", "bilm"])
def test_a_run_that_diverges_stops_and_saves_nothing(data, tmp_path, recipe):
    assert_divergence_stops(SCRIPT, command(data, tmp_path, "--recipe", recipe))
    assert not (tmp_path / "model.safetensors").exists()


def test_model_goes_out_as_hdf5_with_its_softmax(trained, tmp_path):
    folder, _ = trained
    export(str(folder), output_dir=tmp_path / "hdf5")
    model = ElmoForPreTraining.from_pretrained(folder)
    with h5py.File(tmp_path / "hdf5" / "softmax_weights.hdf5") as file:
        assert torch.equal(torch.from_numpy(file["softmax/W"][...]), model.softmax.weight)
    assert (tmp_path / "hdf5" / "vocab.txt").read_text().split("\n")[0] == "<S>"


@pytest.mark.parametrize("processes", [1, 2])
def test_killed_runs_end_with_the_same_weights(data, trained, tmp_path, processes):
    expected = trained[0]
    if processes > 1:
        expected = tmp_path / "undisturbed"
        run(SCRIPT, command(data, expected), processes)
    folder = tmp_path / "killed"
    arguments = command(data, folder, "--checkpointing_steps", 30)
    run_killed(SCRIPT, arguments, folder, times=3, processes=processes, seed=processes)
    assert_same_weights(folder, expected)


def losses(folder: Path) -> list[float]:
    newest = max(folder.glob("checkpoint-*"))
    # of the run; those of the average and the softmax follow
    state, *_ = torch.load(newest / "states.pt", weights_only=True)
    return [
        entry["train_loss_sampled"] for entry in state["history"] if "train_loss_sampled" in entry
    ]


SAME_NEGATIVES = f"""
import sys
sys.path.insert(0, {str(EXAMPLES)!r})
import torch
from elmo_hf import softmax_elmo
from run_pretrain import main

draw, generator = softmax_elmo.sample_distinct, torch.Generator().manual_seed(0)

def sample_distinct(*arguments):
    # every process draws the same, and nothing else is drawn from this generator
    with torch.random.fork_rng():
        torch.set_rng_state(generator.get_state())
        drawn = draw(*arguments)
        generator.set_state(torch.get_rng_state())
    return drawn

softmax_elmo.sample_distinct = sample_distinct
main()
"""


@pytest.mark.parametrize(
    "shape, machines, recipe",
    [("full.json", 1, "adamw"), ("sampled.json", 2, "adamw"), ("sampled.json", 1, "bilm")],
)
def test_two_processes_on_one_or_two_machines_follow_one(data, tmp_path, shape, machines, recipe):
    """Half the batch each, no dropout, the same negative samples: the same run but for rounding."""
    script = tmp_path / "script.py"
    script.write_text(SAME_NEGATIVES)
    found = []
    for number, (size, processes) in enumerate(((8, 1), (4, 2))):
        output = tmp_path / str(number)
        extra = ["--max_train_steps", 50, "--per_device_train_batch_size", size]
        extra += ["--recipe", recipe]
        # two processes are on one machine each, or both on one
        there = 1 if processes == 1 else machines
        run(script, command(data, output, *extra, shape=shape), processes, there)
        results = json.loads((output / "all_results.json").read_text())
        found.append([*losses(output), results["test_perplexity"]])
    assert len(found[0]) > 2
    assert found[1] == pytest.approx(found[0], rel=1e-4)


def test_weights_are_averaged_over_the_last_part_of_the_steps():
    model = torch.nn.Linear(1, 1, bias=False)
    average, none = WeightAverage(model, 0.125), WeightAverage(model, 0.0)
    seen = []
    for step in range(1, 4001):
        with torch.no_grad():
            model.weight.fill_(step)
        average.update(step)
        none.update(step)
        if step % 10 == 0:
            with average.applied():
                seen.append(model.weight.item())
            with none.applied():
                assert model.weight.item() == step
    assert model.weight.item() == 4000
    # as long as an eighth of the steps is less than one update, the last weights
    assert seen[:8] == [10, 20, 30, 40, 50, 60, 70, 80] and seen[8] < 90
    # weights that grow by one a step lag behind by how far the mean reaches back
    assert 4000 - seen[-1] == pytest.approx(4000 / 9, rel=0.05)
    saved = {name: [part.clone() for part in parts] for name, parts in average.state_dict().items()}
    again = WeightAverage(model, 0.125)
    again.load_state_dict(saved)
    with again.applied():
        assert model.weight.item() == seen[-1]


def test_rows_start_afresh_in_turn():
    fresh = []
    for step in range(WINDOWS_UNTIL_FRESH):
        state = ElmoState(torch.ones(4, 2), torch.ones(4, 3))
        start_afresh(state, step, range(2, 6))
        rows = [row for row in range(4) if not state.outputs[row].any()]
        assert rows == [row for row in range(4) if not state.cells[row].any()]
        fresh += rows
    assert sorted(fresh) == [0, 1, 2, 3]
    assert start_afresh(None, 0, range(4)) is None


def test_training_goes_on_from_a_model(data, trained, tmp_path):
    folder, _ = trained
    before = json.loads((folder / "all_results.json").read_text())
    again = ["--model_name_or_path", folder, "--num_train_epochs", 1]
    run(SCRIPT, command(data, tmp_path / "more", *again))
    after = json.loads((tmp_path / "more" / "all_results.json").read_text())
    assert after["test_perplexity"] < 1.1 * before["test_perplexity"]
    # other words: the biLM goes on, its softmax starts anew
    words = tmp_path / "vocab.txt"
    words.write_text("<S>\n</S>\n<UNK>\nthe\ndog\n")
    run(SCRIPT, command(data, tmp_path / "other", *again, "--vocab_file", words))
    assert ElmoForPreTraining.from_pretrained(tmp_path / "other").softmax.out_features == 5


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (["--train_file", "nowhere.txt"], "There is no file 'nowhere.txt'."),
        (["--train_file", "EMPTY"], "There is no sentence in"),
        (["--train_file", "LATIN"], "is not UTF-8"),
        (["--vocab_file", "SHORT"], "The vocabulary has no line </S>, <UNK>"),
        (["--max_train_steps", "0"], "`max_train_steps` is 0 but must be at least 1."),
        (["--config_overrides", "MISSPELT"], "ElmoConfig has no field 'cell_sise'; correct it."),
    ],
)
def test_bad_input_is_one_sentence(data, tmp_path, change, sentence):
    (tmp_path / "EMPTY").write_text("\n")
    (tmp_path / "LATIN").write_bytes(b"caf\xe9\n")
    (tmp_path / "SHORT").write_text("<S>\n")
    (tmp_path / "MISSPELT").write_text('{"cell_sise": 8}')
    change = [str(tmp_path / part) if part.isupper() else part for part in change]
    printed = run(SCRIPT, command(data, tmp_path / "out", *change), code=1)
    assert sentence in printed and "Traceback" not in printed
