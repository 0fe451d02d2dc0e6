"""Reading TensorFlow's TensorBundle, the files of its checkpoints, without TensorFlow.

`NAME.index` is a sorted table from names to places, in blocks; the numbers are in files beside it,
the shards `NAME.data-00000-of-00001`. The files may come from strangers: every length, place and
shape is compared with the files and a bound before anything is allocated, and every checksum is
verified, those of the index at once and that of a tensor when it is read.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from elmo_hf.conversion.crc32c import masked_crc32c
from elmo_hf.system.failures import first_line
from elmo_hf.system.untrusted import refuse_pointer

FOOTER = 48
MAGIC = bytes.fromhex("57fb808b247547db")
# a block is followed by its type and its checksum
TRAILER = 5
# Bounds far above the index of any ELMo, which has 80 entries in 6 kB.
LARGEST_INDEX = 1 << 20
MOST_ENTRIES = 10_000
LONGEST_NAME = 1024
LONGEST_ENTRY = 4096
MOST_SHARDS = 1000
MOST_AXES = 8
# the version of the format that this module reads
VERSION = 1
# TensorFlow's numbers of types: those that are read, and the names of others
NUMBERS = {1: "<f4", 2: "<f8", 3: "<i4", 9: "<i8"}
OTHERS = {4: "uint8", 5: "int16", 6: "int8", 7: "strings", 8: "complex64", 10: "booleans"}
OTHERS |= {14: "bfloat16", 17: "uint16", 18: "complex128", 19: "float16", 22: "uint32"}
OTHERS |= {20: "resources", 21: "variants", 23: "uint64"}
# Protocol buffers: the fields of a message by their numbers. Those of HEADER are the number of
# shards, the byte order and the version; those of ENTRY type, shape, shard, offset, size, checksum
# and slices.
HEADER = {1: int, 2: int, 3: bytes}
ENTRY = {1: int, 2: bytes, 3: int, 4: int, 5: int, 6: int, 7: bytes}
VERSIONS = {2: int}
SHAPE = {2: bytes, 3: int}
AXIS = {1: int}


class Damage(Exception):
    """What is wrong with an index, to be part of a sentence."""


class BundleTensor:
    """A tensor that is read, and its checksum verified, by `tensor[()]`."""

    def __init__(self, name: str, file: Path, entry: "Entry"):
        self.name, self.file, self.entry = name, file, entry
        self.shape = entry.shape

    @property
    def dtype(self) -> np.dtype:
        if self.entry.kind not in NUMBERS:
            kind = OTHERS.get(self.entry.kind, f"type {self.entry.kind}")
            raise ValueError(f"The variable {self.name!r} holds {kind}, which cannot be converted.")
        return np.dtype(NUMBERS[self.entry.kind])

    @property
    def nbytes(self) -> int:
        return self.entry.size

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        dtype, entry = self.dtype, self.entry
        try:
            # not a memory map: a file that shrinks meanwhile would end the process
            with self.file.open("rb") as file:
                data = np.fromfile(file, np.uint8, entry.size, offset=entry.offset)
        except OSError as error:
            raise ValueError(f"{str(self.file)!r} cannot be read: {first_line(error)}.") from error
        if len(data) != entry.size or masked_crc32c(data) != entry.checksum:
            raise ValueError(
                f"The variable {self.name!r} in {str(self.file)!r} does not match its checksum; "
                "get the file again."
            )
        return data.view(dtype).reshape(self.shape)[key]


class Entry(NamedTuple):
    kind: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int


def open_bundle(index: Path, files: Sequence[Path]) -> dict[str, BundleTensor]:
    """The tensors of a bundle by name; its shards are among `files`."""
    refuse_pointer(index)
    try:
        table = read_table(read_index(index))
        num_shards = read_header(table.pop("", None))
        shards = find_shards(index, num_shards, files)
        entries = {name: read_entry(value, name) for name, value in table.items()}
        check_places(entries, [file.stat().st_size for file in shards])
    except Damage as problem:
        raise ValueError(
            f"{str(index)!r} is not a TensorFlow checkpoint that can be read: {problem}."
        ) from None
    return {name: BundleTensor(name, shards[entry.shard], entry) for name, entry in entries.items()}


def shard_names(index: Path, num_shards: int) -> list[str]:
    stem = index.name.removesuffix(".index")
    return [f"{stem}.data-{number:05d}-of-{num_shards:05d}" for number in range(num_shards)]


def find_shards(index: Path, num_shards: int, files: Sequence[Path]) -> list[Path]:
    """The files of the numbers: beside the index, or else the only ones of their names."""
    found = []
    for name in shard_names(index, num_shards):
        named = [file for file in files if file.name == name]
        beside = [file for file in named if file.parent == index.parent]
        if not named:
            raise FileNotFoundError(f"{str(index)!r} needs the file {name!r} beside it.")
        if len(beside or named) > 1:
            raise ValueError(f"There are several files {name!r}; name a folder that has only one.")
        found.append((beside or named)[0])
        refuse_pointer(found[-1])
    return found


def read_index(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(LARGEST_INDEX + 1)
    if len(data) > LARGEST_INDEX:
        raise Damage(f"its index has more than {LARGEST_INDEX:,} bytes")
    if len(data) < FOOTER or data[-len(MAGIC) :] != MAGIC:
        raise Damage("it does not end like an index; get the file again")
    return data


class Cursor:
    """Bytes that are read from the beginning to the end, and never beyond."""

    def __init__(self, data: bytes):
        self.data, self.place = data, 0

    def at_end(self) -> bool:
        return self.place == len(self.data)

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.place:
            raise Damage("a length in it points beyond its end; get the file again")
        self.place += count
        return self.data[self.place - count : self.place]

    def varint(self) -> int:
        """A number in groups of seven bits, the lowest first."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise Damage("a number in it never ends; get the file again")


