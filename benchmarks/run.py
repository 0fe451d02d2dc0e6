"""Measures every row of the tables: `make benchmark`.

    python benchmarks/run.py --output outputs/benchmark --quick

The peers are installed from PyPI first. Then one row is measured after the other. Each is kept in
`figures.json` at once, so that a run that was interrupted resumes with the next one. A row is
measured again if the code, the text, the machine or its options have changed. At the end, the
tables (`tables.md`) and the plots are written.
"""

import argparse
import hashlib
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from environments import ALONE, ROOT, environment
from plan import ROWS, Row
from plot import draw_plots
from tables import in_words, write_tables
from texts import Text, prepare

from elmo_hf.system.program import run_program
from elmo_hf.system.writing import write_text

HERE = Path(__file__).resolve().parent


def code() -> str:
    """A digest of the package, so that figures of other code are not taken for its own."""
    digest = hashlib.sha256()
    for file in sorted((ROOT / "elmo_hf").rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def machine() -> str:
    name = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        lines = information.read_text().splitlines()
        named = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
        name = named[0] if named else name
    return f"{os.cpu_count()} processors, {name}, {platform.system()}"


def software() -> str:
    peers = [package.replace("==", " ") for packages in ALONE.values() for package in packages]
    ours = [f"Python {platform.python_version()}", f"torch {version('torch')}"]
    return ", ".join([*ours, *peers])


class Benchmark(NamedTuple):
    rows: list[Row]
    quick: bool
    texts: dict[str, Text]
    output: Path
    # machine, software and code
    surroundings: dict[str, str]

    def options_of(self, row: Row) -> str:
        return (row.quick or "") if self.quick else row.options

    def conditions(self, row: Row) -> dict[str, str]:
        """Everything that a row's figures depend on."""
        read = {option: self.texts[option].name for option in row.texts}
        return {"options": self.options_of(row), **read, **self.surroundings}

    def command(self, row: Row) -> list[str]:
        command = [sys.executable, str(HERE / row.program), *self.options_of(row).split()]
        for option in row.texts:
            command += [f"--{option}", str(self.texts[option].path)]
        return command


def read_figures(output: Path) -> dict[str, dict]:
    file = output / "figures.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def is_done(benchmark: Benchmark, row: Row, results: dict[str, dict]) -> bool:
    found = results.get(row.key)
    return found is not None and found["conditions"] == benchmark.conditions(row)


def run_alone(command: list[str]) -> str:
    """What a program prints; if we are interrupted, its processes and their files go with us."""
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": folder},
            process_group=0,
        ) as process,
    ):
        try:
            printed, _ = process.communicate()
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            raise
    if process.returncode:
        raise RuntimeError(f"{shlex.join(command)} failed")
    return printed


def measure(benchmark: Benchmark, row: Row) -> dict:
    """A row's entry in `figures.json`."""
    started = time.perf_counter()
    figures = json.loads(run_alone(benchmark.command(row)).strip().splitlines()[-1])
    return {
        "figures": figures,
        "rounds": max(len(values) for side in figures.values() for values in side.values()),
        "conditions": benchmark.conditions(row),
        "date": time.strftime("%Y-%m-%d"),
        "seconds": round(time.perf_counter() - started, 1),
    }


def measure_all(benchmark: Benchmark, results: dict[str, dict]) -> list[str]:
    """Adds to `results`, and saves them after every row; returns which rows have failed."""
    missing = [row for row in benchmark.rows if not is_done(benchmark, row, results)]
    total, done = len(benchmark.rows), len(benchmark.rows) - len(missing)
    if done:
        print(f"{done} of {total} rows are done.", flush=True)
    expected = [row.quick_seconds if benchmark.quick else row.seconds for row in missing]
    failed: list[str] = []
    started = time.perf_counter()
    for number, row in enumerate(missing, start=1):
        try:
            if row.after in failed:
                raise RuntimeError(f"not measured without {row.after!r}")
            results[row.key] = measure(benchmark, row)
            write_text(benchmark.output / "figures.json", json.dumps(results, indent=1) + "\n")
            said = in_words(row, results[row.key])
        except RuntimeError as error:
            failed.append(row.key)
            said = f"{row.key}: {error}"
        elapsed = time.perf_counter() - started
        minutes = elapsed / sum(expected[:number]) * sum(expected[number:]) / 60
        print(f"[{done + number}/{total}, {minutes:.0f} min left] {said}", flush=True)
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True, help="a folder, which may exist")
    parser.add_argument("--quick", action="store_true", help="only some rows, with few rounds")
    parser.add_argument(
        "--text", type=Path, help="sentences to embed: CoNLL-U, or one tokenised sentence per line"
    )
    parser.add_argument("--train", type=Path, help="a text to pretrain on, in either form")
    parser.add_argument("--heldout", type=Path, help="a text for perplexity, in either form")
    args = parser.parse_args()
    rows = [row for row in ROWS if row.quick is not None or not args.quick]
    texts = prepare(args.text, args.train, args.heldout)
    surroundings = {"machine": machine(), "software": software(), "code": code()}
    benchmark = Benchmark(rows, args.quick, texts, args.output, surroundings)
    for name in ALONE:
        environment(name)
    results = read_figures(args.output)
    failed = measure_all(benchmark, results)
    write_tables(results, args.output / "tables.md")
    draw_plots(results, args.output)
    print(f"The tables are in {args.output / 'tables.md'}.")
    if failed:
        raise SystemExit(
            f"Not measured: {'; '.join(failed)}. The errors are above; run it again to retry."
        )


if __name__ == "__main__":
    try:
        run_program(main)
    except KeyboardInterrupt:
        raise SystemExit("Interrupted; run it again to resume with the next row.") from None
