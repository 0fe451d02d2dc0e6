"""The speed of one checkout of elmo_hf against another, in alternation.

    python benchmarks/old_and_new.py --old ../before --new . [--pairs 15] \
        [--cases small-32 corpus] [--output outputs/old_and_new.json]

A pair measures both checkouts once, each in a fresh process, and every second pair begins with the
other one. The figure of a case is the median over the pairs of the new time divided by the old,
with an interval that holds the true median with a probability of at least 95 %: two of the sorted
ratios, by the binomial distribution. The program ends with status 1 if the whole interval of a case
is more than 3 % slower. Models are of the published sizes with random weights.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from one_case import CASES
from texts import SAMPLE, as_lines

PROGRAM = Path(__file__).resolve().parent / "one_case.py"
CONFIDENCE, TOLERANCE = 0.95, 1.03


def run_case(checkout: Path, case: str, *arguments: str | Path) -> dict:
    """What `one_case.py` finds with the package of that checkout."""
    done = subprocess.run(
        [sys.executable, PROGRAM, case, *arguments],
        env=os.environ | {"PYTHONPATH": str(checkout), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{case!r} failed in {checkout}:\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout.strip().splitlines()[-1])
    if Path(found["package"]) != checkout / "elmo_hf":
        raise SystemExit(f"{checkout} was meant, but {found['package']} was imported.")
    return found


def median_interval(ratios: list[float]) -> tuple[float, float] | None:
    """The narrowest pair of sorted values around the median; None if there are too few."""
    count, ordered = len(ratios), sorted(ratios)
    interval = None
    outside = 0.0
    for rank in range(count // 2):
        # both tails: at most `rank` of the values are on one side of the true median
        outside += 2 * math.comb(count, rank) / 2**count
        if outside > 1 - CONFIDENCE:
            break
        interval = ordered[rank], ordered[count - 1 - rank]
    return interval


def summarise(times: dict[str, list[float]]) -> dict:
    ratios = [new / old for old, new in zip(times["old"], times["new"], strict=True)]
    interval = median_interval(ratios)
    return {
        "ratio": statistics.median(ratios),
        "interval": interval,
        "slower": interval is not None and interval[0] > TOLERANCE,
        "ratios": ratios,
        "seconds": times,
    }


def measure(args: argparse.Namespace, folder: Path) -> dict[str, dict]:
    """A summary of each case; pairs go round the cases, so that each sees the whole time."""
    folder.mkdir(parents=True, exist_ok=True)
    checkouts = {"old": args.old.resolve(), "new": args.new.resolve()}
    text = args.text
    if text is None:
        text = as_lines([SAMPLE / "train.conllu"], "the sample", folder / "sample.txt").path
    models = {side: folder / side for side in checkouts}
    for side, checkout in checkouts.items():
        if not (models[side] / "pretraining" / "model.safetensors").exists():
            run_case(checkout, "make-models", "--models", models[side])
    times: dict[str, dict[str, list[float]]] = {
        case: {side: [] for side in checkouts} for case in args.cases
    }
    for pair in range(args.pairs):
        for case in args.cases:
            for side in sorted(checkouts, reverse=pair % 2 == 0):
                arguments = ["--models", models[side], "--text", text]
                found = run_case(checkouts[side], case, *arguments)
                times[case][side].append(found["seconds"])
        print(f"pair {pair + 1} of {args.pairs}", file=sys.stderr)
    return {case: summarise(of_case) for case, of_case in times.items()}


def print_table(figures: dict[str, dict]) -> None:
    print("| case | old, s | new, s | new / old | 95 % interval |\n|---|---|---|---|---|")
    for case, found in figures.items():
        seconds = [f"{statistics.median(times):.3f}" for times in found["seconds"].values()]
        interval = "too few pairs"
        if found["interval"] is not None:
            interval = "{:.3f} to {:.3f}".format(*found["interval"])
        if found["slower"]:
            interval += ", slower"
        print(f"| {case} | {' | '.join(seconds)} | {found['ratio']:.3f} | {interval} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--old", type=Path, required=True, help="a checkout to compare with")
    parser.add_argument("--new", type=Path, default=Path(), help="the checkout in question")
    parser.add_argument("--pairs", type=int, default=15, help="6 or more give an interval")
    parser.add_argument(
        "--cases", nargs="+", choices=[*CASES], default=[*CASES], help="default: all"
    )
    parser.add_argument("--text", type=Path, help="one tokenised sentence per line")
    parser.add_argument("--models", type=Path, help="a folder that keeps the models for next time")
    parser.add_argument("--output", type=Path, help="a JSON file for all figures")
    args = parser.parse_args()
    with TemporaryDirectory() as temporary:
        figures = measure(args, (args.models or Path(temporary)).resolve())
    print_table(figures)
    if args.output is not None:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if any(found["slower"] for found in figures.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
