"""Tagging raw text against tagging its words, split beforehand, in alternation in one process.

    python benchmarks/raw_tagging.py --treebank gold.conllu

Both tag the text of a treebank with the bundled tagger and format CoNLL-U; the second is given the
words that the splitter finds.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from measuring import alternate, report, timed

from elmo_hf import ElmoTagger
from elmo_hf.tagging.conllu import format_sentence
from elmo_hf.tagging.gold_text import read_paragraphs
from elmo_hf.tagging.output import as_conllu
from elmo_hf.tagging.text_tagging import tag_text
from elmo_hf.text.lines import RawLine, RawSource


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--treebank", type=Path, required=True, help="a CoNLL-U file")
    parser.add_argument("--rounds", type=int, default=7, help="how often each is measured")
    args = parser.parse_args()
    texts = [paragraph.text.rstrip() + "\n" for paragraph in read_paragraphs(args.treebank)]
    tagger = ElmoTagger()
    sentences = [sentence.words for text in texts for sentence in tagger.split(text)]

    def lines() -> Iterator[RawLine]:
        for number, text in enumerate(texts):
            yield RawLine(number, text, len(text), str(number))

    def raw() -> int:
        groups = tag_text(tagger, RawSource("text", lines(), None, is_stream=False))
        return sum(len(as_conllu(tagged)) for group in groups for tagged in group)

    def tokenised() -> int:
        return sum(len(format_sentence(s.words, s.tags)) for s in tagger.tag(sentences))

    words = sum(map(len, sentences))
    # each warms up
    raw()
    tokenised()
    sides = {"raw text": timed(raw, words), "words": timed(tokenised, words)}
    report(alternate(sides, args.rounds))


if __name__ == "__main__":
    main()
