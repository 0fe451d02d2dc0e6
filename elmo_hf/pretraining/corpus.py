# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Text for the biLM: a corpus read by blocks of lines, and the packed streams training reads.

Nothing of a corpus stays in memory but the window being read: characters become ids batch by batch,
and a stream can go on from where another one stood (`state_dict`) by reading one window again.
"""

import codecs
import functools
import glob
import gzip
import itertools
import math
import random
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import torch

from elmo_hf.characters import (
    BEGIN_SENTENCE,
    DEFAULT_WIDTH,
    END_SENTENCE,
    boundary_row,
    encode_word,
)
from elmo_hf.word_vocabulary import BEGIN, END, WordVocabulary

# Lines that stay together, and how many blocks of them, from anywhere in the corpus, are read at a
# time and shuffled. Neighbours only would not do: a model that read one part of a text last had a
# perplexity nearly a tenth higher on other text.
LINES_IN_BLOCK = 1 << 10
BLOCKS_IN_WINDOW = 1 << 6
# holds any character id
ROW_TYPE = np.dtype(np.int16)


class Block(NamedTuple):
    """Some lines of a file that follow one another."""

    file: int
    # where they begin: bytes of the text into the file, lines into it, and how many they are
    offset: int
    first_line: int
    lines: int
    # how many of them are not blank
    sentences: int


class Corpus:
    """
    Tokenised text, one sentence a line, in one file or in many, gzipped or not.

    Making one reads all of the text once, to find the blocks and to count. `counts` gets the
    words' frequencies if it is given; `progress` is told of every line how many bytes it took on
    the disk.
    """

    def __init__(
        self,
        files: Sequence[str | Path],
        counts: Counter[str] | None = None,
        progress: Callable[[int], Any] | None = None,
    ):
        self.files = [Path(file) for file in files]
        self.blocks: list[Block] = []
        self.num_words = 0
        for number, file in enumerate(self.files):
            self._scan(number, file, counts, progress)
        self.num_sentences = sum(block.sentences for block in self.blocks)
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
        for line_number, (line, size) in enumerate(text_lines(file), start=1):
            words = decode(line, file, line_number).split()
            self.num_words += len(words)
            sentences += bool(words)
            offset += len(line)
            if counts is not None:
                counts.update(words)
            if progress is not None:
                progress(size)
            if line_number - first == LINES_IN_BLOCK:
                self.blocks.append(Block(number, start, first, LINES_IN_BLOCK, sentences))
                start, first, sentences = offset, line_number, 0
        if line_number > first:
            self.blocks.append(Block(number, start, first, line_number - first, sentences))

    @property
    def num_predictions(self) -> int:
        """Words and sentence ends: what one direction predicts in one epoch."""
        return self.num_words + self.num_sentences

    def read(self, numbers: list[int]) -> list[str]:
        """The lines of some blocks that are not blank, in the order of the text."""
        sentences = []
        # gzipped text can only be read onwards, so every file is opened once
        for number, group in itertools.groupby(sorted(numbers), lambda at: self.blocks[at].file):
            with open_text(self.files[number]) as lines:
                for at in group:
                    sentences += self._read_block(lines, self.blocks[at])
        return sentences

    def _read_block(self, lines: BinaryIO, block: Block) -> list[str]:
        file = self.files[block.file]
        lines.seek(block.offset)
        numbered = zip(range(block.lines), lines, strict=False)
        read = [decode(line, file, block.first_line + at + 1) for at, line in numbered]
        sentences = [line for line in read if line.strip()]
        if len(sentences) != block.sentences:
            raise ValueError(f"{str(file)!r} has changed since it was counted; start again.")
        return sentences


class DatasetCorpus:
    """The same for a `datasets` dataset with a column of sentences: strings, or lists of words."""

    def __init__(
        self,
        dataset: Any,
        column: str = "text",
        counts: Counter[str] | None = None,
        progress: Callable[[int], Any] | None = None,
    ):
        if column not in dataset.column_names:
            names = ", ".join(dataset.column_names)
            raise ValueError(f"The dataset has no column {column!r}; it has {names}.")
        self.dataset, self.column = dataset, column
        self.blocks: list[Block] = []
        self.num_words = 0
        for start in range(0, len(dataset), LINES_IN_BLOCK):
            sentences = self._sentences(start)
            for sentence in sentences:
                words = split(sentence)
                self.num_words += len(words)
                if counts is not None:
                    counts.update(words)
            lines = min(LINES_IN_BLOCK, len(dataset) - start)
            self.blocks.append(Block(0, start, start, lines, len(sentences)))
            if progress is not None:
                progress(lines)
        self.num_sentences = sum(block.sentences for block in self.blocks)
        if not self.num_sentences:
            raise ValueError(f"There is no sentence in the dataset's column {column!r}.")

    num_predictions = Corpus.num_predictions

    def read(self, numbers: list[int]) -> list[str | list[str]]:
        starts = [self.blocks[number].offset for number in sorted(numbers)]
        return [sentence for start in starts for sentence in self._sentences(start)]

    def _sentences(self, start: int) -> list[str | list[str]]:
        rows = self.dataset[start : start + LINES_IN_BLOCK][self.column]
        return [row for row in rows if split(row)]


def find_files(pattern: str | Path) -> list[Path]:
    """The files of a path or a glob, in the order of their names."""
    if Path(pattern).is_dir():
        raise IsADirectoryError(f"{str(pattern)!r} is a folder; name its files, as in FOLDER/*.txt")
    files = (
        [Path(pattern)] if Path(pattern).exists() else sorted(map(Path, glob.glob(str(pattern))))
    )
    if not files:
        raise FileNotFoundError(f"There is no file {str(pattern)!r}.")
    return files


def is_gzipped(file: Path) -> bool:
    return file.suffix.lower() == ".gz"


def open_text(file: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(file, "rb") if is_gzipped(file) else file.open("rb"))


def text_lines(file: Path) -> Iterator[tuple[bytes, int]]:
    """A text's lines, and how many bytes of the file each has taken, compressed or not."""
    count = read = 0
    with file.open("rb") as raw:
        if not is_gzipped(file):
            # not by its place in the file: a pipe has none
            yield from ((line, len(line)) for line in raw)
            return
        try:
            for line in gzip.GzipFile(fileobj=raw):
                yield line, raw.tell() - read
                read = raw.tell()
                count += 1
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{str(file)!r} is damaged or cut short after line {count}; make it anew."
            ) from error


