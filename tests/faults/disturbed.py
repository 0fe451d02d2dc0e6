"""Trials of commands: killed at any moment, on full disks, and two at once into one output."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from faults.children import Ended, in_child, run, start_plain, start_warm, wait
from faults.damaged import quiet
from faults.judge import Outcome, failure, judge_program
from faults.kind import Command, Files, read_files, write_files
from faults.scratch import Scratch, names_in

# every so many kills the command is started as a shell does, which takes seconds
PLAIN_EVERY = 20
PAGE = 4096


class Undisturbed:
    """A command with two inputs, and what it makes of them if nothing happens."""

    def __init__(self, command: Command, folder: Path):
        self.command, self.folder = command, folder
        self.valid: list[Files] = []
        self.expected: list[Any] = []
        self.names: list[set[str]] = []
        self.seconds, self.bytes = 0.0, 0
        for variant in (0, 1):
            self.valid.append(in_child(lambda variant=variant: self.make(variant)))  # type: ignore[misc]
            self.measure(self.valid[-1])

    def make(self, variant: int) -> Files:
        scratch = Scratch(self.folder / f"make-{variant}")
        with scratch.entered(), quiet():
            self.command.make(variant)
            return read_files(scratch.work)

    def measure(self, files: Files) -> None:
        scratch = self.scratch("undisturbed", files)
        ended = self.run(scratch, "")
        if ended.code:
            raise RuntimeError(f"Undisturbed, the command fails: {ended.errors}")
        output = scratch.work / self.command.output
        self.expected.append(self.command.result(output))
        self.names.append(names_in(scratch.work))
        self.seconds = ended.seconds
        # a file takes whole pages
        self.bytes = sum(-(-len(data) // PAGE) * PAGE for data in read_files(output).values())

    def scratch(self, name: str, files: Files) -> Scratch:
        scratch = Scratch(self.folder / name)
        write_files(scratch.work, files)
        return scratch

    def run(self, scratch: Scratch, where: str, plain: bool = False) -> Ended:
        """From start to end; `where` is the output's folder."""
        with scratch.entered():
            arguments = self.command.arguments(where + self.command.output)
            return run(arguments, scratch.work, scratch.log, self.command.patience, plain)

    def judge(self, ended: Ended, output: Path, variant: int = 0) -> Outcome:
        """A run that was to succeed, or to say that an earlier one has succeeded."""
        outcome = judge_program(ended)
        if outcome is not None and (outcome.failed or "exists" not in outcome.text):
            return failure(
                f"repeated, it fails: {outcome.group or outcome.text[:60]}", outcome.text
            )
        try:
            found = self.command.result(output)
        except Exception as error:
            return failure("an output that cannot be read", repr(error))
        if found != self.expected[variant]:
            return failure("another result than undisturbed", f"{output.name} differs")
        return Outcome("equal", "")


class Killed(Undisturbed):
    """SIGKILL at a random moment; the repeated command ends as if nothing had happened."""

    def trial(self, draw: Random, number: int) -> tuple[Outcome, str]:
        scratch = self.scratch(f"kill-{number}", self.valid[0])
        plain = number % PLAIN_EVERY == PLAIN_EVERY - 1
        moment = draw.uniform(0, self.seconds * 1.05 + 5 * plain)
        with scratch.entered():
            start = start_plain if plain else start_warm
            arguments = self.command.arguments(self.command.output)
            killed = wait(start(arguments, scratch.work, scratch.log), scratch.log, moment)
        ended = self.run(scratch, "")
        outcome = self.judge(ended, scratch.work / self.command.output)
        if not outcome.failed and (more := names_in(scratch.work) - self.names[0]):
            outcome = failure("something is left behind", f"left: {', '.join(sorted(more)[:4])}")
        scratch.remove()
        happened = "killed" if killed.timed_out else "had ended"
        return outcome, f"{happened} after {moment:.2f} of {self.seconds:.2f} s"


class FullDisk(Undisturbed):
    """A disk that is too small; once it has room, the repeated command ends well."""

    def trial(self, draw: Random, number: int) -> tuple[Outcome, str]:
        scratch = self.scratch(f"disk-{number}", self.valid[0])
        room = int(draw.uniform(0, 1.5) * self.bytes)
        disk = scratch.folder / "disk"
        with small_disk(disk, room):
            first = self.run(scratch, "../disk/")
            outcome = judge_program(first) or self.judge(first, disk / self.command.output)
            if outcome.verdict == "error":
                outcome = self.after_error(scratch, disk, outcome)
        scratch.remove()
        return outcome, f"a disk of {room:,} bytes, where {self.bytes:,} are needed"

    def after_error(self, scratch: Scratch, disk: Path, outcome: Outcome) -> Outcome:
        if self.command.atomic and (disk / self.command.output).exists():
            return failure("an output after an error", outcome.text)
        # a command that resumes keeps what is done, and says so
        if self.command.atomic and "kept" not in outcome.text and names_in(disk):
            left = ", ".join(sorted(names_in(disk))[:4])
            return failure("something is left behind", f"left: {left}")
        enlarge(disk)
        again = self.judge(self.run(scratch, "../disk/"), disk / self.command.output)
        return again if again.failed else outcome


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    """A file system of its own, which root may mount."""
    folder.mkdir()
    # size 0 would be a disk without a limit
    options = f"size={max(size, PAGE)}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def unmount_below(folder: Path) -> None:
    """What a worker that was killed has left mounted."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in mounts:
        if mount.startswith(f"{folder}/"):
            subprocess.run(["umount", "-l", mount], check=False)


def enlarge(folder: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=1g", str(folder)], check=True)


class Race(Undisturbed):
    """Two runs of other inputs into one output: at most one succeeds, and its result is whole."""

    def trial(self, draw: Random, number: int) -> tuple[Outcome, str]:
        folders = [self.scratch(f"race-{number}-{n}", files) for n, files in enumerate(self.valid)]
        shared = folders[0].folder / "shared"
        shared.mkdir()
        pause = draw.choice([0, draw.uniform(0, 0.8 * self.seconds)])
        children = []
        for scratch in folders:
            with scratch.entered():
                path = os.path.relpath(shared / self.command.output, scratch.work)
                arguments = self.command.arguments(path)
                children.append(start_warm(arguments, scratch.work, scratch.log))
            time.sleep(0 if children[1:] else pause)
        ends = [
            wait(child, scratch.log, self.command.patience)
            for child, scratch in zip(children, folders, strict=True)
        ]
        outcome = self.judge_both(ends, shared)
        for scratch in folders:
            scratch.remove()
        return outcome, f"the second {pause:.2f} s after the first"

    def judge_both(self, ends: list[Ended], shared: Path) -> Outcome:
        outcomes = [judge_program(ended) for ended in ends]
        for one in outcomes:
            if one is not None and one.failed:
                return one
        winners = [number for number, one in enumerate(outcomes) if one is None]
        if len(winners) == 2:
            return failure("both succeed, so one result is lost")
        if not winners:
            return failure("neither succeeds", str(outcomes[0]))
        won = self.judge(ends[winners[0]], shared / self.command.output, winners[0])
        return won if won.failed else Outcome("error", "")


def can_mount() -> bool:
    """Whether full disks can be tried here."""
    return os.geteuid() == 0 and shutil.which("mount") is not None
