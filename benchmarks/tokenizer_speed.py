"""Our tokenizer beside AllenNLP 2.10.1's own character mapping, in one process and on one text.

    python benchmarks/tokenizer_speed.py --allennlp allennlp-2.10.1 --text sentences.txt

`--allennlp` is the unpacked sdist of AllenNLP. Only its file `elmo_indexer.py` is loaded; stand-ins replace what this
file imports besides the mapping, so AllenNLP need not be installed. The ids are compared before anything is timed, and
the two sides take turns, so that a busy machine slows both. Our side also returns offsets, which AllenNLP has not.
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
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ELMoCharacterMapper()


def seconds(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--allennlp", type=Path, required=True, help="unpacked sdist of AllenNLP 2.10.1")
    parser.add_argument("--text", type=Path, required=True, help="UTF-8 text, one sentence a line")
    parser.add_argument("--sentences", type=int, default=1000, help="sentences in one call")
    parser.add_argument("--rounds", type=int, default=11, help="how often each side is timed")
    args = parser.parse_args()

    mapper = load_mapper(args.allennlp)
    tokenizer = ElmoTokenizer()
    texts = [line for line in args.text.read_text(encoding="utf-8").splitlines() if line.strip()][: args.sentences]
    sentences = [text.split() for text in texts]

    def theirs_lists():
        return [[mapper.convert_word_to_char_ids(word) for word in words] for words in sentences]

    def theirs_texts():
        return [[mapper.convert_word_to_char_ids(word) for word in text.split()] for text in texts]

    def theirs_tensor():
        ids = torch.zeros(len(sentences), max(map(len, sentences)), mapper.max_word_length, dtype=torch.long)
        for row, words in enumerate(sentences):
            ids[row, : len(words)] = torch.tensor([mapper.convert_word_to_char_ids(word) for word in words])
        return ids

    def ours_lists():
        return tokenizer(sentences, is_split_into_words=True, return_offsets_mapping=True)["input_ids"]

    def ours_texts():
        return tokenizer(texts, return_offsets_mapping=True)["input_ids"]

    def ours_tensor():
        return tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")["input_ids"]

    cases = {
        "split words": (theirs_lists, ours_lists),
        "raw strings": (theirs_texts, ours_texts),
        "padded tensor": (theirs_tensor, ours_tensor),
    }
    for name, (theirs, ours) in cases.items():
        expected, found = theirs(), ours()
        if not (torch.equal(expected, found) if isinstance(expected, torch.Tensor) else expected == found):
            raise SystemExit(f"The ids differ for {name}, so there is nothing to time.")

    words = sum(map(len, sentences))
    print(f"{len(sentences)} sentences, {words} words a call; medians of {args.rounds} calls, taken in turns")
    for name, (theirs, ours) in cases.items():
        times = [(seconds(theirs), seconds(ours)) for _ in range(args.rounds)]
        their_median, our_median = (statistics.median(column) for column in zip(*times, strict=True))
        ratios = sorted(their / our for their, our in times)
        print(
            f"{name:14} allennlp {their_median * 1e3:7.1f} ms   elmo_hf {our_median * 1e3:7.1f} ms   "
            f"ratio {their_median / our_median:5.1f}  (single rounds {ratios[0]:.1f} to {ratios[-1]:.1f})"
        )


if __name__ == "__main__":
    main()
