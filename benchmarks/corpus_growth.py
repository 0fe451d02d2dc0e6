"""How time and memory of `elmo-hf embed` grow with the corpus.

    python benchmarks/corpus_growth.py --text sentences.txt --output results/corpus.json

Corpora of 10,000 and 1,000,000 lines drawn from the text, with a number behind each so that no two
are the same, become one vector per sentence, each in a process of its own, in alternation, for
medians. The time that one line takes is taken off: it is Python's start.
"""

import argparse
import json
import os
import random
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

# lines
SIZES = (1, 10_000, 1_000_000)


def write_corpus(path: Path, lines: list[str], count: int) -> Path:
    draw = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{draw.choice(lines)} {number:07}\n" for number in range(count))
    return path


def embed(model: str, source: Path, output: Path) -> tuple[float, float]:
    """Seconds, and the most memory in MB."""
    command = [sys.executable, "-m", "elmo_hf", "embed", "--model", model, "--input", str(source)]
    command += ["--output", str(output), "--layers", "mix", "--pooling", "mean", "--overwrite"]
    started = time.perf_counter()
    process = os.posix_spawn(sys.executable, command, os.environ)
    _, status, usage = os.wait4(process, 0)
    if status:
        raise SystemExit("elmo-hf embed failed.")
    return time.perf_counter() - started, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="bundled", help="an ELMo folder")
    parser.add_argument("--text", type=Path, required=True, help="one tokenised sentence per line")
    parser.add_argument("--endings", nargs="+", default=[".npy", ".parquet", ".hdf5"])
    parser.add_argument("--rounds", type=int, default=5, help="of several minutes each")
    parser.add_argument("--output", type=Path, required=True, help="JSON; grows with every run")
    args = parser.parse_args()
    lines = [line.strip() for line in args.text.open(encoding="utf-8") if line.strip()]
    results = json.loads(args.output.read_text()) if args.output.exists() else {}
    with TemporaryDirectory() as folder:
        for ending in args.endings:
            runs: dict[int, list] = {size: [] for size in SIZES}
            for size in SIZES * args.rounds:
                source = write_corpus(Path(folder) / "text", lines, size)
                runs[size].append(embed(args.model, source, Path(folder) / f"vectors{ending}"))
                print(ending, size, *runs[size][-1], flush=True)
            medians = {
                size: [*map(statistics.median, zip(*r, strict=True))] for size, r in runs.items()
            }
            start = medians.pop(1)[0]
            results[ending] = {"rounds": args.rounds} | {
                f"{size}": {
                    "peak_rss_mb": memory,
                    "highest_peak_rss_mb": max(peak for _, peak in runs[size]),
                    "us_per_sentence": (seconds - start) / size * 1e6,
                }
                for size, (seconds, memory) in medians.items()
            }
            args.output.write_text(json.dumps(results, indent=1) + "\n")
            print(json.dumps(results[ending], indent=1), flush=True)


if __name__ == "__main__":
    main()
