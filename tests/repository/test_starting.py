"""Every way to start a program works in a clone and elsewhere, installed from a wheel or editable.

A clone's `elmo_hf` has the conversion beside it, a wheel's has it inside; Python prefers the folder
in which it is started.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.distribution import build, copy_clone, environment, install

pytestmark = pytest.mark.program

PYTHON = sys.executable
LAUNCH = [PYTHON, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "1"]
LAUNCH += ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    return copy_clone(tmp_path_factory.mktemp("starting") / "clone")


@pytest.fixture(scope="module")
def sites(clone):
    """The same package installed in two ways, each into a folder of its own."""
    _, wheel = build(clone, clone.parent / "dist")
    return {
        "wheel": install(clone.parent / "wheel", wheel),
        "editable": install(clone.parent / "editable", "--editable", clone),
    }


def start(commands: list[list], folder: Path, site: Path) -> list[str]:
    """What the programs print; they run side by side, since most of their time is importing."""
    started = [
        subprocess.Popen(
            [*map(str, command)],
            cwd=folder,
            env=environment(site) | {"OMP_NUM_THREADS": "1", "COLUMNS": "100"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    outputs = [process.communicate(timeout=120) for process in started]
    for process, (_, errors) in zip(started, outputs, strict=True):
        assert process.returncode == 0, errors
    return [printed for printed, _ in outputs]


def test_modules_in_a_clone_beside_a_wheel(sites, clone, tmp_path):
    """Python finds the clone's folder first, which lacks what the wheel has inside."""
    (tmp_path / "text.txt").write_text("Will you book the book ?\n")
    embed = ["embed", "--input", tmp_path / "text.txt", "--output", tmp_path / "vectors.npy"]
    commands = [[PYTHON, "-m", "elmo_hf", "info"], [*LAUNCH, "-m", "elmo_hf", *embed]]
    info, _ = start(commands, clone, sites["wheel"])
    assert "biLSTM layer 2" in info
    assert len(np.load(tmp_path / "vectors.npy")) == 6


# A script's own folder is on Python's path, and not the one it is started in.
@pytest.mark.parametrize("kind", ["wheel", "editable"])
def test_programs_and_scripts_elsewhere(kind, sites, clone, tmp_path):
    commands = [
        [sites[kind] / "bin" / "elmo-hf", "info"],
        [PYTHON, clone / "conversion" / "convert_allennlp_to_hf.py", "--help"],
        [PYTHON, clone / "examples" / "embed_sentences.py"],
    ]
    info, converter, example = start(commands, tmp_path, sites[kind])
    assert "biLSTM layer 2" in info
    assert "options.json" in converter
    assert "layer 0" in example and "cosine of 'bank': 1.000" in example


@pytest.mark.parametrize("place", ["clone", "elsewhere"])
def test_module_of_an_editable_install(place, sites, clone, tmp_path):
    folder = clone if place == "clone" else tmp_path
    [info] = start([[PYTHON, "-m", "elmo_hf", "info"]], folder, sites["editable"])
    assert "biLSTM layer 2" in info
