"""Child processes: functions and programs that run apart, with bounded memory and time."""

import gc
import importlib
import io
import os
import pickle
import resource
import runpy
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import tqdm.std
from huggingface_hub import constants

from elmo_hf.system.memory import hand_back_memory

ROOT = Path(__file__).resolve().parents[2]
# Memory that any trial may take besides what it holds already; above, it gets a MemoryError.
CEILING = 3 << 30
# no file of a trial may be larger, so that a bomb does not fill the disk
LARGEST_FILE = 1 << 30


class Ended(NamedTuple):
    """A program that ended."""

    # negative for a signal, as in subprocess
    code: int
    printed: str
    errors: str
    # bytes of memory at the highest point, besides those at the start; None if it was not measured
    peak: int | None
    seconds: float
    timed_out: bool = False


class Memory:
    """Measures how far the memory of this process grows, and bounds it."""

    def __init__(self) -> None:
        # or the next one to use what an earlier trial has freed would not be seen
        hand_back_memory()
        # resets the high-water mark, which Linux allows
        Path("/proc/self/clear_refs").write_text("5")
        self.before = status("VmRSS")
        limit = status("VmSize") + CEILING
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))

    def peak(self) -> int:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return max(0, status("VmHWM") - self.before)


def status(field: str) -> int:
    """A field of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith(f"{field}:")]
    return int(line.split()[1]) << 10


def in_child(function: Callable[[], Any]) -> Any:
    """The result of a function that a forked child calls, so that nothing of it stays here."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        silence()
        try:
            found = (True, function())
        except BaseException:
            found = (False, traceback.format_exc())
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(found, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    done, result = pickle.loads(data) if data else (False, "the child died")
    if not done:
        raise RuntimeError(result)
    return result


def start_warm(arguments: list[str], folder: Path, log: Path, limit: int | None = None) -> int:
    """
    Starts a program in a fork of this process, which has imported everything already; it is the
    leader of a session of its own. `limit` is the largest file it may write.
    """
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        become(folder, log, limit)
        memory = Memory()
        code = call_program(arguments)
        log.with_suffix(".peak").write_text(str(memory.peak()))
    finally:
        os._exit(code)


def become(folder: Path, log: Path, limit: int | None) -> None:
    """Gives this process the streams, the folder and the limits of a program."""
    for number, path in ((0, Path(os.devnull)), (1, log.with_suffix(".out")), (2, log)):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(path, flags), number)
    os.chdir(folder)
    # the campaign's own bar is not the program's
    tqdm.std.tqdm._instances.clear()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    limit = LARGEST_FILE if limit is None else limit
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def call_program(arguments: list[str]) -> int:
    """Runs `elmo-hf` or a script by its real entry point; returns the exit code."""
    from elmo_hf.cli import main

    variables, (program, *rest) = environment_of(arguments)
    os.environ.update(variables)
    if "HF_HUB_OFFLINE" in variables:
        # it was read when the library was imported
        constants.HF_HUB_OFFLINE = variables["HF_HUB_OFFLINE"] == "1"
    sys.argv = [program, *rest]
    code: Any = 0
    try:
        if program == "elmo-hf":
            main()
        else:
            sys.argv[0] = str(ROOT / "examples" / program)
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120
    return code if isinstance(code, int) else int(code is not None)


def environment_of(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """Variables in front of a program, and the program with its arguments."""
    count = next(number for number, one in enumerate(arguments) if "=" not in one)
    return dict(one.split("=", 1) for one in arguments[:count]), arguments[count:]


def start_plain(arguments: list[str], folder: Path, log: Path) -> int:
    """Starts a program as a shell does."""
    variables, (program, *rest) = environment_of(arguments)
    name = ["-m", "elmo_hf"] if program == "elmo-hf" else [str(ROOT / "examples" / program)]
    with log.open("wb") as errors, log.with_suffix(".out").open("wb") as printed:
        process = subprocess.Popen(
            [sys.executable, *name, *rest],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | variables,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=errors,
            start_new_session=True,
        )
    # the caller waits for it
    process.returncode = 0
    return process.pid


def wait(child: int, log: Path, seconds: float) -> Ended:
    """Waits for a program that was started above; one that takes longer is killed."""
    started = time.perf_counter()
    handle = os.pidfd_open(child)
    ended, _, _ = select.select([handle], [], [], seconds)
    os.close(handle)
    # with all processes that it has started
    if not ended:
        kill(child)
    _, state, _ = os.wait4(child, 0)
    printed, peak = log.with_suffix(".out"), log.with_suffix(".peak")
    return Ended(
        os.waitstatus_to_exitcode(state),
        printed.read_text(errors="replace") if printed.exists() else "",
        log.read_text(errors="replace") if log.exists() else "",
        int(peak.read_text()) if peak.exists() else None,
        time.perf_counter() - started,
        timed_out=not ended,
    )


def kill(child: int) -> None:
    """kill -9, the program and all that it started."""
    try:
        os.killpg(child, signal.SIGKILL)
    # it was just about to lead a session of its own
    except ProcessLookupError:
        os.kill(child, signal.SIGKILL)


def run(
    arguments: list[str], folder: Path, log: Path, seconds: float, plain: bool = False
) -> Ended:
    """A program from its start to its end."""
    begin = start_plain if plain else start_warm
    return wait(begin(arguments, folder, log), log, seconds)


def warm_up() -> None:
    """Imports what programs import, once and before any fork."""
    names = ["accelerate", "datasets", "evaluate", "h5py", "matplotlib.figure", "seqeval.metrics"]
    names += ["matplotlib.backends.backend_agg", "pydantic.fields", "typer.main"]
    names += ["elmo_hf.conversion.convert_allennlp_to_hf", "elmo_hf.cli", "elmo_hf.pretraining"]
    names += ["elmo_hf.tagging.evaluation", "elmo_hf.tagging.report", "faults.table"]
    for name in names:
        importlib.import_module(name)
    draw_once()
    import torch

    torch.set_num_threads(1)
    # a thread would not survive a fork, and a lock that processes share not a kill
    tqdm.tqdm.monitor_interval = 0
    tqdm.tqdm.set_lock(threading.RLock())
    # pages that the collector does not touch stay shared with the children
    gc.collect()
    gc.freeze()


def draw_once() -> None:
    """Lets matplotlib find its fonts."""
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots().set_title("title")
    figure.savefig(io.BytesIO())


def silence() -> None:
    """Libraries that keep the first stream they saw are quiet, too."""
    for number in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
