"""How time and memory of `elmo-hf embed` grow with the corpus.

    python benchmarks/corpus_growth.py --text sentences.txt --ending .npy

Corpora of 10,000 and 1,000,000 lines drawn from the text, with a number behind each so that no two
are the same, become one vector per sentence, each in a process of its own, in alternation. The time
that one line takes in the same round is taken off: it is Python's start.
"""

import argparse
import random
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from measuring import Measure, alternate, report, run


def write_corpus(path: Path, lines: list[str], count: int) -> Path:
    draw = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{draw.choice(lines)} {number:07}\n" for number in range(count))
    return path


def name_of(size: int) -> str:
    return f"{size:,} sentences"


def embed(model: str, source: Path, output: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "elmo_hf", "embed", "--model", model, "--input", source]
    command += ["--output", output, "--layers", "mix", "--pooling", "mean", "--overwrite"]
    started = time.perf_counter()
    _, memory = run(command)
    return {"seconds": time.perf_counter() - started, "peak_rss_mb": memory}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="bundled", help="an ELMo folder")
    parser.add_argument("--text", type=Path, required=True, help="one tokenised sentence per line")
    parser.add_argument("--ending", default=".npy", help="of the file with the vectors")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000_000, 10_000])
    parser.add_argument("--rounds", type=int, default=5, help="of several minutes each")
    args = parser.parse_args()
    lines = [line.strip() for line in args.text.open(encoding="utf-8") if line.strip()]
    with TemporaryDirectory() as folder:
        output = Path(folder) / f"vectors{args.ending}"
        sides: dict[str, Measure] = {}
        for size in (1, *args.sizes):
            source = write_corpus(Path(folder) / f"{size}.txt", lines, size)
            sides[name_of(size)] = partial(embed, args.model, source, output)
        figures = alternate(sides, args.rounds)
    starts = figures.pop(name_of(1))["seconds"]
    for size in args.sizes:
        side = figures[name_of(size)]
        speeds = [size / (end - start) for end, start in zip(side["seconds"], starts, strict=True)]
        side["sentences_per_second"] = speeds
    report(figures)


if __name__ == "__main__":
    main()
