"""Do the vectors of a word know which of its senses is meant? Nearest neighbours, layer by layer.

    python examples/word_senses.py [--model_name_or_path my-elmo] [--output_dir outputs/senses]

`senses/sentences.tsv` has fifty sentences of our own: five words in two senses each, five sentences
a sense. For every one of them the script looks for the sentence of the same word whose vector of
this word is the nearest, and counts how often that one has the same sense. By chance it would be 4
in 9. The token layer knows no context, so all its neighbours are equally near. With an output
folder, the vectors of every layer are shown on a plane, as a PNG and as a page to point at.
"""

import argparse
import csv
import json
from pathlib import Path
from typing import NamedTuple

import torch

from elmo_hf import ElmoModel, ElmoTokenizer
from elmo_hf.cli import run
from elmo_hf.hub.bundled import BUNDLED, find_model
from elmo_hf.pages.senses import draw_senses, write_senses

SENTENCES = Path(__file__).resolve().parent / "senses" / "sentences.tsv"
# cosines that are the same but for rounding
TIE = 1e-5


class Occurrence(NamedTuple):
    word: str
    sense: str
    sentence: str


class Study(NamedTuple):
    """What the layers make of one word: its vectors, their neighbours, how many share its sense."""

    word: str
    rows: list[Occurrence]
    vectors: torch.Tensor
    nearest: list[list[list[int]]]
    shares: list[float]


def read_occurrences(path: Path) -> list[Occurrence]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = [
            Occurrence(**row)
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]
    for number, row in enumerate(rows, start=2):
        if row.sentence.split().count(row.word) != 1:
            raise ValueError(f"{path}, line {number}: {row.word!r} should stand in it just once.")
    return rows


@torch.inference_mode()
def embed(model: ElmoModel, tokenizer: ElmoTokenizer, rows: list[Occurrence]) -> torch.Tensor:
    """The word's vector in each sentence and layer, (layers, sentences, hidden_size)."""
    words = [row.sentence.split() for row in rows]
    batch = tokenizer(words, is_split_into_words=True, padding=True, return_tensors="pt")
    layers = model(**batch, output_hidden_states=True).hidden_states
    places = [sentence.index(row.word) for row, sentence in zip(rows, words, strict=True)]
    return torch.stack(layers)[:, range(len(rows)), places]


def neighbours(vectors: torch.Tensor) -> list[list[int]]:
    """For each vector the numbers of those with the largest cosine; several if they tie."""
    unit = torch.nn.functional.normalize(vectors, dim=-1)
    cosines = (unit @ unit.T).fill_diagonal_(-2)
    best = cosines.max(dim=1, keepdim=True).values
    return [row.nonzero().flatten().tolist() for row in cosines >= best - TIE]


def same_sense(rows: list[Occurrence], nearest: list[list[int]]) -> float:
    """How often the nearest one has the same sense; ties count by their share."""
    shares = [
        sum(rows[other].sense == row.sense for other in some) / len(some)
        for row, some in zip(rows, nearest, strict=True)
    ]
    return sum(shares) / len(shares)


def chance(rows: list[Occurrence]) -> float:
    """How often any other sentence of the word has the same sense."""
    shares = []
    for row in rows:
        others = [other for other in rows if other.word == row.word and other is not row]
        shares.append(sum(other.sense == row.sense for other in others) / max(1, len(others)))
    return sum(shares) / len(shares)


def study(model: ElmoModel, tokenizer: ElmoTokenizer, rows: list[Occurrence]) -> list[Study]:
    """Every word by itself."""
    studies = []
    for word in dict.fromkeys(row.word for row in rows):
        some = [row for row in rows if row.word == word]
        vectors = embed(model, tokenizer, some)
        nearest = [neighbours(layer) for layer in vectors]
        shares = [same_sense(some, found) for found in nearest]
        studies.append(Study(word, some, vectors, nearest, shares))
    return studies


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model_name_or_path", type=find_model, default=BUNDLED, help="an ELMo folder or Hub name"
    )
    parser.add_argument("--sentences", type=Path, default=SENTENCES, help="word, sense, sentence")
    parser.add_argument("--output_dir", type=Path, help="for senses.json, senses.png, senses.html")
    args = parser.parse_args()
    rows = read_occurrences(args.sentences)
    model = ElmoModel.from_pretrained(args.model_name_or_path).prepare_for_inference()
    tokenizer = ElmoTokenizer.from_pretrained(args.model_name_or_path)
    studies = study(model, tokenizer, rows)

    figures = {study.word: study.shares for study in studies}
    columns = list(zip(*figures.values(), strict=True))
    figures["all"] = [sum(column) / len(column) for column in columns]
    print(f"nearest neighbour in the same sense (by chance {chance(rows):.0%})")
    print("         " + "".join(f"layer {layer}  " for layer in range(len(columns))))
    for word, shares in figures.items():
        print(f"{word:8} " + "".join(f"{share:7.0%}  " for share in shares))
    print("\nby the top layer")
    for one in studies:
        for row, near in zip(one.rows, one.nearest[-1], strict=True):
            other = one.rows[near[0]]
            mark = " " if row.sense == other.sense else "*"
            print(f"{mark} {row.word:7} {row.sense:9} {row.sentence}\n{'':19}-> {other.sentence}")
    if args.output_dir is not None:
        args.output_dir.mkdir(parents=True, exist_ok=True)
        text = json.dumps(figures, indent=1) + "\n"
        (args.output_dir / "senses.json").write_text(text, encoding="utf-8")
        draw_senses(studies, args.output_dir / "senses.png")
        write_senses(studies, args.output_dir / "senses.html")
        print(f"\nlook at {args.output_dir / 'senses.html'}")


if __name__ == "__main__":
    run(main)
