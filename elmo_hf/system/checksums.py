# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Checksums of a folder's files, so that damage is found before anything is loaded.

They protect against disks and interruptions, not against people: who can change a file can change
its checksum.
"""

import hashlib
import json
import zlib
from pathlib import Path

from elmo_hf.system.untrusted import read_json

NAME = "checksums.json"
# bytes that are read at a time
BLOCK = 1 << 20


def hash_file(path: Path, kind: str = "sha256") -> str:
    """The hexadecimal hash of a file, by a name of `hashlib`."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def write_checksums(folder: Path) -> None:
    """Writes the checksums of all files of a folder into it."""
    sums = {name: checksum(folder / name) for name in files_of(folder)}
    text = json.dumps(sums, indent=1) + "\n"
    (folder / NAME).write_text(text, encoding="utf-8")


def find_damage(folder: Path) -> str | None:
    """What is wrong with a folder, to be part of a sentence; None if nothing is."""
    try:
        sums = read_json(folder / NAME)
    except (OSError, ValueError):
        sums = None
    if sums is None or not all(type(value) is int for value in sums.values()):
        return f"{NAME} is missing or damaged"
    names = set(sums)
    for name in sorted(names ^ files_of(folder)):
        return f"{name} is missing" if name in names else f"{name} does not belong to it"
    for name in sorted(names):
        # nothing of ours is a link, and one may lead to a file without end
        if (folder / name).is_symlink():
            return f"{name} is a link"
        if checksum(folder / name) != sums[name]:
            return f"{name} is damaged"
    return None


def files_of(folder: Path) -> set[str]:
    """The files of a folder and of the folders in it, without the checksums themselves."""
    files = (path for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    return {path.relative_to(folder).as_posix() for path in files} - {NAME}


def checksum(file: Path) -> int:
    value = 0
    with file.open("rb") as blocks:
        while block := blocks.read(BLOCK):
            value = zlib.crc32(block, value)
    return value
