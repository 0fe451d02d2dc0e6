"""Our tokenizer beside AllenNLP's own character mapping, on one text.

    python benchmarks/tokenizer_speed.py --case split-words --text sentences.txt

The ids are compared before anything is timed. A call takes milliseconds, so the two sides take
turns within one process. For lists our side also returns offsets, which AllenNLP does not.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from environments import PROGRAMS, package_of
from measuring import alternate, report, timed

from elmo_hf import ElmoTokenizer


def load_mapper():
    """AllenNLP's `ELMoCharacterMapper`, loaded as the peer loads it."""
    sys.path += [str(PROGRAMS), str(package_of("allennlp").parent)]
    from allennlp_peer import import_elmo

    return import_elmo()[1]


def split_words(encode: Callable, tokenizer: ElmoTokenizer, texts: list[str]) -> tuple:
    sentences = [text.split() for text in texts]
    options = {"is_split_into_words": True, "return_offsets_mapping": True}
    return (
        lambda: tokenizer(sentences, **options)["input_ids"],
        lambda: [[encode(word) for word in words] for words in sentences],
    )


def raw_strings(encode: Callable, tokenizer: ElmoTokenizer, texts: list[str]) -> tuple:
    return (
        lambda: tokenizer(texts, return_offsets_mapping=True)["input_ids"],
        lambda: [[encode(word) for word in text.split()] for text in texts],
    )


def padded_tensor(encode: Callable, tokenizer: ElmoTokenizer, texts: list[str]) -> tuple:
    sentences = [text.split() for text in texts]
    options = {"is_split_into_words": True, "padding": True, "return_tensors": "pt"}

    def theirs() -> torch.Tensor:
        ids = torch.zeros(len(sentences), max(map(len, sentences)), 50, dtype=torch.long)
        for row, words in enumerate(sentences):
            ids[row, : len(words)] = torch.tensor([encode(word) for word in words])
        return ids

    return lambda: tokenizer(sentences, **options)["input_ids"], theirs


CASES = {"split-words": split_words, "raw-strings": raw_strings, "padded-tensor": padded_tensor}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", choices=CASES, required=True)
    parser.add_argument("--text", type=Path, required=True, help="one UTF-8 sentence per line")
    parser.add_argument("--sentences", type=int, default=1000, help="sentences in one call")
    parser.add_argument("--rounds", type=int, default=21, help="how often each side is timed")
    args = parser.parse_args()
    lines = args.text.read_text(encoding="utf-8").splitlines()
    texts = [line for line in lines if line.strip()][: args.sentences]
    encode = load_mapper().convert_word_to_char_ids
    ours, theirs = CASES[args.case](encode, ElmoTokenizer(), texts)
    found, expected = ours(), theirs()
    equal = expected == found if isinstance(expected, list) else torch.equal(expected, found)
    if not equal:
        raise SystemExit(f"The ids differ for {args.case}, so there is nothing to time.")
    words = sum(len(text.split()) for text in texts)
    sides = {"elmo_hf": timed(ours, words), "allennlp": timed(theirs, words)}
    report(alternate(sides, args.rounds))


if __name__ == "__main__":
    main()
