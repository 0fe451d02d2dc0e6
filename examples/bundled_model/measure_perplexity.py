r"""Perplexities of a language model on raw texts, each a file, by the full softmax.

    python examples/bundled_model/measure_perplexity.py my-elmo valid.txt test.txt \
        --output_file out.json

A line is a paragraph, which the model's own splitter splits. Perplexities over other words cannot
be compared, so the share of the words that are unknown to the softmax is reported as well.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from accelerate import Accelerator

from elmo_hf import ElmoForPreTraining, ElmoTokenizer
from elmo_hf.hub import load_model
from elmo_hf.pretraining import Corpus, evaluate, format_figures
from elmo_hf.system import run_program, write_text
from elmo_hf.text import raw_files, split_documents


def measure(
    accelerator: Accelerator, model: ElmoForPreTraining, splitter: str, text: Path, file: Path
) -> dict[str, float]:
    """The figures of one text, whose sentences are written to a file."""
    assert model.vocabulary is not None
    with file.open("w", encoding="utf-8", newline="\n") as sentences:
        for words in split_documents(raw_files([text]).open(), splitter, "line"):
            sentences.write(" ".join(words) + "\n")
    counts: Counter[str] = Counter()
    corpus = Corpus([file], counts)
    figures = evaluate(accelerator, model, corpus, text.stem)
    known = sum(counts[word] for word in model.vocabulary.words)
    return figures | {
        f"{text.stem}_words": corpus.num_words,
        f"{text.stem}_unknown_share": 1 - known / corpus.num_words,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="an output folder of run_pretrain.py")
    parser.add_argument("texts", type=Path, nargs="+", help="raw texts")
    parser.add_argument("--output_file", type=Path, required=True, help="a JSON file to write")
    args = parser.parse_args()
    accelerator = Accelerator()
    model = load_model(ElmoForPreTraining, args.model).to(accelerator.device)
    splitter = ElmoTokenizer.from_pretrained(args.model).word_splitter
    figures: dict[str, float] = {}
    with TemporaryDirectory() as folder:
        for text in args.texts:
            found = measure(accelerator, model, splitter, text, Path(folder) / text.name)
            print(format_figures(found))
            figures |= found
    write_text(args.output_file, json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    run_program(main)
