# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Files that a stranger may have made are data: bounds are checked before anything is allocated.

JSON, zip archives and the headers of safetensors files are opened here, and names out of such files
are made fit for a terminal. A file that cannot be right ends in one sentence. Two formats are
checked elsewhere by the same rule: hdf5 in `conversion/weights_file.py`, the only module that knows
h5py, and lines of text in `text_lines.py`, which is published with models and imports no room.
"""

import io
import json
import math
import os
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from elmo_hf.system.failures import first_line

# Bytes of JSON, and values in it: Python's objects take up to 200 bytes each. The configuration of
# a tagger names each tag twice; the most that any known one has are some thousands.
LARGEST_JSON = 1 << 24
MOST_VALUES = 300_000
# Bytes that a zip may unpack to: weights shrink by a tenth, text by a factor of four.
ALWAYS_ALLOWED = 1 << 26
LARGEST_RATIO = 16
LARGEST_ARCHIVE = 1 << 36
# bytes of a zip's list of members; those of ELMo models have a handful
LARGEST_DIRECTORY = 1 << 22
LONGEST_NAME = 255
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


def unpack(archive: Path, folder: Path, is_wanted: Callable[[str], bool]) -> list[str]:
    """
    Unpacks those members of a zip whose file name is wanted, each into a folder of its own; returns
    the file names of all members.
    """
    refuse_pointer(archive)
    size = archive.stat().st_size
    allowed = min(max(ALWAYS_ALLOWED, LARGEST_RATIO * size), LARGEST_ARCHIVE)
    names = []
    with damage_is_an_error(archive), BoundedFile(archive) as file, zipfile.ZipFile(file) as zipped:
        for number, member in enumerate(zipped.infolist()):
            path = PurePosixPath(member.filename.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts:
                raise ValueError(
                    f"The zip {str(archive)!r} points outside its folder with {member.filename!r}."
                )
            names.append(path.name)
            if member.is_dir() or not is_wanted(path.name):
                continue
            refuse_odd_member(archive, member, path.name)
            (folder / str(number)).mkdir()
            with zipped.open(member) as source, (folder / str(number) / path.name).open("xb") as to:
                while block := source.read(BLOCK):
                    # the sizes that the archive declares are only claims
                    allowed -= len(block)
                    if allowed < 0:
                        raise ValueError(
                            f"The zip {str(archive)!r} unpacks to more than {LARGEST_RATIO} times "
                            "its size, which no honest one does."
                        )
                    to.write(block)
    return names


def refuse_odd_member(archive: Path, member: zipfile.ZipInfo, name: str) -> None:
    """Only plain files are unpacked, and only by the method whose memory is bounded."""
    problem = None
    if member.flag_bits & 0x1:
        problem = "is encrypted; unpack it yourself and name the folder"
    elif member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        problem = "is packed by an unusual method; unpack it yourself and name the folder"
    elif stat.S_ISLNK(member.external_attr >> 16):
        problem = "is a link, which is refused"
    elif len(os.fsencode(name)) > LONGEST_NAME:
        problem = f"has a name of more than {LONGEST_NAME} bytes"
    if problem:
        shown = member.filename if len(member.filename) < 80 else f"{member.filename[:80]}..."
        raise ValueError(f"In the zip {str(archive)!r}, {shown!r} {problem}.")


@contextmanager
def damage_is_an_error(archive: Path) -> Iterator[None]:
    """A damaged zip makes Python raise errors of many kinds."""
    try:
        yield
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        OverflowError,
        RuntimeError,
        UnicodeError,
    ) as error:
        raise ValueError(
            f"The zip {str(archive)!r} is damaged ({first_line(error)}); get the file again."
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
