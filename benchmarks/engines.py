"""Ray and Spark against `elmo-hf embed`: the same sentences, two workers each, without their start.

    pip install '.[ray,spark,train]'
    python benchmarks/engines.py text.txt [--sentences 20000] [--rounds 3]

The text has a tokenised sentence per line, and is repeated as often as needed. Every engine reads
the sentences from a file and writes Parquet; the clock starts when both workers have loaded the
model. The engines take turns, and the table has the medians. The peak memory is that of the largest
worker, with these sentences and with four times as many.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from elmo_hf import ElmoEmbedder
from elmo_hf.embedding import EmbeddingJob
from elmo_hf.system.memory import keep_freed_memory
from elmo_hf.system.processes import process_group
from elmo_hf.text import text_source

# Ray uses the addresses of others only where it believes that the system has clusters.
ON_LOOPBACK = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "SPARK_LOCAL_IP": "127.0.0.1",
}
ENGINES = ("elmo-hf embed", "Ray Data", "Spark")
# rows that each engine shares between its workers at once
PIECE = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--layers", default="all")
    parser.add_argument("--pooling", default="mean")
    parser.add_argument("--engine", choices=ENGINES, help="run this one once, on the folder TEXT")
    args = parser.parse_args()
    settings = {"layers": args.layers, "pooling": args.pooling}
    if args.engine:
        seconds = RUNS[args.engine](args.text, settings)
        if seconds is not None:
            print(json.dumps(seconds))
        return
    with tempfile.TemporaryDirectory() as scratch:
        words, large = (
            write_input(args.text, Path(scratch, str(count)), count)
            for count in (args.sentences, 4 * args.sentences)
        )
        rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in ENGINES}
        for number in range(args.rounds):
            for name in ENGINES[number % 3 :] + ENGINES[: number % 3]:
                rounds[name].append(start(name, Path(scratch, str(args.sentences)), settings))
                print(f"{name}: {rounds[name][-1][0]:.1f} s", file=sys.stderr)
        peaks = {
            name: start(name, Path(scratch, str(4 * args.sentences)), settings)[1]
            for name in ENGINES
        }
    print(f"{args.sentences:,} sentences, {words:,} words, {args.layers}, {args.pooling}\n")
    print("| engine | seconds | words per second | of elmo-hf embed | peak MB | at 4 times |")
    print("|---|---|---|---|---|---|")
    medians = {name: statistics.median(seconds for seconds, _ in rounds[name]) for name in ENGINES}
    for name, median in medians.items():
        peak = max(peak for _, peak in rounds[name])
        print(
            f"| {name} | {median:.1f} | {words / median:,.0f} | {median / medians[ENGINES[0]]:.2f} "
            f"| {peak / 1e6:.0f} | {peaks[name] / 1e6:.0f} |"
        )


def write_input(text: Path, folder: Path, count: int) -> int:
    """The sentences as text and as Parquet; returns how many words they have."""
    lines = [line for line in text.read_text(encoding="utf-8").splitlines() if line.strip()]
    lines = (lines * (count // len(lines) + 1))[:count]
    folder.mkdir()
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    table = pa.table({"id": range(count), "text": lines})
    pq.write_table(table, folder / "rows.parquet", row_group_size=PIECE)
    return sum(len(line.split()) for line in lines)


def start(name: str, folder: Path, settings: dict[str, str]) -> tuple[float, int]:
    """Seconds, and the peak memory of the largest worker."""
    command = [sys.executable]
    if name == ENGINES[0]:
        command += ["-m", "accelerate.commands.launch", "--cpu", "--multi_gpu", "--num_processes"]
        command += ["2", "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
    options = [part for key, value in settings.items() for part in (f"--{key}", value)]
    process = subprocess.Popen(
        [*command, __file__, str(folder), "--engine", name, *options],
        env=os.environ | ON_LOOPBACK,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    peak = 0

    def watch() -> None:
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, largest_worker(psutil.Process(process.pid)))
            time.sleep(0.2)

    watching = threading.Thread(target=watch)
    watching.start()
    printed, _ = process.communicate()
    watching.join()
    if process.returncode:
        sys.exit(f"{name} has failed.")
    return json.loads(printed.splitlines()[-1]), peak


def largest_worker(program: psutil.Process) -> int:
    """The memory of the largest process that the program has started, Java's apart."""
    sizes = [0]
    for process in program.children(recursive=True):
        try:
            if process.name() not in ("java", "raylet", "gcs_server"):
                memory = process.memory_info()
                # Ray shares the blocks of its store between processes
                sizes.append(memory.rss - memory.shared)
        except psutil.Error:
            continue
    return max(sizes)


def run_ours(folder: Path, settings: dict[str, str]) -> float | None:
    keep_freed_memory()
    with process_group() as processes:
        embedder = ElmoEmbedder()
        job = EmbeddingJob(embedder, folder / "ours.parquet", **settings)
        processes.wait_for_all()
        started = time.perf_counter()
        job.write(text_source(str(folder / "text.txt")), True, processes)
        processes.wait_for_all()
        return time.perf_counter() - started if processes.is_first else None


def run_ray(folder: Path, settings: dict[str, str]) -> float:
    import ray

    from elmo_hf.engines import RayEmbedder

    class Timed(RayEmbedder):
        def __init__(self, **some: str):
            super().__init__(**some)
            (folder / f"loaded-{os.getpid()}").touch()

    for old in folder.glob("loaded-*"):
        old.unlink()
    ray.init(num_cpus=4, include_dashboard=False)
    # the pipeline waits until its actors are there
    ray.data.DataContext.get_current().wait_for_min_actors_s = 600
    ray.data.read_parquet(str(folder / "rows.parquet")).map_batches(
        Timed,
        fn_constructor_kwargs={"keys": ["id"], "split": "whitespace", **settings},
        batch_format="pyarrow",
        batch_size=PIECE,
        compute=ray.data.ActorPoolStrategy(size=2),
    ).write_parquet(str(folder / "ray"), mode="overwrite")
    ended = time.time()
    return ended - max(file.stat().st_mtime for file in folder.glob("loaded-*"))


def run_spark(folder: Path, settings: dict[str, str]) -> float:
    from pyspark.sql import SparkSession

    from elmo_hf.engines import elmo_embed

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    rows = spark.read.parquet(str(folder / "rows.parquet"))
    pieces = rows.repartition(max(2, rows.count() // PIECE // 2))

    def write(some, name: str) -> None:
        vectors = elmo_embed(some, keys=["id"], split="whitespace", **settings)
        vectors.write.mode("overwrite").parquet(str(folder / name))

    # both workers load the model, and the JVM compiles its code
    write(rows.limit(200).repartition(4), "warm")
    started = time.perf_counter()
    write(pieces, "spark")
    return time.perf_counter() - started


RUNS: dict[str, Callable[[Path, dict[str, str]], float | None]] = dict(
    zip(ENGINES, (run_ours, run_ray, run_spark), strict=True)
)

if __name__ == "__main__":
    main()
