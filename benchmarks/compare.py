"""elmo_hf beside AllenNLP and simple_elmo: alternating runs, medians, ratios, and a plot.

    python benchmarks/compare.py --peer PEER --weights WEIGHTS --models MODELS \
        --text sentences.txt --output benchmarks/results/speed.json

`PEER` is a program that runs a peer: `PEER allennlp|simple_elmo embed|train --model DIR --text FILE
--sentences N --batch B [--out FILE]` and ends with a line of JSON. `WEIGHTS/NAME` holds the hdf5 of
a model, `MODELS/NAME` the same model converted. Without `--peer` only our own figures are taken.

A speed is printed only after the values agree. Every round runs each side once, in a fresh process.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

OURS = [sys.executable, str(Path(__file__).parent / "ours.py")]
TOLERANCE = 1e-4  # max|a - b| / max|b| over a layer of a sentence

# sentences; a corpus is read in the batch that suits the peer best, and we batch it as we like
BATCHES = (8, 16, 32, 64, 128, 256)
# case: (command, batch, what is different about our run)
CASES = {
    "batch 1": ("embed", 1, []),
    "batch 32": ("embed", 32, []),
    "batch 32, plain": ("embed", 32, ["--plain"]),
    "batch 32, sorted": ("embed", 32, ["--sort"]),
    "batch 128": ("embed", 128, []),
    "corpus": ("corpus", None, []),
    "train, batch 32": ("train", 32, []),
}


def run(command: list) -> str:
    """What a program prints."""
    result = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if result.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{result.stderr[-2000:]}")
    return result.stdout


def last_line(command: list) -> dict:
    """The last line a program prints, which is JSON."""
    return json.loads(run(command).strip().splitlines()[-1])


def alternate(sides: dict[str, list], rounds: int) -> dict[str, list[dict]]:
    """What each side's command printed, a list of rounds; in a round every side runs once."""
    figures: dict[str, list[dict]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, command in sides.items():
            figures[side].append(last_line(command))
    return figures


def largest_error(ours: Path, theirs: Path) -> float:
    found, expected = np.load(ours), np.load(theirs)
    errors = [
        np.abs(found[name][layer] - expected[name][layer]).max()
        / np.abs(expected[name][layer]).max()
        for name in expected.files
        for layer in range(len(expected[name]))
    ]
    # not Python's max, which would pass over what is no number
    return float(np.max(errors))


def check_values(args, name: str) -> float:
    """The largest relative error of model and embedder against AllenNLP, over sixteen sentences."""
    with TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "ours.npz", Path(folder) / "theirs.npz"
        text = ["--text", args.text, "--sentences", 16, "--batch", 16]
        peer = [args.peer, "allennlp", "embed", "--model", args.weights / name]
        run([*peer, *text, "--out", theirs])
        errors = []
        for command in ("embed", "corpus"):
            run([*OURS, command, "--model", args.models / name, *text, "--out", ours])
            errors.append(largest_error(ours, theirs))
    if not all(error <= TOLERANCE for error in errors):
        raise SystemExit(f"{name}: the values differ by {errors}, so there is nothing to time.")
    return max(errors)


def best_batch(args, name: str) -> int:
    """The batch in which AllenNLP reads the text fastest, each tried once on a quarter of it."""
    speeds = {}
    sentences = args.sentences // 4
    for batch in BATCHES:
        peer = [args.peer, "allennlp", "embed", "--model", args.weights / name]
        text = ["--text", args.text, "--sentences", sentences, "--batch", batch]
        speeds[batch] = last_line([*peer, *text])["tokens_per_second"]
    print(f"{name}: AllenNLP's words/s by batch {speeds}", flush=True)
    return max(speeds, key=speeds.__getitem__)


def measure(args, name: str, case: str) -> dict:
    """All rounds of one case: a list of figures for each side."""
    command, batch, options = CASES[case]
    text = ["--text", args.text, "--sentences", args.sentences]
    if batch or args.peer:
        text += ["--batch", batch or best_batch(args, name)]
    sides = {"elmo_hf": [*OURS, command, "--model", args.models / name, *text, *options]}
    if args.peer:
        for peer in ["allennlp"] + ["simple_elmo"] * (case == "batch 32"):
            theirs = "embed" if command == "corpus" else command
            sides[peer] = [args.peer, peer, theirs, "--model", args.weights / name, *text]
    return alternate(sides, args.rounds)


def summary(rounds: dict) -> dict:
    """Medians and spread of words per second, and our ratio to each peer."""
    result = {}
    for side, figures in rounds.items():
        speeds = [figure["tokens_per_second"] for figure in figures]
        result[side] = {
            "words_per_second": statistics.median(speeds),
            "lowest": min(speeds),
            "highest": max(speeds),
            **{
                key: statistics.median(figure[key] for figure in figures)
                for key in (
                    "load_seconds",
                    "peak_rss_mb",
                    "share_of_peak",
                    "product_peak_gflops",
                    "batch",
                )
                if all(key in figure for figure in figures)
            },
        }
        if side != "elmo_hf":
            ours = result["elmo_hf"]["words_per_second"]
            result[side]["our_ratio"] = ours / result[side]["words_per_second"]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", type=Path, help="a program that runs the peers")
    parser.add_argument("--weights", type=Path, help="folders of options.json and model.hdf5")
    parser.add_argument("--models", type=Path, required=True, help="the same models, converted")
    parser.add_argument("--names", nargs="+", default=["small"], help="which of the models")
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--text", type=Path, required=True, help="one tokenised sentence per line")
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, required=True, help="JSON; grows with every run")
    args = parser.parse_args()
    results = json.loads(args.output.read_text()) if args.output.exists() else {}
    for name in args.names:
        if args.peer:
            error = check_values(args, name)
            print(f"{name}: largest relative error against AllenNLP {error:.1e}", flush=True)
            results.setdefault(name, {})["largest_error"] = error
        for case in args.cases:
            figures = summary(measure(args, name, case))
            figures["rounds"], figures["sentences"] = args.rounds, args.sentences
            results.setdefault(name, {})[case] = figures
            args.output.parent.mkdir(parents=True, exist_ok=True)
            args.output.write_text(json.dumps(results, indent=1) + "\n")
            ratios = [
                f"{side} {figures[side]['words_per_second']:.0f}"
                + (f" ({figures[side]['our_ratio']:.2f} x)" if "our_ratio" in figures[side] else "")
                for side in ("elmo_hf", "allennlp", "simple_elmo")
                if side in figures
            ]
            print(f"{name:9} {case:17} words/s: {', '.join(ratios)}", flush=True)


if __name__ == "__main__":
    main()
