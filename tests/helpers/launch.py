"""Starts the training scripts as a user does, and kills them as a machine does."""

import contextlib
import importlib.util
import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import psutil
import torch
from safetensors.torch import load_file

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def start(
    script: str | Path,
    arguments: list,
    processes: int = 1,
    machines: int = 1,
    rank: int = 0,
    port: int = 0,
    **environment: str,
) -> subprocess.Popen:
    """
    On a CPU, one thread a process; several processes through accelerate's launcher, which every
    machine starts for itself.
    """
    settings = {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", **environment}
    launcher = [sys.executable]
    if processes > 1:
        launcher += ["-m", "accelerate.commands.launch", "--multi_gpu"]
        launcher += ["--num_processes", str(processes), "--num_machines", str(machines)]
        launcher += ["--mixed_precision", "no", "--dynamo_backend", "no"]
        launcher += ["--main_process_port", str(port or free_port())]
    if machines > 1:
        launcher += ["--machine_rank", str(rank), "--rdzv_backend", "static"]
        launcher += ["--main_process_ip", "127.0.0.1"]
    return subprocess.Popen(
        [*launcher, str(EXAMPLES / script), *map(str, arguments)],
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def load_script(name: str) -> ModuleType:
    """A script of examples/ as a module, by its path: none of them is on Python's path."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, EXAMPLES / name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return some.getsockname()[1]


def kill(process: subprocess.Popen) -> None:
    """kill -9, the launcher and all that it started."""
    everyone = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    for one in everyone:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(everyone)
    process.communicate()


def run(
    script: str | Path, arguments: list, processes: int = 1, machines: int = 1, code: int = 0
) -> str:
    """What it printed, on the first machine if there are several."""
    port = free_port()
    started = [start(script, arguments, processes, machines, n, port) for n in range(machines)]
    outputs = [process.communicate(timeout=300)[0] for process in started]
    for process, output in zip(started, outputs, strict=True):
        assert process.returncode == code, output
    return outputs[0]


def run_killed(
    script: str, arguments: list, folder: Path, times: int, processes: int = 1, seed: int = 0
) -> None:
    """Kills the run so many times at random moments, then lets it end."""
    draw = random.Random(seed)
    kills = 0
    for _ in range(times):
        before = {path.name for path in folder.glob("checkpoint-*")}
        process = start(script, arguments, processes)
        deadline = time.time() + 120
        # not before something new was saved, or it would only ever start again
        while time.time() < deadline and process.poll() is None:
            if {path.name for path in folder.glob("checkpoint-*")} - before:
                break
            time.sleep(0.02)
        time.sleep(draw.random() / 2)
        if process.poll() is None:
            kill(process)
            kills += 1
        else:
            process.communicate()
    assert kills, "It ended before it could be killed."
    run(script, arguments, processes)


def assert_only_the_same_run_goes_on(script: str, arguments: list, folder: Path) -> None:
    """Of the finished run in a folder; `arguments` are those that it was started with."""
    weights = (folder / "model.safetensors").read_bytes()
    assert "is finished" in run(script, arguments)
    printed = run(script, [*arguments, "--learning_rate", 0.02], code=1)
    assert "holds a run with learning_rate" in printed and "Traceback" not in printed
    assert "; pass --overwrite_output_dir to train anew, or choose another" in printed
    assert (folder / "model.safetensors").read_bytes() == weights


def assert_divergence_stops(script: str, arguments: list) -> None:
    printed = run(script, [*arguments, "--learning_rate", "1e30"], code=1)
    assert "the training has diverged. Start again with a lower --learning_rate" in printed
    assert "Traceback" not in printed


def assert_same_weights(folder: Path, expected: Path) -> None:
    """Bit by bit."""
    found, wanted = (load_file(path / "model.safetensors") for path in (folder, expected))
    assert found.keys() == wanted.keys()
    for name, weight in wanted.items():
        assert torch.equal(found[name], weight), name
