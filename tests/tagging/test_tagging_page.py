"""The program on the page about tagging, run as it stands there."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import torch
from helpers.launch import EXAMPLES
from helpers.tiny import tiny_config

from elmo_hf import ElmoModel

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tagging.md"


def test_program_of_the_page_trains_a_tagger_and_tags(tmp_path):
    [code] = re.findall(r"^```python train\.py\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    assert len(code.splitlines()) <= 25
    torch.manual_seed(0)
    ElmoModel(tiny_config()).save_pretrained(tmp_path / "my-elmo")
    for name in ("train.conllu", "dev.conllu"):
        shutil.copy(EXAMPLES / "sample" / name, tmp_path)
    (tmp_path / "train.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    *epochs, last = done.stdout.splitlines()
    [promised] = re.findall(r"print\(.*\)\s+# (.*)", code)
    assert last == promised and "epoch 1: train loss" in "\n".join(epochs)
