"""What counts as held: one sentence and nothing left behind, or the right result."""

import json
import re
import traceback
from pathlib import Path
from typing import NamedTuple

from faults.children import Ended

# bytes that a trial may take besides a multiple of its input
MEMORY, TIMES = 64 << 20, 4
OURS = ("/elmo_hf/", "/conversion/", "/examples/")


class Outcome(NamedTuple):
    """How a trial ended."""

    # "error" and "equal" are held
    verdict: str
    # the sentence, or what is wrong
    text: str
    # of a failure: what it has in common with others of its class
    group: str = ""

    @property
    def failed(self) -> bool:
        return self.verdict == "failed"


def failure(group: str, text: str = "") -> Outcome:
    return Outcome("failed", text or group, group)


def judge_exception(error: BaseException) -> Outcome:
    """An error of a function: a ValueError or OSError whose message is one sentence."""
    place = place_of(traceback.extract_tb(error.__traceback__))
    kind = type(error).__name__
    text = " ".join(f"{kind}: {error}".split())[:400]
    if not isinstance(error, (ValueError, OSError)):
        return failure(f"{kind} {place}", text)
    if not str(error).strip():
        return failure(f"{kind} without a message {place}", text)
    if isinstance(error, OSError) and error.errno is not None and error.filename is None:
        return failure(f"the system's message without a file {place}", text)
    # libraries' own, which name neither the file nor a remedy
    if isinstance(error, (UnicodeError, json.JSONDecodeError)):
        return failure(f"the library's {kind} {place}", text)
    if len(str(error).strip().splitlines()) > 1:
        return failure(f"{kind} of several lines {place}", text)
    return Outcome("error", text)


def place_of(frames: list[traceback.FrameSummary]) -> str:
    """The innermost frame in our own code."""
    own = [frame for frame in frames if any(part in frame.filename for part in OURS)]
    if not own:
        return "outside the package"
    return f"in {Path(own[-1].filename).name}: {own[-1].name}, line {own[-1].lineno}"


def judge_program(ended: Ended) -> Outcome | None:
    """A program that failed: its exit code and its one sentence. None if it ended well."""
    # without the marks that move a terminal's cursor
    errors = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", ended.errors)
    last = " ".join(errors.split())[-250:]
    if ended.timed_out:
        return failure("hangs", f"no end after {ended.seconds:.0f} s: {last}")
    if ended.code < 0:
        return failure(f"died by signal {-ended.code}", last)
    if "Traceback (most recent call last)" in errors:
        return failure(f"traceback: {error_of(errors)} {place_in(errors)}", last)
    if ended.code == 0:
        return None
    if ended.code == 2 and errors.strip():
        return Outcome("error", last)
    # progress bars end with a carriage return
    sentences = [line for line in re.split(r"[\r\n]", errors) if line.startswith("Error:")]
    if ended.code != 1 or len(sentences) != 1 or len(sentences[0]) < 12:
        return failure(f"exit code {ended.code} with {len(sentences)} sentences", last)
    after = re.split(r"[\r\n]", errors.partition(sentences[0])[2])
    # transformers' bars are drawn once more at the end
    if [line for line in after if line.strip() and not re.search(r"\d+%\|", line)]:
        return failure(f"more than one line {group_of(sentences[0])}", last)
    if re.fullmatch(r"Error: \[Errno \d+\] [^:']*", sentences[0]):
        return failure("the system's message without a file", last)
    return Outcome("error", sentences[0])


def error_of(errors: str) -> str:
    """The name of the exception, which is on the last line that is not indented."""
    lines = [line for line in errors.splitlines() if re.match(r"[\w.]+(: |$)", line)]
    return lines[-1].partition(":")[0].rpartition(".")[2] if lines else "?"


def place_in(errors: str) -> str:
    frames = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', errors)
    own = [frame for frame in frames if any(part in frame[0] for part in OURS)]
    return f"in {Path(own[-1][0]).name}: {own[-1][2]}, line {own[-1][1]}" if own else ""


def group_of(text: str) -> str:
    """A message without the values in it."""
    return re.sub(r"'[^']*'|\d+", "…", text)[:60]


def judge_memory(peak: int | None, usual: int, unpacked: int) -> Outcome | None:
    """`usual` is what the undamaged input takes, such as the libraries that a program loads."""
    allowed = usual + MEMORY + TIMES * unpacked
    if peak is None or peak <= allowed:
        return None
    return failure(
        "too much memory", f"{peak >> 20} MiB of memory for an input of {unpacked:,} bytes"
    )
