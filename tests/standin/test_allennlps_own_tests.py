"""AllenNLP 0.9.0's own tests of its ELMo, unchanged, through the stand-in."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.references import allennlp_tests

TESTS = Path(__file__).resolve().parents[1]
# what the three files hold
COUNT = 28


@pytest.mark.program
def test_all_of_them_pass():
    command = [sys.executable, "-m", "pytest", "-p", "elmo_hf.standin", "-p", "standin.scaffolding"]
    # their warnings are not ours; their files are in no package
    command += ["--import-mode=importlib", "-q", "-rs", "-o", "filterwarnings=", "-p", "no:xdist"]
    run = subprocess.run(
        [*command, *map(str, allennlp_tests())],
        cwd=TESTS.parent,
        env=os.environ | {"PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert re.search(rf"^{COUNT} passed(, \d+ warnings?)? in", run.stdout, re.MULTILINE), run.stdout
