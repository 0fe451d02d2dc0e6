"""The programs people use today, each in an environment of its own, made once from PyPI.

The environments are in `.cache/peers/`; nothing of a peer enters the project. What an environment
holds is in `peers/NAME.txt`. Some packages are installed without what they ask for: for AllenNLP it
no longer installs, and tf_keras asks for a second TensorFlow.
"""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = Path(__file__).resolve().parent / "peers"
CACHE = ROOT / ".cache" / "peers"
PYTHON = "bin/python"
ALONE = {
    "allennlp": ["allennlp==2.10.1"],
    "simple_elmo": ["simple_elmo==0.9.2", "tf_keras==2.21.0"],
}


def requirements(name: str) -> str:
    """Everything that decides what is installed."""
    listed = (PROGRAMS / f"{name}.txt").read_text(encoding="utf-8")
    if "constraints.txt" in listed:
        listed += (ROOT / "constraints.txt").read_text(encoding="utf-8")
    return "\n".join([*ALONE[name], listed])


def environment(name: str) -> Path:
    """The folder of a peer's environment; made if it is missing or its requirements changed."""
    folder = CACHE / name
    installed = folder / "installed.txt"
    if not installed.exists() or installed.read_text(encoding="utf-8") != requirements(name):
        print(f"Installing {ALONE[name][0]} into {folder}.", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        install(folder, "--requirement", str(PROGRAMS / f"{name}.txt"))
        install(folder, "--no-deps", *ALONE[name])
        installed.write_text(requirements(name), encoding="utf-8")
    return folder


def install(folder: Path, *what: str) -> None:
    command = [str(folder / PYTHON), "-m", "pip", "install", "--quiet", *what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = (errors or done.stderr.splitlines() or ["it did not say why"])[-1]
        raise SystemExit(
            f"pip could not install {what[-1]}, which the benchmark needs ({reason}); check the "
            "connection to PyPI and run it again."
        )


def peer(name: str, *arguments) -> list:
    """The command that runs a peer."""
    return [environment(name) / PYTHON, PROGRAMS / f"{name}_peer.py", *arguments]


def package_of(name: str) -> Path:
    """Where a peer's own package is installed."""
    return next(environment(name).glob(f"lib/python*/site-packages/{name}"))
