"""Pretraining beside simple_elmo as the vocabulary grows: words per second and peak memory.

    python benchmarks/vocabulary_growth.py --peer PEER --train train.txt --output vocabulary.json

`PEER` is as for `pretraining.py`; with `--vocabulary N` it fills its vocabulary up with words that
never occur. The model is a small biLM of 512 cells under a softmax as wide as the paper's, 512. In
a round every case runs once, in a fresh process.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from pretraining import SCRIPT, SHAPE, first_words

from elmo_hf.pretraining import Corpus
from elmo_hf.word_vocabulary import SPECIAL_WORDS

WIDE = SHAPE | {"projection_size": 512}
# the same for the peer
OPTIONS = {
    "bidirectional": True,
    "char_cnn": {
        "activation": "relu",
        "embedding": {"dim": 16},
        "filters": SHAPE["char_filters"],
        "max_characters_per_token": 50,
        "n_characters": 261,
        "n_highway": 1,
    },
    "lstm": {
        "cell_clip": 3,
        "dim": 512,
        "n_layers": 2,
        "proj_clip": 3,
        "projection_dim": 512,
        "use_skip_connections": True,
    },
    "dropout": 0.1,
    "all_clip_norm_val": 10.0,
    "batch_size": 32,
    "unroll_steps": 20,
    "n_negative_samples_batch": 1024,
}
WORDS_PER_STEP = 32 * 20


def measured(command: list) -> tuple[str, float]:
    """What a program prints, and its peak memory in GB."""
    with subprocess.Popen(
        [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed.")
    return printed, peak_of(usage)


def peak_of(usage: resource.struct_rusage) -> float:
    # in bytes on macOS
    return usage.ru_maxrss / (1e9 if sys.platform == "darwin" else 1e9 / 1024)


def write_vocabulary(text: Path, size: int, target: Path) -> None:
    counts: Counter[str] = Counter()
    Corpus([text], counts)
    words = [word for word, _ in counts.most_common() if word not in SPECIAL_WORDS]
    words = [*SPECIAL_WORDS, *words]
    words += [f"filler{number}" for number in range(size - len(words))]
    target.write_text("\n".join(words[:size]) + "\n", encoding="utf-8")


def ours(folder: Path, recipe: str, size: int) -> tuple[float, float]:
    """Words per second and gigabytes."""
    command = [sys.executable, SCRIPT, "--train_file", folder / "train.txt"]
    command += ["--vocab_file", folder / f"{size}.txt", "--config_overrides", folder / "shape.json"]
    command += ["--recipe", recipe, "--num_train_epochs", 1, "--overwrite_output_dir"]
    _, memory = measured([*command, "--output_dir", folder / "ours"])
    results = json.loads((folder / "ours" / "all_results.json").read_text())
    return results["train_words_per_second"], memory


def theirs(peer: Path, folder: Path, size: int, number: int) -> tuple[float, float]:
    command = [peer, "simple_elmo", "pretrain", "--train", folder / "train.txt"]
    command += ["--heldout", folder / "heldout.txt", "--work", folder / f"peer{number}"]
    command += ["--options", folder / "options.json", "--vocabulary", size]
    printed, memory = measured(command)
    return json.loads(printed.strip().splitlines()[-1])["tokens_per_second"], memory


def rounds_of(args, folder: Path) -> dict[str, list[tuple[float, float]]]:
    first_words(args.train, args.steps * WORDS_PER_STEP, folder / "train.txt")
    first_words(args.train, 2000, folder / "heldout.txt")
    (folder / "shape.json").write_text(json.dumps(WIDE))
    (folder / "options.json").write_text(json.dumps(OPTIONS))
    figures: dict[str, list[tuple[float, float]]] = {}
    for size in args.sizes:
        write_vocabulary(folder / "train.txt", size, folder / f"{size}.txt")
    for number in range(args.rounds):
        for recipe in ("bilm", "adamw"):
            for size in args.sizes:
                figures.setdefault(f"{recipe} {size}", []).append(ours(folder, recipe, size))
        if args.peer:
            size = max(args.sizes)
            figures.setdefault(f"simple_elmo {size}", []).append(
                theirs(args.peer, folder, size, number)
            )
        print({name: values[-1] for name, values in figures.items()}, flush=True)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", type=Path, help="a program that runs the peer")
    parser.add_argument("--train", type=Path, required=True, help="one tokenised sentence per line")
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000, 800_000])
    parser.add_argument("--steps", type=int, default=40, help="how many steps a run takes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, help="a JSON file for the figures")
    args = parser.parse_args()
    with TemporaryDirectory() as name:
        figures = rounds_of(args, Path(name))
    result = {
        name: {
            "words_per_second": [speed for speed, _ in values],
            "median": statistics.median(speed for speed, _ in values),
            "peak_gigabytes": max(memory for _, memory in values),
        }
        for name, values in figures.items()
    }
    print(json.dumps(result))
    if args.output is not None:
        args.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
