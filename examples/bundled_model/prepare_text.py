"""Make the text that the bundled model reads, and what it is measured on: raw text of four corpora.

    python examples/bundled_model/prepare_text.py --data corpora --output_dir outputs/bundled/text

The folder README.md beside this script says what `--data` holds. In all files that are written, a
line is a paragraph of raw text. `train/` is read, everything else is only measured on;
`sources.tsv` lists what was read, with licences, and `attribution.txt` is OpenStax's.
"""

import argparse
import csv
import gzip
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from tqdm.auto import tqdm

from elmo_hf import ElmoTokenizer
from elmo_hf.system import new_folder, run_program

# How often each part of the training text is in it. The web's English, on which the tagger is
# trained, would otherwise be less than a hundredth of what the model reads.
TIMES = {"standardebooks": 1, "openstax": 1, "wikitext-2": 2, "ewt": 8}
# SOURCES.tsv says so of books whose authors or translators died less than 70 years ago.
IN_COPYRIGHT = "in copyright where life+70 applies"
# Books have typographic quotes and apostrophes, which few people type. In every other book they
# become those of keyboards, so that the model reads both.
TYPED = str.maketrans("“”‘’", "\"\"''")
COLUMNS = ("source", "title", "commit", "licence", "words", "times")


class Source(NamedTuple):
    """A book or a corpus that the model reads."""

    name: str
    title: str
    commit: str
    licence: str
    words: int

    @property
    def part(self) -> str:
        """What it is counted with: the collection of a book, or the corpus itself."""
        return self.name.partition("/")[0]


# Prose: whole books, one after the other in files of several


def read_books(folder: Path) -> dict[str, list[Source]]:
    """The books by the file that holds them, in their order in it."""
    books: dict[str, list[Source]] = {}
    with (folder / "SOURCES.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            book = Source(
                row["slug"], row["title"], row["commit"], row["licence"], int(row["words"])
            )
            books.setdefault(row["part"], []).append(book)
    return books


def cut_into_books(path: Path, books: list[Source]) -> Iterator[tuple[Source, list[str]]]:
    """The paragraphs of each book, which ends where its number of words is reached."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for book in books:
            paragraphs, words = [], 0
            while words < book.words:
                paragraph = next(lines, None)
                if paragraph is None:
                    break
                paragraphs.append(paragraph)
                words += len(paragraph.split(" "))
            if words != book.words:
                raise ValueError(
                    f"{str(path)!r}: {book.title!r} should have {book.words:,} words but has "
                    f"{words:,}; get the corpus again."
                )
            yield book, paragraphs
        if next(lines, None) is not None:
            raise ValueError(f"{str(path)!r} goes on after its last book; get the corpus again.")


def attribution(folder: Path, books: Iterable[Source]) -> Iterator[str]:
    """What the licence of these books asks to be said of them: a line for each."""
    known = {}
    for line in (folder / "PROVENANCE.txt").read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"  (.*OpenStax, Rice University\. CC BY 4\.0\..*)", line):
            known[match[1].partition(". ")[0]] = match[1]
    for book in books:
        title = book.title.removesuffix(", by OpenStax")
        # one title has a period and a blank in it
        found = [line for start, line in known.items() if line.startswith(f"{title}. ")]
        if len(found) != 1:
            raise ValueError(f"PROVENANCE.txt has no attribution for {title!r}; add it.")
        yield found[0]


# WikiText-2: its tokens become raw text again

OPENING = set("([{‘“$£€₹¥#")
CLOSING = {*")]}’”.,:;?!%…′″", "..."}
# written without blanks on either side; an en dash only between numbers
JOINING = {"@-@": "-", "@,@": ",", "@.@": ".", "/": "/", "—": "—"}
BETWEEN_NUMBERS = {"–", ":"}
QUOTES = {'"', "'"}
UNKNOWN = "<unk>"
# stands for it while sentences are found: a name, as most unknown words are
STAND_IN = "Unknownword"


def undo_tokens(tokens: list[str]) -> str:
    """A paragraph of WikiText as it was written, apart from unknown words."""
    text, is_glued = "", True
    open_quotes: set[str] = set()
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        is_between = text[-1:].isdigit() and following[:1].isdigit()
        joins = token in JOINING or (token in BETWEEN_NUMBERS and is_between)
        # 's and 't, but also the rest of O'Brien
        closes = joins or token in CLOSING or re.fullmatch(r"['’]\w+", token) is not None
        opens = joins or token in OPENING
        if token in QUOTES:
            # that of the books' covers
            is_owner = token == "'" and token not in open_quotes and text.endswith("s")
            closes = is_owner or token in open_quotes
            opens = not closes
            open_quotes ^= set() if is_owner else {token}
        text += ("" if closes or is_glued else " ") + JOINING.get(token, token)
        is_glued = opens
    return text


def wikitext_paragraphs(path: Path) -> Iterator[str]:
    """
    The paragraphs of a file without headings, and without the sentences that have a word which
    WikiText does not tell: no raw text has such a word.
    """
    split = ElmoTokenizer(word_splitter="english").split
    for line in path.read_text(encoding="utf-8").splitlines():
        tokens = line.replace("\ufeff", "").split()
        if not tokens or (tokens[0] == "=" and tokens[-1] == "="):
            continue
        text = undo_tokens([STAND_IN if token == UNKNOWN else token for token in tokens])
        sentences = [text[one.spans[0][0] : one.spans[-1][1]] for one in split(text)]
        if known := [one for one in sentences if STAND_IN not in one]:
            yield " ".join(known) + "\n"


def treebank_sentences(path: Path) -> Iterator[str]:
    """The raw text of the sentences of a CoNLL-U file."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("# text = "):
                yield line.removeprefix("# text = ")


