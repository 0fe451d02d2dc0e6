"""The package as users get it: built from a copy of the clone, installed into a folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
needs_git = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is not a git clone")
# An editable install of the clone that runs the tests would hide what a build has lost.
ALONE = """
import site, sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "__editable__" not in finder.__module__]
site.addsitedir({folder!r})
"""


def copy_clone(folder: Path) -> Path:
    """Copies what git knows or would add, and so no stale `build/`."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in names.rstrip("\0").split("\0"):
        # a file that was deleted but not yet committed is still listed
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def build(clone: Path, folder: Path) -> tuple[Path, Path]:
    """The source distribution, and the wheel that is built from it."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, clone]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (source,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return source, wheel


def install(folder: Path, *what: str | Path) -> Path:
    """Installs into a folder that `environment` puts on Python's path."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    options = ["--no-deps", "--no-build-isolation", "--target", folder]
    subprocess.run([*pip, *options, *what], check=True)
    (folder / "sitecustomize.py").write_text(ALONE.format(folder=str(folder)))
    return folder


def environment(folder: Path) -> dict[str, str]:
    """Of a program that finds the installation in this folder and no other, and no network."""
    return os.environ | {"PYTHONPATH": str(folder), "HF_HUB_OFFLINE": "1"}
