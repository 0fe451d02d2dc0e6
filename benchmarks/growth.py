"""How speed and memory grow with the length of a sentence or with the batch; ours and AllenNLP.

    python benchmarks/growth.py --words-per-sentence 1000 --text sentences.txt
    python benchmarks/growth.py --batch 16 --text sentences.txt

With `--words-per-sentence`, the words of the text are joined into sentences of that length, which
are read one by one; with `--batch`, the text's own sentences are read in such batches.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from compare import sides
from measuring import alternate, report


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--words-per-sentence", type=int, help="read one by one")
    what.add_argument("--batch", type=int, help="sentences per batch")
    parser.add_argument("--text", type=Path, required=True, help="one tokenised sentence per line")
    parser.add_argument("--words", type=int, default=10000, help="how many are joined")
    parser.add_argument("--sentences", type=int, default=256, help="how many are read in batches")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with TemporaryDirectory() as folder:
        text, sentences = args.text, args.sentences
        if args.words_per_sentence:
            text = Path(folder) / "text.txt"
            sentences = join_words(args.text, args.words, args.words_per_sentence, text)
        options = ["--text", text, "--sentences", sentences, "--batch", args.batch or 1]
        report(alternate(sides("small", "batch-32", options, ["allennlp"]), args.rounds))


def join_words(text: Path, count: int, length: int, target: Path) -> int:
    """The first words of a text in sentences of one length; returns how many they are."""
    words = text.read_text(encoding="utf-8").split()[:count]
    lines = [" ".join(words[at : at + length]) for at in range(0, len(words), length)]
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines)


if __name__ == "__main__":
    main()
