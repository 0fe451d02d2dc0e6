"""Do the vectors of a word know which of its senses is meant? Nearest neighbours, layer by layer.

    python examples/word_senses.py [--model_name_or_path my-elmo] [--output_dir outputs/senses]

`senses/sentences.tsv` has fifty sentences: five words with two senses each, and five sentences per
sense. For each sentence the script finds the sentence of the same word in which the vector of the
word is nearest, and counts how often that one has the same sense. By chance that happens 4 times in
9. The token layer does not see the context, so all of its neighbours are equally near.

With `--output_dir` the vectors of each layer are drawn on a plane, as a PNG and a page whose dots
show their sentences. `--picture` writes only the PNG; the picture in README is made by

    python examples/word_senses.py --words spring duck --picture docs/images/word-senses.png
"""

import argparse
import json
from pathlib import Path

from elmo_hf import ElmoModel, ElmoTokenizer
from elmo_hf.hub import BUNDLED, find_model
from elmo_hf.pages import (
    chance_share,
    draw_senses,
    read_occurrences,
    study_words,
    write_senses_page,
)
from elmo_hf.system import run_program, write_text

SENTENCES = Path(__file__).resolve().parent / "senses" / "sentences.tsv"


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model_name_or_path", type=find_model, default=BUNDLED, help="an ELMo folder or Hub name"
    )
    parser.add_argument(
        "--sentences", type=Path, default=SENTENCES, help="a table of word, sense and sentence"
    )
    parser.add_argument("--words", nargs="+", help="which words of the table (default: all)")
    parser.add_argument("--output_dir", type=Path, help="for senses.json, senses.png, senses.html")
    parser.add_argument("--picture", type=Path, help="a PNG file to draw the vectors into")
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    # 1. Read the sentences.
    occurrences = read_occurrences(args.sentences)
    known = dict.fromkeys(one.word for one in occurrences)
    words = list(dict.fromkeys(args.words or known))
    unknown = [word for word in words if word not in known]
    if unknown:
        raise ValueError(f"{args.sentences} has no sentence for {unknown[0]!r}.")
    occurrences = [one for word in words for one in occurrences if one.word == word]

    # 2. Embed each word in its sentences and find the nearest neighbours.
    model = ElmoModel.from_pretrained(args.model_name_or_path).prepare_for_inference()
    tokenizer = ElmoTokenizer.from_pretrained(args.model_name_or_path)
    studies = study_words(model, tokenizer, occurrences)

    # 3. Print how often the nearest neighbour has the same sense.
    figures = {study.word: study.shares for study in studies}
    columns = list(zip(*figures.values(), strict=True))
    figures["all"] = [sum(column) / len(column) for column in columns]
    print(f"nearest neighbour has the same sense (by chance {chance_share(occurrences):.0%})")
    print("         " + "".join(f"layer {layer}  " for layer in range(len(columns))))
    for word, shares in figures.items():
        print(f"{word:8} " + "".join(f"{share:7.0%}  " for share in shares))
    print("\nnearest neighbours in the top layer (* = another sense)")
    for study in studies:
        for number, near in study.links(-1):
            one, other = study.occurrences[number], study.occurrences[near]
            mark = " " if one.sense == other.sense else "*"
            print(f"{mark} {one.word:7} {one.sense:9} {one.sentence}\n{'':19}-> {other.sentence}")

    # 4. Draw them.
    if args.picture is not None:
        draw_senses(studies, args.picture)
    if args.output_dir is not None:
        args.output_dir.mkdir(parents=True, exist_ok=True)
        text = json.dumps(figures, indent=1) + "\n"
        write_text(args.output_dir / "senses.json", text)
        draw_senses(studies, args.output_dir / "senses.png")
        write_senses_page(studies, args.output_dir / "senses.html")
        print(f"\nopen {args.output_dir / 'senses.html'}")


if __name__ == "__main__":
    run_program(main)
