"""The rows of the campaign's tables: commands that write, and inputs that may be damaged."""

import fnmatch
import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

# the files of an input by their names in its folder
Files = dict[str, bytes]


class Damage(NamedTuple):
    """An input that was changed, and what may come of it."""

    files: Files
    text: str
    # a result is wrong even if it looks right: the input is a trap
    must_fail: bool = False
    # any result is right, since the change made another valid input
    legal: bool = False

    @property
    def is_hostile(self) -> bool:
        """Nothing that a disk or an interruption does, so a repeated run need not recover."""
        return self.must_fail or self.legal


# takes the files of an input apart with knowledge of their format
Craft = Callable[[Files, Random], Damage]


class Command:
    """
    A program that writes something. It is run with its inputs as the current folder and with
    relative paths only, so that a result does not depend on the place.
    """

    name = ""
    # what the program writes, relative to its folder
    output = "out"
    # further files and folders, as globs, that a finished program may leave
    kept: tuple[str, ...] = ()
    # seconds after which a run counts as hanging
    patience = 60.0
    # the share of the time that it gets, compared with others
    weight = 1.0
    # The output appears whole or not at all. Trainings fill a folder bit by bit.
    atomic = True

    def beside(self) -> AbstractContextManager[Any]:
        """What runs beside all trials, such as a server."""
        return nullcontext()

    def make(self, variant: int) -> None:
        """Writes a tiny valid input into the current folder; every variant differs."""
        raise NotImplementedError

    def arguments(self, output: str) -> list[str]:
        """
        The program and its arguments: `elmo-hf` or a script of examples/. In front of it may be
        variables of its environment, as in `NAME=value`.
        """
        raise NotImplementedError

    def result(self, output: Path) -> Any:
        """What is compared of an output: equal runs have equal results."""
        return {name: digest(content) for name, content in read_files(output).items()}


class Kind(Command):
    """An input that may be damaged. A new one is a subclass, and its line in `table.py`."""

    # the files that are damaged, as globs
    targets: tuple[str, ...] = ("*",)
    crafts: tuple[Craft, ...] = ()
    # A run that ended in an error is repeated, and must then end well: what it found was its own.
    resumes = False
    # whether there is a function to call, and a program to run
    in_process = in_command = True

    def run(self) -> Any:
        """Calls the room's function in this process, in the current folder."""
        raise NotImplementedError

    def doubt(self, result: Any, in_process: bool) -> str | None:
        """Why a result that equals none of the undamaged ones is wrong; None if it is right."""
        return "the result differs from the undamaged one"

    def is_target(self, name: str) -> bool:
        return any(fnmatch.fnmatch(name, pattern) for pattern in self.targets)

    def unpacked_size(self, files: Files) -> int:
        """Bytes that a reader may reasonably hold of these files."""
        return sum(map(len, files.values()))


def digest(content: bytes | np.ndarray) -> str:
    if isinstance(content, np.ndarray):
        content = f"{content.dtype} {content.shape} ".encode() + content.tobytes()
    return hashlib.sha256(content).hexdigest()[:16]


def read_files(path: Path) -> Files:
    """All files of a folder by name, or the single file."""
    if path.is_file():
        return {path.name: path.read_bytes()}
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in files}


def write_files(folder: Path, files: Files) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
