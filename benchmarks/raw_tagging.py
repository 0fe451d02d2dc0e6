"""Tagging raw text against tagging its words, split beforehand, in alternation.

    python benchmarks/raw_tagging.py gold.conllu [--rounds 7]

Both tag the text of a treebank with the bundled tagger and format CoNLL-U; the second is given the
words that the splitter finds. The figure is the ratio of the medians of words per second.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

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
    parser.add_argument("gold", type=Path, help="a CoNLL-U file")
    parser.add_argument("--rounds", type=int, default=7, help="how often each is measured")
    args = parser.parse_args()
    texts = [paragraph.text.rstrip() + "\n" for paragraph in read_paragraphs(args.gold)]
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
    speeds: dict[Callable[[], int], list[float]] = {raw: [], tokenised: []}
    # the first round warms up
    for number in range(args.rounds + 1):
        for work, found in speeds.items():
            started = time.perf_counter()
            work()
            if number:
                found.append(words / (time.perf_counter() - started))
    medians = {work.__name__: statistics.median(found) for work, found in speeds.items()}
    for name, speed in medians.items():
        print(f"{name:<10} {speed:8,.0f} words/s")
    print(f"ratio      {medians['raw'] / medians['tokenised']:8.2f}")


if __name__ == "__main__":
    main()
