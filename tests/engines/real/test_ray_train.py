"""Ray Train around the pretraining script: the run of accelerate's launcher, also after a kill."""

import json
import re
import time

import psutil
import pytest
from helpers.launch import EXAMPLES, assert_same_weights, kill, run, start
from helpers.tiny import PRETRAINING_SHAPE

LAUNCHER, SCRIPT = "cluster/train_with_ray.py", "run_pretrain.py"


@pytest.fixture(scope="module")
def arguments(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    words = ["the", "small", "dog", "cat", "sees", "hears", "a", "bird", "."]
    lines = [" ".join(words[(n * k) % 9] for k in range(1, 3 + n % 7)) for n in range(400)]
    (folder / "train.txt").write_text("\n".join(lines) + "\n")
    (folder / "shape.json").write_text(json.dumps(PRETRAINING_SHAPE | {"hidden_dropout": 0.1}))
    settings = ["--train_file", folder / "train.txt", "--test_file", folder / "train.txt"]
    settings += ["--config_overrides", folder / "shape.json", "--max_train_steps", 150]
    settings += ["--per_device_train_batch_size", 4, "--window_size", 5]
    return [*settings, "--checkpointing_steps", 25]


@pytest.fixture(scope="module")
def expected(arguments, tmp_path_factory):
    """Of two processes that accelerate's launcher has started."""
    folder = tmp_path_factory.mktemp("expected")
    run(SCRIPT, [*arguments, "--output_dir", folder], processes=2)
    return folder


@pytest.fixture
def start_with_ray(tmp_path):
    started = []

    def start_one(*arguments, failures=1):
        options = ["--num_workers", 2, "--storage_path", tmp_path / "ray"]
        options += ["--max_failures", failures, EXAMPLES / SCRIPT]
        # a cluster of its own, even if this machine has one
        started.append(start(LAUNCHER, [*options, *arguments], RAY_ADDRESS="local"))
        return started[-1]

    yield start_one
    for process in started:
        if process.poll() is None:
            kill(process)


def workers_of(process):
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if "RayTrainWorker" in "".join(child.cmdline())]


def test_two_workers_end_like_two_processes(arguments, expected, tmp_path, start_with_ray):
    process = start_with_ray(*arguments, "--output_dir", tmp_path / "elmo")
    printed, _ = process.communicate(timeout=600)
    assert process.returncode == 0, printed
    assert_same_weights(tmp_path / "elmo", expected)
    found, wanted = (
        json.loads((folder / "all_results.json").read_text())
        for folder in (tmp_path / "elmo", expected)
    )
    assert found["test_perplexity"] == wanted["test_perplexity"]


def test_a_killed_worker_resumes_from_the_checkpoint(arguments, expected, tmp_path, start_with_ray):
    process = start_with_ray(*arguments, "--output_dir", tmp_path / "elmo")
    deadline = time.time() + 400
    while not list((tmp_path / "elmo").glob("checkpoint-*")):
        assert process.poll() is None and time.time() < deadline
        time.sleep(0.05)
    victims = workers_of(process)
    assert len(victims) == 2
    victims[1].kill()
    printed, _ = process.communicate(timeout=600)
    assert process.returncode == 0, printed
    assert_same_weights(tmp_path / "elmo", expected)


def test_an_error_of_the_script_is_printed_and_ends_the_run(tmp_path, start_with_ray):
    folder = tmp_path / "elmo"
    options = ["--train_file", tmp_path / "no.txt", "--output_dir", folder]
    process = start_with_ray(*options, failures=0)
    printed, _ = process.communicate(timeout=600)
    assert process.returncode == 1, printed
    assert re.search(r"Error: There is no file '\S+no.txt'", printed)
    assert printed.splitlines()[-1].startswith("Error: The training failed")
