"""Our tokenizer beside AllenNLP 2.10.1's own character mapping, in one process and on one text.

    python benchmarks/tokenizer_speed.py --allennlp allennlp-2.10.1 --text sentences.txt

`--allennlp` is the unpacked sdist of AllenNLP. Only its file `elmo_indexer.py` is loaded; stand-ins
replace what this file imports besides the mapping, so AllenNLP need not be installed. The ids are
compared before anything is timed, and the two sides take turns, so that a busy machine slows both.
For lists our side also returns offsets, which AllenNLP does not.
"""

import argparse
import importlib.util
import statistics
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import torch

from elmo_hf import ElmoTokenizer


class StandIn:
    @classmethod
    def register(cls, name: str) -> Callable:
        return lambda decorated: decorated


def load_mapper(folder: Path):
    """AllenNLP's `ELMoCharacterMapper`, from a folder that holds the package `allennlp`."""
    names = {
        "allennlp.common.util": ["pad_sequence_to_length"],
        "allennlp.data.tokenizers": ["Token"],
        "allennlp.data.token_indexers.token_indexer": ["TokenIndexer", "IndexedTokenList"],
        "allennlp.data.vocabulary": ["Vocabulary"],
    }
    for name, members in names.items():
        module = types.ModuleType(name)
        module.__dict__.update(dict.fromkeys(members, StandIn))
        sys.modules[name] = module
    path = folder / "allennlp/data/token_indexers/elmo_indexer.py"
    spec = importlib.util.spec_from_file_location("elmo_indexer", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is not a module of AllenNLP.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ELMoCharacterMapper()


def seconds(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--allennlp", type=Path, required=True, help="unpacked sdist, 2.10.1")
    parser.add_argument("--text", type=Path, required=True, help="one UTF-8 sentence per line")
    parser.add_argument("--sentences", type=int, default=1000, help="sentences in one call")
    parser.add_argument("--rounds", type=int, default=21, help="how often each side is timed")
    args = parser.parse_args()

    encode = load_mapper(args.allennlp).convert_word_to_char_ids
    tokenizer = ElmoTokenizer()
    lines = args.text.read_text(encoding="utf-8").splitlines()
    texts = [line for line in lines if line.strip()][: args.sentences]
    sentences = [text.split() for text in texts]

    def their_lists():
        return [[encode(word) for word in words] for words in sentences]

    def our_lists():
        batch = tokenizer(sentences, is_split_into_words=True, return_offsets_mapping=True)
        return batch["input_ids"]

    def their_texts():
        return [[encode(word) for word in text.split()] for text in texts]

    def our_texts():
        return tokenizer(texts, return_offsets_mapping=True)["input_ids"]

    def their_tensor():
        ids = torch.zeros(len(sentences), max(map(len, sentences)), 50, dtype=torch.long)
        for row, words in enumerate(sentences):
            ids[row, : len(words)] = torch.tensor([encode(word) for word in words])
        return ids

    def our_tensor():
        options = {"is_split_into_words": True, "padding": True, "return_tensors": "pt"}
        return tokenizer(sentences, **options)["input_ids"]

    cases = {
        "split words": (their_lists, our_lists),
        "raw strings": (their_texts, our_texts),
        "padded tensor": (their_tensor, our_tensor),
    }
    for name, (theirs, ours) in cases.items():
        expected, found = theirs(), ours()
        equal = expected == found if isinstance(expected, list) else torch.equal(expected, found)
        if not equal:
            raise SystemExit(f"The ids differ for {name}, so there is nothing to time.")

    words = sum(map(len, sentences))
    print(f"{len(texts)} sentences, {words} words per call; medians of {args.rounds} calls each")
    for name, (theirs, ours) in cases.items():
        times = [(seconds(theirs), seconds(ours)) for _ in range(args.rounds)]
        their, our = (1e3 * statistics.median(column) for column in zip(*times, strict=True))
        print(
            f"{name:14}  allennlp {their:6.1f} ms  elmo_hf {our:6.1f} ms  {their / our:.1f} times"
        )


if __name__ == "__main__":
    main()
