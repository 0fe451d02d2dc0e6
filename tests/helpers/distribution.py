"""The package as users get it: built from a copy of the clone, installed into a folder."""

import os
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# what does not belong to a source tree without git: what .gitignore says, and what a build adds
IGNORED = (".*", "__pycache__", "build", "dist", "outputs", "*.egg-info", "PKG-INFO", "setup.cfg")
NOT_IGNORED = (".gitignore", ".ci")
# An editable install of the clone that runs the tests would hide what a build has lost.
ALONE = """
import site, sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "__editable__" not in finder.__module__]
site.addsitedir({folder!r})
"""


def source_files(root: Path = ROOT, untracked: bool = True) -> list[str]:
    """
    The files that belong to a source tree. In a clone they are those that git knows and, if
    `untracked`, would add; elsewhere, as in an unpacked source distribution, all but `IGNORED`.
    """
    if (root / ".git").exists():
        command = ["git", "ls-files", "--cached", "-z"]
        command += ["--others", "--exclude-standard"] if untracked else []
        listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
        # a file that was deleted but not yet committed is still listed
        names = [name for name in listed.stdout.split("\0") if (root / name).is_file()]
    else:
        paths = [path.relative_to(root) for path in root.rglob("*") if path.is_file()]
        names = [path.as_posix() for path in paths if not is_ignored(path)]
    return sorted(names)


def is_ignored(path: Path) -> bool:
    parts = [part for part in path.parts if part not in NOT_IGNORED]
    return any(fnmatch(part, pattern) for part in parts for pattern in IGNORED)


def copy_clone(folder: Path) -> Path:
    """Copies the files of this source tree, and so no stale `build/`."""
    for name in source_files():
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
