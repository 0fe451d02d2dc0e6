"""Pretraining beside simple_elmo as the vocabulary grows: words per second and peak memory.

    python benchmarks/vocabulary_growth.py --recipe adamw --train train.txt

The vocabularies hold the words of the text and, up to their size, words that never occur. The model
is a small biLM of 512 cells under a softmax as wide as the paper's, 512. simple_elmo trains with
Adagrad, beside either recipe.
"""

import argparse
from collections import Counter
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from measuring import Measure, alternate, report
from pretraining import SHAPE, WORDS_PER_STEP, first_words, our_run, their_run

WIDE = SHAPE | {"projection_size": 512}
SPECIAL_WORDS = ("<S>", "</S>", "<UNK>")


def write_vocabulary(text: Path, size: int, target: Path) -> None:
    counts = Counter(text.read_text(encoding="utf-8").split())
    words = [word for word, _ in counts.most_common() if word not in SPECIAL_WORDS]
    words = [*SPECIAL_WORDS, *words]
    words += [f"filler{number}" for number in range(size - len(words))]
    target.write_text("\n".join(words[:size]) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--train", type=Path, required=True, help="one tokenised sentence per line")
    parser.add_argument("--recipe", choices=["bilm", "adamw"], required=True)
    parser.add_argument("--large", type=int, default=800_000, help="words of one vocabulary")
    parser.add_argument("--small", type=int, default=20_000, help="words of the other")
    parser.add_argument("--steps", type=int, default=40, help="how many steps a run takes")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        text = folder / "train.txt"
        first_words(args.train, args.steps * WORDS_PER_STEP, text)
        sides: dict[str, Measure] = {}
        for size in (args.large, args.small):
            vocabulary = folder / f"{size}.txt"
            write_vocabulary(text, size, vocabulary)
            ours = partial(our_run, text, WIDE, args.recipe, None, "--vocab_file", vocabulary)
            sides[f"{size:,} words"] = ours
        theirs = partial(their_run, text, WIDE, None, "--vocabulary", args.large)
        sides[f"simple_elmo, {args.large:,} words"] = theirs
        report(alternate(sides, args.rounds))


if __name__ == "__main__":
    main()