def read_table(data: bytes) -> dict[str, bytes]:
    """All entries of the index: those of its blocks, whose places are in a block of their own."""
    footer = Cursor(data[-FOOTER : -len(MAGIC)])
    body = data[:-FOOTER]
    meta, places = ((footer.varint(), footer.varint()) for _ in range(2))
    read_block(body, *meta)
    found: dict[bytes, bytes] = {}
    end, previous = 0, None
    for _, place in entries_of(read_block(body, *places)):
        handle = Cursor(place)
        start, size = handle.varint(), handle.varint()
        if start < end:
            raise Damage("its blocks overlap")
        end = start + size + TRAILER
        for name, value in entries_of(read_block(body, start, size)):
            if previous is not None and name <= previous:
                raise Damage("its names are not in order")
            previous = name
            found[name] = value
            if len(found) > MOST_ENTRIES:
                raise Damage(f"it has more than {MOST_ENTRIES:,} variables")
    try:
        return {name.decode(): value for name, value in found.items()}
    except UnicodeError:
        raise Damage("a name in it is not text") from None


def read_block(body: bytes, start: int, size: int) -> bytes:
    block = body[start : start + size + TRAILER] if start + size <= len(body) else b""
    if len(block) != size + TRAILER:
        raise Damage("a block of it lies beyond its end; get the file again")
    if masked_crc32c(block[:-4]) != int.from_bytes(block[-4:], "little"):
        raise Damage("a checksum of its index is wrong; get the file again")
    if block[size] != 0:
        raise Damage("its index is compressed; save it again with TensorFlow 1.2 or newer")
    return block[:size]


def entries_of(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Names and values of a block; a name repeats the beginning of the one before."""
    count = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 - 4 * count
    if len(block) < 4 or end < 0:
        raise Damage("a block of it has no end; get the file again")
    cursor, name = Cursor(block[:end]), b""
    while not cursor.at_end():
        shared, unshared, size = cursor.varint(), cursor.varint(), cursor.varint()
        if shared > len(name) or shared + unshared > LONGEST_NAME or size > LONGEST_ENTRY:
            raise Damage("an entry of it is longer than any of a model")
        name = name[:shared] + cursor.take(unshared)
        yield name, cursor.take(size)


def read_message(message: bytes, kinds: Mapping[int, type]) -> dict[int, list[Any]]:
    """The values of a protocol buffer by the numbers of its fields; unknown fields are left out."""
    cursor = Cursor(message)
    values: dict[int, list[Any]] = {number: [] for number in kinds}
    while not cursor.at_end():
        number, wire = divmod(cursor.varint(), 8)
        value: int | bytes
        if wire == 0:
            value = cursor.varint()
        elif wire == 2:
            value = cursor.take(cursor.varint())
        elif wire in (1, 5):
            value = int.from_bytes(cursor.take(8 if wire == 1 else 4), "little")
        else:
            raise Damage("an entry of it is no protocol buffer; get the file again")
        if number in kinds:
            if not isinstance(value, kinds[number]):
                raise Damage("a field of it is of another type; get the file again")
            values[number].append(value)
    return values


def last(values: list[Any], default: Any = 0) -> Any:
    """A field that is left out has its default, and of a repeated one the last counts."""
    return values[-1] if values else default


def read_header(value: bytes | None) -> int:
    """The number of shards."""
    if value is None:
        raise Damage("it has no header; get the file again")
    fields = read_message(value, HEADER)
    if last(fields[2]) != 0:
        raise Damage("its numbers are big-endian; save it on a little-endian machine")
    if last(read_message(last(fields[3], b""), VERSIONS)[2]) > VERSION:
        raise Damage("it is in a newer version of the format")
    if not 1 <= last(fields[1]) <= MOST_SHARDS:
        raise Damage(f"it claims to be in {last(fields[1]):,} files")
    return last(fields[1])


def read_entry(value: bytes, name: str) -> Entry:
    fields = read_message(value, ENTRY)
    if fields[7]:
        raise Damage(f"the variable {name!r} is saved in slices; save it in one piece")
    kind, shard, offset, size, checksum = (last(fields[number]) for number in (1, 3, 4, 5, 6))
    shape = read_message(last(fields[2], b""), SHAPE)
    if last(shape[3]) or len(shape[2]) > MOST_AXES:
        raise Damage(f"the variable {name!r} has no usable shape")
    sizes = tuple(last(read_message(axis, AXIS)[1]) for axis in shape[2])
    # the length of strings does not follow from their shape
    if kind in NUMBERS and size != math.prod(sizes) * np.dtype(NUMBERS[kind]).itemsize:
        raise Damage(f"the variable {name!r} takes {size:,} bytes, which does not fit its shape")
    return Entry(kind, sizes, shard, offset, size, checksum)


def check_places(entries: Mapping[str, Entry], sizes: list[int]) -> None:
    """Every tensor must be inside its file, and all together may claim no more than there is."""
    for name, entry in entries.items():
        if entry.shard >= len(sizes) or entry.offset + entry.size > sizes[entry.shard]:
            raise Damage(f"the variable {name!r} lies beyond the end of its file; get it again")
    if sum(entry.size for entry in entries.values()) > sum(sizes):
        raise Damage("its variables claim more bytes than its files have")
