# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Files that a stranger may have made are data: bounds are checked before anything is allocated.

JSON, zip and tar archives and the headers of safetensors files are opened here, and names out of
such files are made fit for a terminal. A file that cannot be right ends in one sentence. Three
formats are checked elsewhere by the same rule: hdf5 in `conversion/weights_file.py`, the only
module that knows h5py, pickled tensors in `conversion/torch_file.py`, and lines of text in
`text_lines.py`, which is published with models and imports no room.
"""

import bz2
import gzip
import io
import json
import math
import os
import re
import stat
import struct
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from elmo_hf.system.failures import first_line

# Bytes of JSON, and values in it: Python's objects take up to 200 bytes each. The configuration of
# a tagger names each tag twice; the most that any known one has are some thousands.
LARGEST_JSON = 1 << 24
MOST_VALUES = 300_000
# Bytes that an archive may unpack to: weights shrink by a tenth, text by a factor of four.
ALWAYS_ALLOWED = 1 << 26
LARGEST_RATIO = 16
LARGEST_ARCHIVE = 1 << 36
# bytes of a zip's list of members; those of ELMo models have a handful
LARGEST_DIRECTORY = 1 << 22
# bytes of all headers of a tar; an AllenNLP archive has some tens of members
LARGEST_HEADERS = 1 << 18
LONGEST_NAME = 255
# a name that a folder keeps when it is unpacked (those of files have a point), and how deep it is
PLAIN_FOLDER = re.compile(r"[\w-]{1,60}")
DEEPEST = 8
BLOCK = 1 << 20
# how a file begins that git has not fetched yet
POINTER = b"version https://git-lfs.github.com/spec/"
# bytes of one number of a safetensors file
ITEM_SIZES = {
    "F64": 8,
    "F32": 4,
    "F16": 2,
    "BF16": 2,
    "I64": 8,
    "I32": 4,
    "I16": 2,
    "I8": 1,
    "U8": 1,
    "BOOL": 1,
}


def refuse_unreadable(path: Path) -> None:
    """A file that is there but may not be read would be reported as missing by most libraries."""
    try:
        path.stat()
        allowed = os.access(path, os.R_OK)
    except PermissionError:
        allowed = False
    except OSError:
        return
    if not allowed:
        raise PermissionError(
            f"{str(path)!r} may not be read; check its permissions and those of its folders."
        )


def refuse_pointer(path: Path) -> None:
    """A clone without Git LFS has small text files in the place of large ones."""
    refuse_unreadable(path)
    with path.open("rb") as file:
        if file.read(len(POINTER)) == POINTER:
            raise ValueError(
                f"{str(path)!r} is only a pointer to the file; fetch the file itself with "
                "`git lfs pull`."
            )


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    refuse_pointer(path)
    with path.open("rb") as file:
        text = file.read(LARGEST_JSON + 1)
    return parse_object(text, repr(str(path)))


def parse_object(text: bytes, what: str) -> dict[str, Any]:
    """A JSON object; `what` names its place in messages."""
    values = sum(text.count(sign) for sign in (b",", b"[", b"{"))
    if len(text) > LARGEST_JSON or values > MOST_VALUES:
        raise ValueError(
            f"{what} has more than {LARGEST_JSON:,} bytes or {MOST_VALUES:,} values, which is too "
            "much."
        )
    try:
        found = json.loads(text.decode("utf-8"), parse_constant=refuse_constant)
    except RecursionError:
        raise ValueError(f"{what} is nested too deeply to be read.") from None
    except ValueError as error:
        raise ValueError(f"{what} is not valid JSON: {first_line(error)}.") from error
    if not isinstance(found, dict):
        raise ValueError(f"{what} holds no JSON object.")
    return found


def refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


def read_tensor_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """
    The shapes of a safetensors file's tensors by name, from its header. The header must agree with
    the size of the file: nothing may lie outside, and nothing may be left over.
    """
    refuse_pointer(path)
    size = path.stat().st_size
    damaged = f"{str(path)!r} is damaged or truncated; get the file again."
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
        if length > min(size - 8, LARGEST_JSON):
            raise ValueError(damaged)
        header = parse_object(file.read(length), f"The header of {str(path)!r}")
    header.pop("__metadata__", None)
    shapes, end = {}, 0
    for name, entry in header.items():
        if not is_tensor(entry):
            raise ValueError(damaged)
        shapes[name] = tuple(entry["shape"])
        end = max(end, entry["data_offsets"][1])
    if end != size - 8 - length:
        raise ValueError(damaged)
    return shapes


def is_tensor(entry: Any) -> bool:
    """Whether an entry of a safetensors header describes an array, with as many bytes as it has."""
    # a tuple, because a list in the place of a name cannot be looked up
    if not isinstance(entry, dict) or entry.get("dtype") not in (*ITEM_SIZES,):
        return False
    for numbers in (entry.get("shape"), entry.get("data_offsets")):
        if not isinstance(numbers, list) or not all(type(n) is int and n >= 0 for n in numbers):
            return False
    size = math.prod(entry["shape"]) * ITEM_SIZES[entry["dtype"]]
    offsets = entry["data_offsets"]
    return len(offsets) == 2 and offsets[1] - offsets[0] == size


def is_archive(path: Path) -> bool:
    """Whether a file looks like an archive that `unpack` opens."""
    # a zip whose damaged end claims several disks
    with damage_is_an_error(path):
        return zipfile.is_zipfile(path) or is_tar(path)


def unpack(archive: Path, folder: Path, is_wanted: Callable[[str], bool]) -> list[str]:
    """
    Unpacks those members of a zip or a tar whose file name is wanted, those of one folder into one
    folder; returns the file names of all members.
    """
    refuse_pointer(archive)
    size = archive.stat().st_size
    allowed = min(max(ALWAYS_ALLOWED, LARGEST_RATIO * size), LARGEST_ARCHIVE)
    with damage_is_an_error(archive):
        if is_tar(archive):
            return unpack_tar(archive, folder, is_wanted, allowed)
        return unpack_zip(archive, folder, is_wanted, allowed)


def unpack_zip(
    archive: Path, folder: Path, is_wanted: Callable[[str], bool], allowed: int
) -> list[str]:
    names, places = [], Places(archive, folder)
    with BoundedFile(archive) as file, zipfile.ZipFile(file) as zipped:
        for member in zipped.infolist():
            names.append(safe_name(archive, member.filename))
            if member.is_dir() or not is_wanted(names[-1]):
                continue
            refuse_odd_member(archive, member, names[-1])
            target = places.make(member.filename, names[-1])
            with zipped.open(member) as source, target.open("xb") as to:
                while block := source.read(BLOCK):
                    # the sizes that the archive declares are only claims
                    allowed -= len(block)
                    if allowed < 0:
                        refuse_bomb(archive)
                    to.write(block)
    return names


def safe_name(archive: Path, name: str) -> str:
    """The file name of a member, which must be inside the folder that it is unpacked to."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{called(archive)} points outside its folder with {name!r}.")
    return path.name


