"""Trials of damaged inputs: by a call of the room's function, and by the real command."""

import contextlib
import io
from pathlib import Path
from random import Random
from typing import Any

from faults.children import Memory, in_child, run
from faults.corruptions import damage_input
from faults.judge import Outcome, failure, judge_exception, judge_memory, judge_program
from faults.kind import Damage, Files, Kind, read_files, write_files
from faults.scratch import Scratch

# every so many trials the command is started as a shell does, which takes seconds
PLAIN_EVERY = 100


class Damaged:
    """A kind with its undamaged inputs and their results."""

    def __init__(self, kind: Kind, folder: Path, in_process: bool):
        self.kind, self.folder, self.in_process = kind, folder, in_process
        self.valid: list[Files] = [in_child(lambda n=n: self.make(n)) for n in (0, 1)]  # type: ignore[misc]
        found = [in_child(lambda files=files: self.undamaged(files)) for files in self.valid]  # type: ignore[misc]
        self.expected = [result for result, _ in found]
        self.usual_peak = max(peak for _, peak in found)

    def make(self, variant: int) -> Files:
        scratch = Scratch(self.folder / f"make-{variant}")
        with scratch.entered(), quiet():
            self.kind.make(variant)
            return read_files(scratch.work)

    def undamaged(self, files: Files) -> tuple[Any, int]:
        """The result of an undamaged input, and the memory that it takes."""
        scratch = Scratch(self.folder / "undamaged")
        write_files(scratch.work, files)
        if self.in_process:
            # a second call needs less; trials are compared with that one
            with scratch.entered(), quiet():
                self.kind.run()
            write_files(Scratch(scratch.folder).work, files)
            with scratch.entered(), quiet():
                memory = Memory()
                return self.kind.run(), memory.peak()
        with scratch.entered():
            ended = run(self.command(), scratch.work, scratch.log, 4 * self.kind.patience)
            if ended.code:
                raise RuntimeError(f"The undamaged input fails: {ended.errors}")
            return self.kind.result(Path(self.kind.output)), ended.peak or 0

    def command(self) -> list[str]:
        return self.kind.arguments(self.kind.output)

    def trial(self, draw: Random, number: int) -> tuple[Outcome, str]:
        damage = damage_input(self.kind, self.valid, draw)
        scratch = Scratch(self.folder / f"trial-{number}")
        write_files(scratch.work, damage.files)
        with scratch.entered():
            outcome = self.once(damage, scratch, number)
            if outcome.verdict == "error" and self.kind.resumes and not damage.is_hostile:
                again = self.once(damage, scratch, number)
                if again.verdict != "equal":
                    what = f"{outcome.text}; repeated: {again.text}"
                    outcome = failure("the repeated run does not end well", what)
        scratch.remove()
        return outcome, damage.text

    def once(self, damage: Damage, scratch: Scratch, number: int) -> Outcome:
        begin = self.call if self.in_process else self.start
        outcome, peak = begin(damage, scratch, number)
        output = Path(self.kind.output)
        kept = self.kind.kept
        if outcome.verdict == "equal" or not self.kind.atomic:
            kept = (*kept, self.kind.output, f"{self.kind.output}/*")
        elif not outcome.failed and output.exists() and not self.kind.resumes:
            return failure("an output after an error", f"{outcome.text}, but there is an output")
        if outcome.failed:
            return outcome
        known = set(damage.files)
        size = self.kind.unpacked_size(damage.files)
        return (
            judge_memory(peak, self.usual_peak, size) or scratch.leftovers(known, kept) or outcome
        )

    def call(self, damage: Damage, scratch: Scratch, number: int) -> tuple[Outcome, int | None]:
        memory = Memory()
        try:
            with quiet():
                result = self.kind.run()
            outcome = self.judge(result, damage)
        except BaseException as error:
            outcome = judge_exception(error)
        return outcome, memory.peak()

    def start(self, damage: Damage, scratch: Scratch, number: int) -> tuple[Outcome, int | None]:
        plain = number % PLAIN_EVERY == PLAIN_EVERY - 1
        ended = run(self.command(), scratch.work, scratch.log, self.kind.patience, plain)
        outcome = judge_program(ended)
        if outcome is None:
            try:
                outcome = self.judge(self.kind.result(Path(self.kind.output)), damage)
            except Exception as error:
                outcome = failure("an output that cannot be read", repr(error))
        return outcome, ended.peak

    def judge(self, result: Any, damage: Damage) -> Outcome:
        if damage.must_fail and result not in self.expected:
            return failure("a trap was not noticed", f"a trap was not noticed: {damage.text}")
        if damage.legal or result in self.expected:
            return Outcome("equal", "")
        doubt = self.kind.doubt(result, self.in_process)
        return Outcome("equal", "") if doubt is None else failure(doubt)


@contextlib.contextmanager
def quiet():
    """Progress bars and reports of functions are of no interest."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
