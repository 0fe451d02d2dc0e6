"""Pretraining beside simple_elmo, which runs bilm-tf's code: the same small model and recipe.

    python benchmarks/pretraining.py --train train.txt --words 200000
    python benchmarks/pretraining.py --train train.txt --heldout valid.txt --rounds 1

Both sides read one epoch of the first words of the text, or of all of it; a text of fewer words is
repeated. Speeds are of the training steps alone, in words of the text. With `--heldout`, perplexity
is counted as simple_elmo's own test counts it.
"""

import argparse
import itertools
import json
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from environments import ROOT, peer
from measuring import Measure, alternate, last_line, report, run

SCRIPT = ROOT / "examples" / "run_pretrain.py"
PERPLEXITY = Path(__file__).parent / "perplexity.py"
# the model, as fields of ElmoConfig
SHAPE: dict = {
    "char_filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256]],
    "num_highway_layers": 1,
    "cell_size": 512,
    "projection_size": 64,
    "hidden_dropout": 0.1,
    "num_negative_samples": 1024,
}
WORDS_PER_STEP = 32 * 20


def options_of_peer(shape: dict) -> dict:
    """The same model and batches as bilm-tf's options."""
    return {
        "bidirectional": True,
        "char_cnn": {
            "activation": "relu",
            "embedding": {"dim": 16},
            "filters": shape["char_filters"],
            "max_characters_per_token": 50,
            "n_characters": 261,
            "n_highway": shape["num_highway_layers"],
        },
        "lstm": {
            "cell_clip": 3,
            "dim": shape["cell_size"],
            "n_layers": 2,
            "proj_clip": 3,
            "projection_dim": shape["projection_size"],
            "use_skip_connections": True,
        },
        "dropout": shape["hidden_dropout"],
        "all_clip_norm_val": 10.0,
        "batch_size": 32,
        "unroll_steps": 20,
        "n_negative_samples_batch": shape["num_negative_samples"],
    }


def first_words(text: Path, count: int, target: Path) -> None:
    """Whole sentences of about `count` words; a shorter text begins again."""
    with text.open(encoding="utf-8") as source:
        lines = [line.strip() for line in source if line.strip()]
    words = 0
    with target.open("w", encoding="utf-8") as file:
        for line in itertools.cycle(lines):
            if words >= count:
                break
            file.write(line + "\n")
            words += len(line.split())


def our_run(text: Path, shape: dict, recipe: str, heldout: Path | None, *more) -> dict[str, float]:
    """`more` are options of `run_pretrain.py`."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "shape.json").write_text(json.dumps(shape))
        command = [sys.executable, SCRIPT, "--train_file", text, "--output_dir", folder / "model"]
        command += ["--config_overrides", folder / "shape.json", "--recipe", recipe]
        command += ["--num_train_epochs", 1, "--checkpointing_steps", 10**9, *more]
        _, memory = run(command)
        results = json.loads((folder / "model" / "all_results.json").read_text())
        figures = {
            "words": results["train_words"],
            "words_per_second": results["train_words_per_second"],
            "peak_rss_mb": memory,
        }
        if heldout:
            command = [sys.executable, PERPLEXITY, "--model", folder / "model"]
            figures["perplexity"] = last_line([*command, "--heldout", heldout])["perplexity"]
        return figures


def their_run(text: Path, shape: dict, heldout: Path | None, *more) -> dict[str, float]:
    """`more` are options of the peer."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "options.json").write_text(json.dumps(options_of_peer(shape)))
        command = peer("simple_elmo", "pretrain", "--train", text, "--work", folder / "model")
        command += ["--options", folder / "options.json", *more]
        if heldout:
            command += ["--heldout", heldout]
        return last_line(command)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--train", type=Path, required=True, help="one tokenised sentence per line")
    parser.add_argument("--words", type=int, help="how many to read; all of them by default")
    parser.add_argument("--heldout", type=Path, help="a text whose perplexity is measured")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with TemporaryDirectory() as folder:
        text = args.train
        if args.words:
            text = Path(folder) / "train.txt"
            first_words(args.train, args.words, text)
        sides: dict[str, Measure] = {
            "elmo_hf": partial(our_run, text, SHAPE, "bilm", args.heldout),
            "simple_elmo": partial(their_run, text, SHAPE, args.heldout),
        }
        report(alternate(sides, args.rounds))


if __name__ == "__main__":
    main()
