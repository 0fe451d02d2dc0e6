# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Chunks of lines with their vectors, each a file of its own until the whole is put together."""

import json
import struct
import tokenize
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar
from zipfile import BadZipFile

import numpy as np
from tqdm.auto import tqdm

from elmo_hf.system.writing import new_file
from elmo_hf.text.lines import Line

# The most lines and words of a chunk, which bound memory; a longer line is a chunk of its own.
CHUNK = 1024
CHUNK_WORDS = 1 << 15


class Chunk(NamedTuple):
    """The vectors of some lines."""

    # counted from 0
    numbers: np.ndarray
    sentences: list[str]
    # the names of the sentences' records, in formats that have names; else none
    keys: list[str]
    # how many vectors each sentence has: one per word, or a single one when it is pooled
    lengths: np.ndarray
    # the sentences' vectors one after the other, (vectors, size) or (vectors, layers, size)
    values: np.ndarray
    # the numbers of sentences that did not fit into memory and have no vectors
    left_empty: np.ndarray

    @classmethod
    def of(
        cls,
        lines: list[Line],
        arrays: list[np.ndarray],
        pooling: str,
        left_empty: Iterable[int],
    ) -> "Chunk":
        """Lines and their arrays, as the embedder makes them."""
        if pooling != "none":
            lengths = np.ones(len(arrays), np.int64)
            values = np.stack(arrays)
        else:
            lengths = np.array([array.shape[-2] for array in arrays])
            # vectors first
            values = np.concatenate([a.swapaxes(0, 1) if a.ndim == 3 else a for a in arrays])
        numbers = np.array([line.number for line in lines])
        texts = [line.text for line in lines]
        keys = [line.key for line in lines if line.key is not None]
        return cls(numbers, texts, keys, lengths, values, np.array([*left_empty], np.int64))

    def save(self, path: Path) -> None:
        saved = self._asdict()
        for name in ("sentences", "keys"):
            saved[name] = np.frombuffer(json.dumps(saved[name]).encode(), np.uint8)
        with new_file(path) as building, building.open("wb") as file:
            np.savez(file, **saved)

    @classmethod
    def load(cls, path: Path) -> "Chunk":
        with open_chunk(path) as saved:
            arrays = dict(saved)
            for name in ("sentences", "keys"):
                arrays[name] = json.loads(arrays[name].tobytes())
            return cls(**arrays)

    def arrays(self, pooling: str) -> Iterator[np.ndarray]:
        """One array per sentence, as the embedder makes it: layers first, no words if pooled."""
        for part in np.split(self.values, np.cumsum(self.lengths)[:-1]):
            array = part if part.ndim == 2 else part.swapaxes(0, 1)
            yield array if pooling == "none" else array[..., 0, :]

    @property
    def names(self) -> list[str]:
        return sentence_names(self.numbers.tolist(), self.keys)


def sentence_names(numbers: list[int], keys: list[str]) -> list[str]:
    """What each sentence is called: the name of its record, or the number of its line."""
    return keys or [str(number) for number in numbers]


# what numpy, zip and JSON raise for a file that was changed
UNREADABLE = (
    BadZipFile,
    EOFError,
    KeyError,
    OSError,
    # of a zip that is said to be encrypted, or packed by an unknown method
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    tokenize.TokenError,
    zlib.error,
)


class DamagedChunkError(ValueError):
    """A chunk cannot be read; made anew, it can."""

    def __init__(self, path: Path):
        super().__init__(f"The chunk {path.name} is damaged.")
        self.path = path


@contextmanager
def open_chunk(path: Path) -> Iterator[Any]:
    """The arrays of a chunk by name. Each has a checksum, which is compared when it is read."""
    with path.open("rb") as file:
        try:
            # opened here, because numpy leaves a damaged file open
            with np.load(file) as saved:
                yield saved
        except UNREADABLE as error:
            raise DamagedChunkError(path) from error


class ChunkFiles:
    """All chunks of a corpus in their order, on the disk; only one at a time is in memory."""

    def __init__(self, paths: list[Path]):
        self.paths = paths

    def __iter__(self) -> Iterator[Chunk]:
        """With a progress bar: a large corpus takes minutes to put together."""
        for path in tqdm(self.paths, desc="writing", unit="chunk", leave=False):
            yield Chunk.load(path)

    def lengths(self) -> Iterator[np.ndarray]:
        """Each chunk's numbers of vectors per sentence, without reading the vectors."""
        for path in tqdm(self.paths, desc="counting", unit="chunk", leave=False):
            with open_chunk(path) as saved:
                lengths = saved["lengths"]
            yield lengths

    def sentences(self) -> Iterator[list[tuple[str, str]]]:
        """Each chunk's sentences after their names, without reading the vectors."""
        for path in self.paths:
            with open_chunk(path) as saved:
                texts, keys = (json.loads(saved[name].tobytes()) for name in ("sentences", "keys"))
                numbers = saved["numbers"].tolist()
            yield list(zip(sentence_names(numbers, keys), texts, strict=True))


class HasWords(Protocol):
    """A line, or anything else that has the words of a sentence."""

    @property
    def words(self) -> list[str]: ...


Item = TypeVar("Item", bound=HasWords)


def split_into_chunks(lines: Iterable[Item]) -> Iterator[list[Item]]:
    chunk: list[Item] = []
    words = 0
    for line in lines:
        if chunk and (len(chunk) == CHUNK or words + len(line.words) > CHUNK_WORDS):
            yield chunk
            chunk, words = [], 0
        chunk.append(line)
        words += len(line.words)
    if chunk:
        yield chunk
