"""elmo_hf beside AllenNLP and simple_elmo on one model and one text, in alternation.

    python benchmarks/compare.py --model small --case batch-32 --text sentences.txt

Every round runs each side once, in a fresh process. `agreement` measures no speed: it compares the
layers of sixteen sentences with AllenNLP's, and fails if they differ by more than rounding.
"""

import argparse
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from environments import peer
from measuring import Figures, Measure, alternate, last_line, report, run
from models import SIZES, model, weights

OURS = [sys.executable, Path(__file__).parent / "ours.py"]
TOLERANCE = 1e-4  # max|a - b| / max|b| over a layer of a sentence

# sentences; a corpus is read in the batch that suits the peer best, and we batch it as we like
BATCHES = (8, 16, 32, 64, 128, 256)
# case: (command, batch, what is different about our run)
CASES: dict[str, tuple[str, int | None, list[str]]] = {
    "batch-1": ("embed", 1, []),
    "batch-32": ("embed", 32, []),
    "batch-32-plain": ("embed", 32, ["--plain"]),
    "batch-32-sorted": ("embed", 32, ["--sort"]),
    "batch-128": ("embed", 128, []),
    "corpus": ("corpus", None, []),
    "train": ("train", 32, []),
}


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


def agreement(size: str, text: Path) -> Figures:
    """The largest relative error of model and embedder against AllenNLP, over sixteen sentences."""
    with TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "ours.npz", Path(folder) / "theirs.npz"
        options = ["--text", text, "--sentences", 16, "--batch", 16]
        run(peer("allennlp", "embed", "--model", weights(size), *options, "--out", theirs))
        errors = []
        for command in ("embed", "corpus"):
            run([*OURS, command, "--model", model(size), *options, "--out", ours])
            errors.append(largest_error(ours, theirs))
    if not all(error <= TOLERANCE for error in errors):
        raise SystemExit(f"{size}: the values differ by {errors}, so there is nothing to time.")
    return {"elmo_hf": {"largest_error": [max(errors)]}}


def best_batch(size: str, text: Path, sentences: int) -> int:
    """The batch in which AllenNLP reads the text fastest, each tried once on a quarter of it."""
    speeds = {}
    for batch in BATCHES:
        options = ["--text", text, "--sentences", sentences // 4, "--batch", batch]
        figures = last_line(peer("allennlp", "embed", "--model", weights(size), *options))
        speeds[batch] = figures["words_per_second"]
    return max(speeds, key=speeds.__getitem__)


def sides(size: str, case: str, text: list, peers: list[str]) -> dict[str, Measure]:
    """`text` are options: which text, how much of it, and in which batches."""
    command, _, options = CASES[case]
    ours = [*OURS, command, "--model", model(size), *text, *options]
    measures: dict[str, Measure] = {"elmo_hf": partial(last_line, ours)}
    for name in peers:
        theirs = "embed" if command == "corpus" else command
        run_peer = peer(name, theirs, "--model", weights(size), *text)
        measures[name] = partial(last_line, run_peer)
    return measures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=SIZES, required=True, help="its published size")
    parser.add_argument("--case", choices=["agreement", *CASES], required=True)
    parser.add_argument("--peers", nargs="+", default=["allennlp"], help="also: simple_elmo")
    parser.add_argument("--text", type=Path, required=True, help="one tokenised sentence per line")
    parser.add_argument("--sentences", type=int, default=256, help="how many of its lines to use")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if args.case == "agreement":
        report(agreement(args.model, args.text))
        return
    batch = CASES[args.case][1] or best_batch(args.model, args.text, args.sentences)
    text = ["--text", args.text, "--sentences", args.sentences, "--batch", batch]
    figures = alternate(sides(args.model, args.case, text, args.peers), args.rounds)
    for side in figures.values():
        side["batch"] = [batch]
    report(figures)


if __name__ == "__main__":
    main()
