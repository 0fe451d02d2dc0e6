"""How speed and memory grow with the length of a sentence and with the batch; ours and AllenNLP.

    python benchmarks/growth.py --peer PEER --weights WEIGHTS/small --model MODELS/small \
        --text sentences.txt --output benchmarks/results/growth.json

The arguments are those of `compare.py`. The words of the text are joined into sentences of 10 to
10,000 words, one sentence per batch; then the text's own sentences are read in batches of 1 to 256.
"""

import argparse
import json
import statistics
from pathlib import Path
from tempfile import TemporaryDirectory

from compare import OURS, alternate

LENGTHS = (10, 100, 1000, 10000)
BATCHES = (1, 16, 256)


def measure(args, text: Path, sentences: int, batch: int) -> dict:
    options = ["--text", text, "--sentences", sentences, "--batch", batch]
    sides = {"elmo_hf": [*OURS, "embed", "--model", args.model, *options]}
    if args.peer:
        sides["allennlp"] = [args.peer, "allennlp", "embed", "--model", args.weights, *options]
    return {
        side: {
            key: statistics.median(figure[key] for figure in figures)
            for key in ("tokens_per_second", "peak_rss_mb")
        }
        for side, figures in alternate(sides, args.rounds).items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", type=Path, help="a program that runs the peers")
    parser.add_argument("--weights", type=Path, help="a folder of options.json and model.hdf5")
    parser.add_argument("--model", type=Path, required=True, help="the same model, converted")
    parser.add_argument("--text", type=Path, required=True, help="one tokenised sentence per line")
    parser.add_argument("--words", type=int, default=10000, help="how many words to read")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    words = args.text.read_text(encoding="utf-8").split()[: args.words]
    results: dict[str, dict] = {"words per sentence": {}, "sentences per batch": {}}
    with TemporaryDirectory() as folder:
        for length in LENGTHS:
            lines = [" ".join(words[at : at + length]) for at in range(0, len(words), length)]
            text = Path(folder) / f"{length}.txt"
            text.write_text("\n".join(lines) + "\n", encoding="utf-8")
            figures = measure(args, text, sentences=len(lines), batch=1)
            results["words per sentence"][length] = figures
            print("words per sentence", length, figures, flush=True)
    for batch in BATCHES:
        figures = measure(args, args.text, sentences=256, batch=batch)
        results["sentences per batch"][batch] = figures
        print("sentences per batch", batch, figures, flush=True)
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