# Everything


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of the corpora")
    parser.add_argument("--output_dir", type=Path, required=True, help="the folder to write")
    args = parser.parse_args()
    prose, wikitext = args.data / "english_prose", args.data / "wikitext2"
    treebank = args.data / "ud_english_ewt"
    with new_folder(args.output_dir, overwrite=False) as folder:
        (folder / "train").mkdir()
        sources = [
            *write_prose(prose, folder),
            write_corpus(
                folder,
                "wikitext-2",
                "WikiText-2: good and featured articles of Wikipedia",
                wikitext_paragraphs(wikitext / "train.txt"),
            ),
            write_corpus(
                folder,
                "ewt",
                "UD English-EWT: weblogs, newsgroups, emails, reviews, answers",
                treebank_sentences(treebank / "en_ewt-ud-train.conllu"),
            ),
        ]
        write(folder / "wikitext-2-test.txt", wikitext_paragraphs(wikitext / "test.txt"))
        dev = treebank_sentences(treebank / "en_ewt-ud-dev.conllu")
        write(folder / "ewt-dev.txt", dev)
        write_sources(folder / "sources.tsv", sources)
        openstax = [source for source in sources if source.part == "openstax"]
        lines = (f"{line}\n" for line in attribution(prose, openstax))
        write(folder / "attribution.txt", lines)
    words = {part: sum(one.words for one in sources if one.part == part) for part in TIMES}
    for part, number in words.items():
        print(f"{part:15} {number:11,} words, {TIMES[part]} x")
    print(f"{sum(TIMES[part] * number for part, number in words.items()):27,} words to read")


def write_prose(prose: Path, folder: Path) -> list[Source]:
    """Writes all books; returns those to train on."""
    sources: list[Source] = []
    for part, books in tqdm(read_books(prose).items(), desc="books", unit="file"):
        for book, paragraphs in cut_into_books(prose / f"{part}.txt.gz", books):
            if part in ("valid", "test"):
                append(folder / f"prose-{part}.txt", paragraphs)
            elif IN_COPYRIGHT not in book.licence:
                typed = (paragraph.translate(TYPED) for paragraph in paragraphs)
                is_odd = len(sources) % 2 == 1
                append(folder / "train" / f"{book.part}.txt", typed if is_odd else paragraphs)
                sources.append(book)
    return sources


def write_corpus(folder: Path, name: str, title: str, paragraphs: Iterable[str]) -> Source:
    """Writes training text that is no book."""
    lines = list(paragraphs)
    write(folder / "train" / f"{name}.txt", chain.from_iterable([lines] * TIMES[name]))
    words = sum(len(line.split()) for line in lines)
    return Source(name, title, "", "CC BY-SA 4.0", words)


def write_sources(path: Path, sources: Iterable[Source]) -> None:
    rows = [COLUMNS, *((*source, TIMES[source.part]) for source in sources)]
    write(path, ("\t".join(map(str, row)) + "\n" for row in rows))


def write(path: Path, lines: Iterable[str]) -> None:
    path.unlink(missing_ok=True)
    append(path, lines)


def append(path: Path, lines: Iterable[str]) -> None:
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)


if __name__ == "__main__":
    run_program(main)
