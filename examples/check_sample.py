"""Check tagged files: valid universal tags, no sentence twice, none nearly twice across files.

python examples/check_sample.py [train.conllu dev.conllu test.conllu]
"""

import argparse
import itertools
import sys
from pathlib import Path

from elmo_hf.tagging import read_tagged

FOLDER = Path(__file__).parent / "sample"
UNIVERSAL_TAGS = {
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM"),
    *("PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
}
# Sentences that share more than this of their distinct words are nearly the same.
NEARLY = 0.6


def check(files: list[Path]) -> list[str]:
    """What is wrong, one sentence per fault."""
    faults = []
    sentences = []
    for file in files:
        for sentence in read_tagged(file):
            where = f"{file.name}, line {sentence['line']}"
            unknown = set(sentence["tags"]) - UNIVERSAL_TAGS
            faults += [f"{where}: {tag!r} is not a universal tag" for tag in sorted(unknown)]
            words = frozenset(word.lower() for word in sentence["tokens"])
            sentences.append((file, where, sentence["tokens"], words))
    for first, second in itertools.combinations(sentences, 2):
        shared = len(first[3] & second[3]) / len(first[3] | second[3])
        if first[2] == second[2]:
            faults.append(f"{second[1]}: the same sentence as {first[1]}")
        elif first[0] != second[0] and shared > NEARLY:
            faults.append(f"{second[1]}: nearly the same sentence as {first[1]}")
    return faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = [FOLDER / f"{split}.conllu" for split in ("train", "dev", "test")]
    parser.add_argument("files", nargs="*", type=Path, default=default, help="default: the sample")
    faults = check(parser.parse_args().files)
    print("\n".join(faults) or "nothing is wrong")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