class Places:
    """
    Where members are unpacked to. Files that are beside each other stay so, and a folder keeps its
    depth and its last name (which may be an epoch), but neither can lead outside, be too long or
    look like a file of a model.
    """

    def __init__(self, archive: Path, folder: Path):
        self.archive, self.folder = archive, folder
        self.numbers: dict[PurePosixPath, int] = {}

    def make(self, member: str, name: str) -> Path:
        parent = PurePosixPath(member.replace("\\", "/")).parent
        number = self.numbers.setdefault(parent, len(self.numbers))
        last = parent.name if PLAIN_FOLDER.fullmatch(parent.name) else "_"
        inner = ["_"] * min(len(parent.parts), DEEPEST)
        place = self.folder.joinpath(f"{number:05}", *inner[:-1], *([last] if inner else []))
        place.mkdir(parents=True, exist_ok=True)
        if (place / name).exists():
            refuse_member(self.archive, member, "occurs twice; unpack it and name the folder")
        return place / name


def refuse_bomb(archive: Path) -> None:
    raise ValueError(
        f"{called(archive)} unpacks to more than {LARGEST_RATIO} times its size, which no honest "
        "one does."
    )


def called(archive: Path) -> str:
    return f"The {'tar' if is_tar(archive) else 'zip'} {str(archive)!r}"


def refuse_odd_member(archive: Path, member: zipfile.ZipInfo, name: str) -> None:
    """Only plain files are unpacked, and only by the method whose memory is bounded."""
    problem = None
    if member.flag_bits & 0x1:
        problem = "is encrypted; unpack it yourself and name the folder"
    elif member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        problem = "is packed by an unusual method; unpack it yourself and name the folder"
    elif stat.S_ISLNK(member.external_attr >> 16):
        problem = "is a link, which is refused"
    refuse_member(archive, member.filename, problem or odd_name(name))


def odd_name(name: str) -> str | None:
    """What is wrong with a file name, if anything is."""
    if len(os.fsencode(name)) > LONGEST_NAME:
        return f"has a name of more than {LONGEST_NAME} bytes"
    return None


def refuse_member(archive: Path, name: str, problem: str | None) -> None:
    if problem:
        shown = name if len(name) < 80 else f"{name[:80]}..."
        where = called(archive).replace("The", "In the", 1)
        raise ValueError(f"{where}, {shown!r} {problem}.")


