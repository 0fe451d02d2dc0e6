# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Text of any size as numbered blocks of lines, from files or from a dataset.

A corpus is read once when it is opened, to count it and to find its blocks; afterwards only the
blocks that are asked for are in memory.
"""

import itertools
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from elmo_hf.text.dataset_rows import check_column, check_sentence
from elmo_hf.text_lines import decode_line, open_text, raw_lines

LINES_IN_BLOCK = 1 << 10
# a line of text, or words that are split already
Sentence = str | list[str]


class Block(NamedTuple):
    """Some consecutive lines of a file."""

    file: int
    # where the block begins, in bytes of (uncompressed) text and in lines
    offset: int
    first_line: int
    lines: int
    # how many of the lines are not blank
    sentences: int


class BlockCorpus:
    """What streams need to know of a text: its blocks and counts; subclasses read the sentences."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.num_words = 0
        self.num_sentences = 0
        # of all lines, as text
        self.crc = 0

    @property
    def checksum(self) -> str:
        """Recognises the same text, gzipped or not, in one file or in many."""
        return f"{self.crc:08x}-{self.num_words}-{self.num_sentences}"

    def add_block(self, block: Block) -> None:
        self.blocks.append(block)
        self.num_sentences += block.sentences

    @property
    def num_predictions(self) -> int:
        """Words and sentence ends: what one direction predicts in one epoch."""
        return self.num_words + self.num_sentences

    def read(self, numbers: Iterable[int]) -> list[Sentence]:
        """The sentences of the blocks with these numbers, in the order of the text."""
        raise NotImplementedError


class Corpus(BlockCorpus):
    """
    Tokenised text with one sentence per line, in one file or in many, gzipped or not.

    `counts`, if given, receives the frequencies of all words. `progress`, if given, is called after
    every line with the number of bytes that the line took on the disk.
    """

    def __init__(
        self,
        files: Sequence[str | Path],
        counts: Counter[str] | None = None,
        progress: Callable[[int], Any] | None = None,
    ):
        super().__init__()
        self.files = [Path(file) for file in files]
        for number, file in enumerate(self.files):
            self._scan(number, file, counts, progress)
        if not self.num_sentences:
            names = ", ".join(str(file) for file in self.files)
            raise ValueError(f"There is no sentence in {names}.")

    def _scan(
        self,
        number: int,
        file: Path,
        counts: Counter[str] | None,
        progress: Callable[[int], Any] | None,
    ) -> None:
        offset = line_number = start = first = sentences = 0
        for line_number, (line, size) in enumerate(raw_lines(file), start=1):
            words = decode_line(line, file, line_number).split()
            self.num_words += len(words)
            sentences += bool(words)
            offset += len(line)
            self.crc = zlib.crc32(line, self.crc)
            if counts is not None:
                counts.update(words)
            if progress is not None:
                progress(size)
            if line_number - first == LINES_IN_BLOCK:
                self.add_block(Block(number, start, first, LINES_IN_BLOCK, sentences))
                start, first, sentences = offset, line_number, 0
        if line_number > first:
            self.add_block(Block(number, start, first, line_number - first, sentences))

    def read(self, numbers: Iterable[int]) -> list[Sentence]:
        sentences: list[Sentence] = []
        # gzipped text can only be read forwards, so every file is opened once
        for file, group in itertools.groupby(sorted(numbers), lambda at: self.blocks[at].file):
            with open_text(self.files[file]) as lines:
                for at in group:
                    sentences += self._read_block(lines, self.blocks[at])
        return sentences

    def _read_block(self, lines: BinaryIO, block: Block) -> list[str]:
        file = self.files[block.file]
        lines.seek(block.offset)
        numbered = zip(range(block.lines), lines, strict=False)
        read = [decode_line(line, file, block.first_line + at + 1) for at, line in numbered]
        sentences = [line for line in read if line.strip()]
        if len(sentences) != block.sentences:
            raise ValueError(f"{str(file)!r} has changed since it was counted; start again.")
        return sentences


class DatasetCorpus(BlockCorpus):
    """
    A `datasets` dataset with a column of sentences, which are strings or lists of words.

    `counts` is as for `Corpus`; `progress` is called with the number of rows of every block.
    """

    def __init__(
        self,
        dataset: Any,
        column: str = "text",
        counts: Counter[str] | None = None,
        progress: Callable[[int], Any] | None = None,
    ):
        super().__init__()
        check_column(dataset, column)
        self.dataset, self.column = dataset, column
        for start in range(0, len(dataset), LINES_IN_BLOCK):
            sentences = self._sentences(start)
            for sentence in sentences:
                words = words_of(sentence)
                self.num_words += len(words)
                self.crc = zlib.crc32(" ".join(words).encode(), self.crc)
                if counts is not None:
                    counts.update(words)
            rows = min(LINES_IN_BLOCK, len(dataset) - start)
            self.add_block(Block(0, start, start, rows, len(sentences)))
            if progress is not None:
                progress(rows)
        if not self.num_sentences:
            raise ValueError(f"There is no sentence in the dataset's column {column!r}.")

    def read(self, numbers: Iterable[int]) -> list[Sentence]:
        starts = [self.blocks[number].first_line for number in sorted(numbers)]
        return [sentence for start in starts for sentence in self._sentences(start)]

    def _sentences(self, start: int) -> list[Sentence]:
        try:
            rows = self.dataset[start : start + LINES_IN_BLOCK][self.column]
        except UnicodeDecodeError as error:
            raise ValueError(
                f"The dataset's column {self.column!r} is not UTF-8 after row {start}; create the "
                "data again."
            ) from error
        for number, row in enumerate(rows, start=start):
            check_sentence(row, f"Row {number} of the dataset: {self.column!r}")
        return [row for row in rows if words_of(row)]


def words_of(sentence: Sentence) -> list[str]:
    return sentence.split() if isinstance(sentence, str) else sentence
