"""The campaign notices what it is for, and a few of its trials; `make test-faults` runs it all."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from faults.damaged import Damaged
from faults.judge import Outcome
from faults.kind import Kind
from faults.report import Cell, append, load, table
from faults.workers import Done, run_trials

# a test may run among threads; nothing here uses them after a fork
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


class Numbers(Kind):
    """A toy: a file of numbers, and a reader with a fault for each number of a trial."""

    name = "numbers"

    def make(self, variant: int) -> None:
        Path("numbers.txt").write_text("1 2 3 4 5 6 7 8 9")

    def run(self) -> Any:
        content = Path("numbers.txt").read_bytes()
        if content == b"1 2 3 4 5 6 7 8 9":
            return 45
        return self.read_damaged()

    def read_damaged(self) -> Any:
        raise ValueError("The file is damaged; make it anew.")


def failing(act) -> type[Numbers]:
    return type("Failing", (Numbers,), {"read_damaged": lambda self: act()})


def leave_file() -> None:
    Path("left.txt").touch()
    raise ValueError("The file is damaged.")


def eat_memory() -> None:
    b"x" * (600 << 20)
    raise ValueError("The file is damaged.")


@pytest.mark.parametrize(
    "kind, group",
    [
        (Numbers, ""),
        (failing(lambda: int(None)), "TypeError outside the package"),
        (failing(lambda: int(b"\xff".decode())), "the library's UnicodeDecodeError"),
        (failing(lambda: 44), "the result differs from the undamaged one"),
        (failing(leave_file), "something is left behind"),
        (failing(eat_memory), "too much memory"),
        (failing(lambda: os.kill(os.getpid(), signal.SIGKILL)), "the interpreter died (-9)"),
        (failing(lambda: time.sleep(60)), "hangs"),
    ],
)
def test_a_fault_is_noticed_and_counted(kind, group, tmp_path):
    damaged = Damaged(kind(), tmp_path, in_process=True)

    def trial(number: int) -> tuple[Outcome, str]:
        return damaged.trial(Random(number), number)

    # only what hangs is waited for; a busy machine may take a while for the others
    seconds = 1 if group == "hangs" else 30
    done = list(run_trials(trial, range(3), jobs=2, seconds=seconds))
    assert sorted(one.number for one in done) == [0, 1, 2]
    for one in done:
        if group:
            assert one.outcome.failed and one.outcome.group.startswith(group), one
        else:
            assert one.outcome.verdict == "error", one


def test_counts_of_several_parts_add_up(tmp_path):
    for seed in (1, 2):
        cell = Cell("hdf5", "process", seed)
        cell.add(Done(7, Outcome("error", "The file is damaged."), ""))
        cell.add(Done(8, Outcome("failed", "KeyError", "KeyError"), "1 bit flipped"))
        append(tmp_path / "results.jsonl", [cell])
    cells = load(tmp_path / "results.jsonl")
    assert "| hdf5 | process | 4 | 2 | 0 | 2 |" in table(cells)
    assert cells[1].failures[0]["repro"].endswith("--seed 2 --only hdf5 --mode process --trial 8")


@pytest.mark.program
def test_some_trials_of_the_campaign_hold():
    script = Path(__file__).with_name("campaign.py")
    rows = ["hdf5", "text", "ElmoTokenizer"]
    options = ["--trials", "4", "--jobs", "2", "--mode", "process", "command", "thread"]
    done = subprocess.run(
        [sys.executable, script, *options, "--only", *rows], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| text | command | 4 |" in done.stdout
