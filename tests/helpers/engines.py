"""Ray and Spark on loopback, processes of theirs to kill, and the rows that they must make."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from helpers.launch import EXAMPLES, free_port, kill

from elmo_hf import ElmoEmbedder
from elmo_hf.tagging import read_tagged

SAMPLE = EXAMPLES / "sample" / "train.conllu"
PATIENCE = 300
# Neither reports of use nor other addresses than loopback's, which Ray uses where it is told that
# this system has no clusters; it reads that when it is imported.
RAY = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
SPARK = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "127.0.0.1"}
SPARK_CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}


@cache
def sample_sentences() -> list[str]:
    """The sentences of the sample, with blanks between words."""
    return [" ".join(sentence["tokens"]) for sentence in read_tagged(SAMPLE)]


def write_table(path: Path, rows: int) -> None:
    """A table of the sample's sentences, over and over."""
    known = sample_sentences()
    texts = [known[number % len(known)] for number in range(rows)]
    pq.write_table(pa.table({"id": range(rows), "text": texts}), path, row_group_size=1000)


def assert_vectors(folder: Path, rows: int) -> None:
    """Every row of such a table is there once, with the mean of its top layer by one process."""
    known = sample_sentences()
    words = [sentence.split() for sentence in known]
    expected = np.stack(ElmoEmbedder().embed(words, "top", "mean"))
    found = pq.read_table(folder)
    assert sorted(found["id"].to_pylist()) == list(range(rows))
    numbers = found["id"].to_numpy() % len(known)
    assert found["sentence"].to_pylist() == [known[number] for number in numbers]
    values = found["embedding"].combine_chunks().flatten().to_numpy().reshape(rows, -1)
    np.testing.assert_allclose(values, expected[numbers], rtol=0, atol=2e-5)


def start_example(name: str, *arguments: object, **environment: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, str(EXAMPLES / name), *map(str, arguments)],
        env=os.environ | RAY | SPARK | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run_example(name: str, *arguments: object, code: int = 0, **environment: str) -> str:
    process = start_example(name, *arguments, **environment)
    printed, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, printed
    return printed


def submit_arguments(master: str, **conf: str) -> dict[str, str]:
    """The environment in which PySpark finds a master."""
    pairs = [f"--conf {key}={value}" for key, value in (SPARK_CONF | conf).items()]
    return {"PYSPARK_SUBMIT_ARGS": f"--master {master} {' '.join(pairs)} pyspark-shell"}


@contextmanager
def spark_cluster(workers: int, folder: Path) -> Iterator[str]:
    """The address of a standalone master; each worker has one core."""
    import pyspark

    program = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    master = ["master.Master", "--port", port, "--webui-port", free_port()]
    worker = ["worker.Worker", address, "--cores", 1, "--memory", "2g", "--webui-port", 0]
    environment = os.environ | SPARK | {"PYSPARK_PYTHON": sys.executable}
    with ExitStack() as stack, (folder / "spark.log").open("w") as log:
        for kind, *options in (master, *[worker] * workers):
            command = [program, f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1", *options]
            process = subprocess.Popen(
                [*map(str, command)],
                cwd=folder,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            stack.callback(kill, process)
        yield address


def processes(is_wanted: Callable[[str], bool]) -> list[psutil.Process]:
    """Those started from here that have loaded torch, and whose command line is wanted."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if is_wanted(" ".join(process.cmdline())) and has_torch(process):
                found.append(process)
        except psutil.Error:
            continue
    return found


def has_torch(process: psutil.Process) -> bool:
    return any("libtorch_cpu" in file.path for file in process.memory_maps())


def kill_three_times(
    run: subprocess.Popen, find: Callable[[], list[psutil.Process]], seed: int
) -> list[int]:
    """Kills a process at work, its successor or sibling, and again; returns their numbers."""
    draw = random.Random(seed)
    killed: list[int] = []
    deadline = time.monotonic() + PATIENCE
    while len(killed) < 3:
        assert run.poll() is None, f"It ended after {len(killed)} kills."
        assert time.monotonic() < deadline, f"There was nothing to kill after {len(killed)} kills."
        time.sleep(0.2)
        if at_work := [process for process in find() if process.pid not in killed]:
            victim = draw.choice(at_work)
            time.sleep(draw.random())
            victim.kill()
            killed.append(victim.pid)
    return killed