def size_of(files: Sequence[Path]) -> int:
    """On the disk, as `text_lines` counts."""
    return sum(file.stat().st_size for file in files)


def decode(line: bytes, file: Path | str, number: int) -> str:
    """A line of a file, counted from 1; the mark that some editors put before the first is none."""
    if number == 1:
        line = line.removeprefix(codecs.BOM_UTF8)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = line[error.start]
        raise ValueError(
            f"{str(file)!r}, line {number}: the byte 0x{byte:02x} is not UTF-8; convert the file "
            "to UTF-8 first."
        ) from error


def split(sentence: str | list[str]) -> list[str]:
    return sentence.split() if isinstance(sentence, str) else sentence


# a large corpus has many blocks, and to go on in it every window before is counted
@functools.lru_cache(maxsize=2)
def order_of_blocks(count: int, seed: int | None, epoch: int) -> list[int]:
    """The blocks in the order of an epoch; without a seed, in their own."""
    order = list(range(count))
    if seed is not None:
        random.Random(f"{seed} epoch {epoch}").shuffle(order)
    return order


class PackedStream:
    """
    Rows of text in one reading direction, sentence after sentence without padding.

    Some blocks of the corpus at a time, a window, are shuffled and dealt to the rows of all
    processes like cards, sentence by sentence; this stream keeps the rows it reads. So what a row
    reads depends on the seed and on the number of rows alone, not on how many processes share them.
    Both directions deal alike: what they read at a time then has more words in common, and every
    distinct word is encoded once. Without a seed the corpus is read once, in its own order.
    """

    def __init__(
        self,
        corpus: Corpus | DatasetCorpus,
        num_rows: int,
        steps: int,
        backward: bool = False,
        seed: int | None = None,
        rows: range | None = None,
    ):
        self.corpus, self.num_rows, self.steps = corpus, num_rows, steps
        self.backward, self.seed = backward, seed
        self.rows = range(num_rows) if rows is None else rows
        self.windows_in_epoch = math.ceil(len(corpus.blocks) / BLOCKS_IN_WINDOW)
        self.num_dealt = 0  # windows
        # of each row: sentences it has read, sentences it holds, and its place in the first of them
        self.finished = [0 for _ in self.rows]
        self.waiting: list[deque] = [deque() for _ in self.rows]
        self.positions = [0 for _ in self.rows]
        # that sentence's tokens, once they are needed
        self.tokens: list[list[str]] = [[] for _ in self.rows]

    def deal(self) -> bool:
        """Gives the next window to the rows; False at the end."""
        if self.seed is None and self.num_dealt == self.windows_in_epoch:
            return False
        for waiting, sentences in zip(self.waiting, self.hands(self.num_dealt), strict=True):
            waiting.extend(sentences)
        self.num_dealt += 1
        return True

    def hands(self, number: int) -> Iterator[list]:
        """What each of our rows gets of the window dealt as number so-and-so."""
        epoch, place = divmod(number, self.windows_in_epoch)
        start = place * BLOCKS_IN_WINDOW
        order = order_of_blocks(len(self.corpus.blocks), self.seed, epoch)
        sentences = self.corpus.read(order[start : start + BLOCKS_IN_WINDOW])
        if self.seed is not None:
            random.Random(f"{self.seed} {number}").shuffle(sentences)
        # counted from the very first, every sentence goes to the row of its number
        before = self.dealt_before(number)
        for row in self.rows:
            yield sentences[(row - before) % self.num_rows :: self.num_rows]

    def dealt_before(self, number: int) -> int:
        """Sentences in all windows before this one."""
        epoch, place = divmod(number, self.windows_in_epoch)
        order = order_of_blocks(len(self.corpus.blocks), self.seed, epoch)
        read = order[: place * BLOCKS_IN_WINDOW]
        earlier = sum(self.corpus.blocks[block].sentences for block in read)
        return epoch * self.corpus.num_sentences + earlier

    def __iter__(self) -> Iterator[tuple[list[list[str]], list[list[str]]]]:
        return self

    def __next__(self) -> tuple[list[list[str]], list[list[str]]]:
        """
        For each row, `steps` tokens and the tokens that follow them; fewer where a row has come to
        its end. At the end of all of them, StopIteration.
        """
        batch = [self.next_of_row(number) for number in range(len(self.rows))]
        inputs, targets = [row[0] for row in batch], [row[1] for row in batch]
        if not any(inputs):
            raise StopIteration
        return inputs, targets

    def next_of_row(self, number: int) -> tuple[list[str], list[str]]:
        inputs: list[str] = []
        targets: list[str] = []
        waiting = self.waiting[number]
        while len(inputs) < self.steps:
            if not waiting:
                if not self.deal():
                    break
                continue
            tokens = self.tokens[number] = self.tokens[number] or self.split(waiting[0])
            position = self.positions[number]
            end = min(position + self.steps - len(inputs), len(tokens) - 1)
            inputs += tokens[position:end]
            targets += tokens[position + 1 : end + 1]
            self.positions[number] = end
            # the last token of a sentence is only ever predicted
            if end == len(tokens) - 1:
                waiting.popleft()
                self.finished[number] += 1
                self.positions[number], self.tokens[number] = 0, []
        return inputs, targets

    def split(self, sentence: str | list[str]) -> list[str]:
        words = split(sentence)
        return [END, *reversed(words), BEGIN] if self.backward else [BEGIN, *words, END]

    def state_dict(self) -> dict[str, torch.Tensor]:
        """How far each row is; what several processes give may be concatenated."""
        return {
            "finished": torch.tensor(self.finished),
            "position": torch.tensor(self.positions),
        }

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Goes on from the state of all rows; at most a few windows are read again."""
        mine = slice(self.rows.start, self.rows.stop)
        self.finished = state["finished"][mine].tolist()
        self.positions = state["position"][mine].tolist()
        # numbers of the sentences that the rows read now
        current = [
            row + finished * self.num_rows
            for row, finished in zip(self.rows, self.finished, strict=True)
        ]
        epoch = min(current) // self.corpus.num_sentences
        self.num_dealt = epoch * self.windows_in_epoch
        while self.dealt_before(self.num_dealt + 1) <= min(current):
            self.num_dealt += 1
        start = self.dealt_before(self.num_dealt)
        self.waiting, self.tokens = [deque() for _ in self.rows], [[] for _ in self.rows]
        while self.dealt_before(self.num_dealt) <= max(current):
            self.deal()
        for row, waiting, sentence in zip(self.rows, self.waiting, current, strict=True):
            first = start + (row - start) % self.num_rows
            for _ in range(first, sentence, self.num_rows):
                waiting.popleft()


def encode_tokens(tokens: list[list[str]], steps: int, width: int = DEFAULT_WIDTH) -> torch.Tensor:
    """Character ids (rows, steps, width) of a stream's tokens; zeros where a row has ended."""
    # numbers from 1 on, in the order of their first places; 0 is no word
    numbers: dict[str, int] = {}
    places = [[numbers.setdefault(token, len(numbers) + 1) for token in row] for row in tokens]
    rows = [encode_token(token, width) for token in numbers]
    table = np.frombuffer(bytes(ROW_TYPE.itemsize * width) + b"".join(rows), ROW_TYPE)
    padded = [row + [0] * (steps - len(row)) for row in places]
    return torch.from_numpy(table.reshape(-1, width)[np.array(padded)].astype(np.int64))


