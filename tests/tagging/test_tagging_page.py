"""The program on the page about tagging, run as it stands there."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from helpers.launch import EXAMPLES
from helpers.tiny import tiny_config

from elmo_hf import ElmoModel

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tagging.md"


@pytest.fixture(scope="module")
def code() -> str:
    text = PAGE.read_text(encoding="utf-8")
    [found] = re.findall(r"^```python train\.py\n(.*?)^```", text, re.M | re.S)
    return found


def test_program_is_short_and_uses_public_names(code):
    assert len(code.splitlines()) <= 25
    for module, names in re.findall(r"^from (elmo_hf\S*) import (.*)$", code, re.M):
        assert set(names.split(", ")) <= set(importlib.import_module(module).__all__), module


@pytest.mark.program
def test_program_trains_a_tagger_and_tags(code, tmp_path):
    torch.manual_seed(0)
    ElmoModel(tiny_config()).save_pretrained(tmp_path / "my-elmo")
    for name in ("train.conllu", "dev.conllu"):
        shutil.copy(EXAMPLES / "sample" / name, tmp_path)
    (tmp_path / "train.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=tmp_path,
        env=os.environ | {"ACCELERATE_USE_CPU": "true"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    *epochs, last = done.stdout.splitlines()
    [promised] = re.findall(r"print\(.*\)\s+# (.*)", code)
    assert last == promised and "epoch 1: train loss" in "\n".join(epochs)
