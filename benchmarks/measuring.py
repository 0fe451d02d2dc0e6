"""Programs and functions measured in turn: their figures by side, by name and by round."""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from tempfile import TemporaryFile

from tqdm.auto import tqdm

# side: name of a figure: one number per round
Figures = dict[str, dict[str, list[float]]]
Measure = Callable[[], dict[str, float]]


def run(command: list) -> tuple[str, float]:
    """What a program prints, and its peak memory in MB."""
    words = [*map(str, command)]
    with (
        TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            said = errors.read().strip()[-2000:] or f"It ended with status {process.returncode}."
            raise SystemExit(f"{shlex.join(words)} failed:\n{said}")
    # in bytes on macOS
    return printed, usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e6 / 1024)


def last_line(command: list) -> dict[str, float]:
    """The figures that a program prints as JSON in its last line, and its peak memory."""
    printed, memory = run(command)
    return {**json.loads(printed.strip().splitlines()[-1]), "peak_rss_mb": memory}


def alternate(sides: dict[str, Measure], rounds: int) -> Figures:
    """In a round every side is measured once; every second round begins with the last side."""
    figures: Figures = {side: {} for side in sides}
    turns = [
        side for number in range(rounds) for side in (sides if number % 2 == 0 else [*sides][::-1])
    ]
    for side in tqdm(turns, desc="measuring", unit="run", leave=False, disable=None):
        for name, value in sides[side]().items():
            figures[side].setdefault(name, []).append(value)
    return figures


def timed(work: Callable[[], object], words: int) -> Measure:
    """Work of this process that reads so many words."""

    def measure() -> dict[str, float]:
        started = time.perf_counter()
        work()
        return {"words": words, "words_per_second": words / (time.perf_counter() - started)}

    return measure


def report(figures: Figures) -> None:
    """The last line of every program that measures; `run.py` reads it."""
    print(json.dumps(figures))