@contextmanager
def damage_is_an_error(archive: Path) -> Iterator[None]:
    """A damaged archive makes Python raise errors of many kinds."""
    try:
        yield
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        zlib.error,
        struct.error,
        EOFError,
        OverflowError,
        RuntimeError,
        UnicodeError,
        OSError,
    ) as error:
        # those of the system, such as a full disk, have a number
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(
            f"{called(archive)} is damaged ({first_line(error)}); get the file again."
        ) from error


class BoundedFile(io.BufferedReader):
    """A file that is never read in large pieces; a zip says itself how long its directory is."""

    def __init__(self, path: Path):
        super().__init__(io.FileIO(path))

    def read(self, size: int | None = -1) -> bytes:
        wanted = LARGEST_DIRECTORY + 1 if size is None or size < 0 else size
        piece = super().read(min(wanted, LARGEST_DIRECTORY + 1))
        if len(piece) > LARGEST_DIRECTORY:
            raise zipfile.BadZipFile("its directory is too large")
        return piece

    def seek(self, offset: int, whence: int = 0) -> int:
        try:
            return super().seek(offset, whence)
        except (OSError, ValueError) as error:
            raise zipfile.BadZipFile("it points outside the file") from error


def is_tar(path: Path) -> bool:
    """Whether a file is a tar or may hold one: it is packed by gzip or bzip2."""
    with path.open("rb") as file:
        start = file.read(262)
    return start[:2] == b"\x1f\x8b" or start[:3] == b"BZh" or start[257:] == b"ustar"


def open_tar(archive: Path) -> BinaryIO:
    """The unpacked bytes of a tar."""
    with archive.open("rb") as file:
        start = file.read(3)
    if start[:2] == b"\x1f\x8b":
        return cast(BinaryIO, gzip.GzipFile(archive))
    return cast(BinaryIO, bz2.BZ2File(archive)) if start == b"BZh" else archive.open("rb")


def unpack_tar(
    archive: Path, folder: Path, is_wanted: Callable[[str], bool], allowed: int
) -> list[str]:
    names, places = [], Places(archive, folder)
    with open_tar(archive) as stream:
        headers = TarHeaders(archive, stream, allowed)
        tar = tarfile.TarFile(fileobj=cast(BinaryIO, headers))
        for member in tar:
            names.append(safe_name(archive, member.name))
            if member.isdir() or not is_wanted(names[-1]):
                continue
            is_plain = member.isreg() and not member.issparse()
            problem = (
                odd_name(names[-1])
                if is_plain
                else "is a link or not a plain file, which is refused"
            )
            refuse_member(archive, member.name, problem)
            if member.offset_data + member.size > allowed:
                refuse_bomb(archive)
            target = places.make(member.name, names[-1])
            stream.seek(member.offset_data)
            with target.open("xb") as to:
                copy_exactly(stream, member.size, to)
        # tarfile takes a damaged header for the end
        if headers.last != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError("a header is not readable, or the end is missing")
        # the checksum comes last
        while stream.read(BLOCK):
            if stream.tell() > allowed:
                refuse_bomb(archive)
    return names


def copy_exactly(source: BinaryIO, size: int, to: BinaryIO) -> None:
    while size > 0:
        block = source.read(min(size, BLOCK))
        if not block:
            raise EOFError("it ends too early")
        to.write(block)
        size -= len(block)


class TarHeaders:
    """What tarfile reads of a tar: headers only, few of them, and never far behind each other."""

    def __init__(self, archive: Path, stream: BinaryIO, allowed: int):
        self.archive, self.stream, self.allowed = archive, stream, allowed
        self.left, self.last = LARGEST_HEADERS, b""

    def read(self, size: int = -1) -> bytes:
        # a header says itself how long its name is
        if not 0 <= size <= self.left:
            raise tarfile.ReadError("its headers are too large")
        self.left -= size
        self.last = self.stream.read(size)
        return self.last

    def seek(self, offset: int) -> int:
        # whatever lies between is unpacked, even if nobody needs it
        if offset > self.allowed:
            refuse_bomb(self.archive)
        return self.stream.seek(offset)

    def tell(self) -> int:
        return self.stream.tell()


def printable(text: object) -> str:
    r"""
    Text of a stranger for a terminal: what could move the cursor, change colours, reorder or hide
    text becomes visible, as in `\x1b`. Ends of lines and tabs stay.
    """
    return "".join(
        character
        if character in "\n\t" or not unicodedata.category(character).startswith("C")
        else character.encode("unicode_escape").decode("ascii")
        for character in str(text)
    )
