"""The Python program of docs/pretraining.md, exactly as it is printed there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from elmo_hf import ElmoModel
from elmo_hf.pretraining import ElmoScorer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pretraining.md"


@pytest.fixture(scope="module")
def program() -> str:
    section = PAGE.read_text(encoding="utf-8").partition("\n## In Python\n")[2]
    found = re.match(r".*?^```python\n(.*?)^```", section, re.M | re.S)
    assert found is not None
    return found[1]


def test_it_is_short_and_uses_public_names_only(program):
    assert len(program.splitlines()) <= 25
    for module, names in re.findall(r"^from (elmo_hf\S*) import \(?([^)]*?)\)?$", program, re.M):
        room = __import__(module, fromlist=["__all__"])
        assert {name.strip() for name in names.split(",")} <= set(room.__all__), module


def run(program: str, folder: Path) -> str:
    (folder / "program.py").write_text(program, encoding="utf-8")
    settings = {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "program.py"],
        cwd=folder,
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


@pytest.mark.program
def test_it_trains_a_model_and_resumes(program, tmp_path):
    (tmp_path / "train.txt").write_text("the dog sees a cat .\nthe cat sees a bird .\n" * 200)
    (tmp_path / "test.txt").write_text("the bird sees a dog .\n" * 20)
    assert run(program, tmp_path) == "True\n"
    folder = tmp_path / "tiny-elmo"
    assert {path.name for path in folder.glob("checkpoint-*")} == {"checkpoint-5", "checkpoint-10"}
    assert ElmoModel.from_pretrained(folder).config.cell_size == 256
    seen, unseen = ElmoScorer(folder).score([["the", "dog", "sees"], ["sees", "sees", "bird"]])
    assert seen.perplexity < unseen.perplexity
    # the other half again
    weights = (folder / "model.safetensors").read_bytes()
    shutil.rmtree(folder / "checkpoint-10")
    (folder / "model.safetensors").unlink()
    assert run(program, tmp_path) == "True\n"
    assert (folder / "model.safetensors").read_bytes() == weights


@pytest.mark.program
def test_the_model_in_memory_is_the_saved_one(program, tmp_path):
    for file in ("train.txt", "test.txt"):
        (tmp_path / file).write_text("the dog sees the cat .\n" * 20)
    check = """
from elmo_hf import ElmoForPreTraining
saved = ElmoForPreTraining.from_pretrained("tiny-elmo").state_dict()
print(all(weight.equal(saved[name]) for name, weight in model.state_dict().items()))
print(model.training)
"""
    assert run(program + check, tmp_path) == "True\nTrue\nFalse\n"
