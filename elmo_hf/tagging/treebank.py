# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""CoNLL-U files line by line: nothing in them is lost, and any size is read in bounded memory."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from elmo_hf.tagging import conllu
from elmo_hf.tagging.rows import WholeLine, empty_column, whole_lines, wrong_id, wrong_width
from elmo_hf.tagging.tagger import ElmoTagger, tag_groups
from elmo_hf.text.files import check_file

ID, FORM, UPOS, MISC = (conllu.COLUMNS.index(name) for name in ("id", "form", "upos", "misc"))
# More words than this have no sentence; Python itself refuses numbers of thousands of digits.
LONGEST_NUMBER = 9


class Row(NamedTuple):
    """A line of ten columns."""

    # the number of its line in the file
    line: int
    columns: list[str]
    # the first and the last word of a range; a word is both
    first: int
    last: int

    @property
    def form(self) -> str:
        return self.columns[FORM]

    @property
    def misc(self) -> str:
        return self.columns[MISC]


@dataclass
class TreebankSentence:
    """
    The lines of a sentence up to the blank line that ends it. A second blank line, or comments
    without a sentence, are one without words.
    """

    path: Path
    lines: list[WholeLine] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    words: list[Row] = field(default_factory=list)
    # words that are written together, as in `2-3 don't`, in the order of the file
    ranges: list[Row] = field(default_factory=list)
    # words that are not in the text, as in `3.1`
    empty_nodes: list[Row] = field(default_factory=list)

    @property
    def forms(self) -> list[str]:
        return [word.form for word in self.words]

    def add(self, line: WholeLine) -> None:
        self.lines.append(line)
        if conllu.is_comment(line.text):
            self.comments.append(line.text)
        elif line.text.strip():
            self._add_row(line)

    def _add_row(self, line: WholeLine) -> None:
        where, columns = self._where(line.number), line.text.split("\t")
        if len(columns) != len(conllu.COLUMNS):
            wanted = f"CoNLL-U has {len(conllu.COLUMNS)}"
            raise wrong_width(where, len(columns), "\t", wanted)
        numbers = columns[ID].replace(".", "-").split("-")
        if not conllu.is_conllu(columns) or len(max(numbers, key=len)) > LONGEST_NUMBER:
            raise wrong_id(where, columns[ID])
        row = Row(line.number, columns, int(numbers[0]), int(numbers[-1]))
        if "." in columns[ID]:
            self._add_empty_node(row)
            return
        if not row.form.strip():
            raise empty_column(where, FORM)
        if "-" in columns[ID]:
            self._add_range(row)
        else:
            self._add_word(row)

    def _add_word(self, row: Row) -> None:
        if row.first != len(self.words) + 1:
            raise ValueError(
                f"{self._where(row.line)}: the word {row.form!r:.50} has the number {row.first}, "
                f"but it is word {len(self.words) + 1} of its sentence; correct the number."
            )
        self.words.append(row)

    def _add_range(self, row: Row) -> None:
        before = self.ranges[-1].last if self.ranges else 0
        if row.first != len(self.words) + 1 or row.last < row.first or row.first <= before:
            raise self._wrong_range(row)
        self.ranges.append(row)

    def _add_empty_node(self, row: Row) -> None:
        if row.first != len(self.words):
            raise ValueError(
                f"{self._where(row.line)}: the empty node {row.columns[ID]} is not after word "
                f"{row.first} of its sentence; move it or correct its number."
            )
        self.empty_nodes.append(row)

    def finish(self) -> None:
        """Checks what only the end of a sentence shows."""
        if self.ranges and self.ranges[-1].last > len(self.words):
            raise self._wrong_range(self.ranges[-1])

    def _wrong_range(self, row: Row) -> ValueError:
        return ValueError(
            f"{self._where(row.line)}: the range {row.columns[ID]} is not followed by the words of "
            "these numbers, or it overlaps another range; correct it."
        )

    def _where(self, number: int) -> str:
        return f"{str(self.path)!r}, line {number}"


def read_treebank(path: Path) -> Iterator[TreebankSentence]:
    """All lines of a file by sentences; an error names the line that is wrong."""
    check_file(path)
    sentence = TreebankSentence(path)
    for line in whole_lines(path):
        sentence.add(line)
        if not line.text.strip():
            sentence.finish()
            yield sentence
            sentence = TreebankSentence(path)
    if sentence.lines:
        sentence.finish()
        yield sentence


def fill_tags(path: Path, tagger: ElmoTagger) -> Iterator[str]:
    """A file's text with the tagger's tags as UPOS of its words, and all else as it was."""
    groups = ((sentence, [sentence.forms]) for sentence in read_treebank(path))
    for sentence, [tagged] in tag_groups(tagger, groups):
        yield with_tags(sentence, tagged.tags)


def with_tags(sentence: TreebankSentence, tags: list[str]) -> str:
    texts = {}
    for word, tag in zip(sentence.words, tags, strict=True):
        columns = [*word.columns[:UPOS], conllu.cell(tag), *word.columns[UPOS + 1 :]]
        texts[word.line] = "\t".join(columns)
    return "".join(line.with_text(texts.get(line.number, line.text)) for line in sentence.lines)
