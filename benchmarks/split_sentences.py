"""WikiText as one sentence per line: blank lines and headings left out, split after " . ".

python benchmarks/split_sentences.py wiki.train.tokens train.txt [--unknown "<UNK>"]
"""

import argparse
import re
from pathlib import Path


def sentences(text: str):
    for line in text.splitlines():
        line = line.strip()
        # a heading looks like = = Title = =
        if line and not re.fullmatch(r"=( =)* .* =( =)*", line):
            for sentence in re.split(r"(?<= \.) ", line):
                if sentence.strip():
                    yield sentence.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("input", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--unknown", default="<unk>", help="what to write for <unk>")
    args = parser.parse_args()
    lines = [
        " ".join(args.unknown if word == "<unk>" else word for word in sentence.split())
        for sentence in sentences(args.input.read_text(encoding="utf-8"))
    ]
    args.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines):,} sentences, {sum(len(line.split()) for line in lines):,} words")


if __name__ == "__main__":
    main()