# a bounded number: frequent words are many of the words of any text
@functools.lru_cache(maxsize=1 << 14)
def encode_token(token: str, width: int) -> bytes:
    """A word's row; one that looks like a boundary is one, as in bilm-tf."""
    if token in (BEGIN, END):
        row = boundary_row(BEGIN_SENTENCE if token == BEGIN else END_SENTENCE, width)
    else:
        row = encode_word(token, width)
    return np.array(row, ROW_TYPE).tobytes()


def number_tokens(tokens: list[list[str]], steps: int, vocabulary: WordVocabulary) -> torch.Tensor:
    """Word numbers (rows, steps) of a stream's targets; -100 where a row has ended."""
    rows = [[vocabulary.number(token) for token in row] for row in tokens]
    return torch.tensor([row + [-100] * (steps - len(row)) for row in rows])


def stream_batch(
    forward: PackedStream, backward: PackedStream, vocabulary: WordVocabulary, width: int
) -> dict[str, torch.Tensor]:
    """The next inputs of `ElmoForPreTraining`."""
    batch = {}
    for stream, suffix in ((forward, ""), (backward, "_backward")):
        inputs, targets = next(stream)
        batch[f"input_ids{suffix}"] = encode_tokens(inputs, stream.steps, width)
        batch[f"labels{suffix}"] = number_tokens(targets, stream.steps, vocabulary)
    return batch
