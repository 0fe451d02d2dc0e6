"""The folder of a trial, and what is left in it."""

import fnmatch
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults.judge import Outcome, failure


class Scratch:
    """
    A trial's folder: `work` is the current folder of what is tried, `tmp` its folder for temporary
    files, `log` its output.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.work, self.tmp, self.log = folder / "work", folder / "tmp", folder / "log"
        shutil.rmtree(folder, ignore_errors=True)
        self.work.mkdir(parents=True)
        self.tmp.mkdir()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """The current folder, and that of temporary files, of this process."""
        os.environ["TMPDIR"] = str(self.tmp)
        folder, home = os.getcwd(), tempfile.tempdir
        tempfile.tempdir = str(self.tmp)
        os.chdir(self.work)
        try:
            yield
        finally:
            os.chdir(folder)
            tempfile.tempdir = home

    def leftovers(self, known: set[str], kept: tuple[str, ...]) -> Outcome | None:
        """What is there besides known files and those that may be kept."""
        found = names_in(self.work) - known
        found = {name for name in found if not any(fnmatch.fnmatch(name, glob) for glob in kept)}
        found |= {f"TMPDIR/{name}" for name in names_in(self.tmp) if not is_librarys(name)}
        if not found:
            return None
        return failure("something is left behind", f"left behind: {', '.join(sorted(found)[:5])}")

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def names_in(folder: Path) -> set[str]:
    """All files in a folder, and folders without files, by name."""
    paths = [path for path in folder.rglob("*") if not path.is_dir() or not any(path.iterdir())]
    return {path.relative_to(folder).as_posix() for path in paths}


def is_librarys(name: str) -> bool:
    """Caches that torch and matplotlib make for a user."""
    return name.startswith(("torchinductor", "matplotlib"))
