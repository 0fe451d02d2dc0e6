# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Text at addresses that fsspec opens, such as s3://bucket/text.txt, as local files.

Every run reads its text several times, and training jumps about in it. So a remote file is fetched
once, whole, into the folder `texts` of the cache, and fetched again only when it has changed.
"""

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
from fsspec.callbacks import TqdmCallback

from elmo_hf.system.cache import cache_folder
from elmo_hf.system.failures import first_line, refuse_full_disk
from elmo_hf.system.processes import lock_file
from elmo_hf.system.writing import part_of

# Web pages are neither listed nor versioned, and may be without end.
WEB = ("http", "https")
# What tells versions of a file apart in the systems of fsspec, the best first.
VERSIONS = (
    "ETag",
    "etag",
    "blob_id",
    "mtime",
    "LastModified",
    "last_modified",
    "modified",
    "updated",
    "created",
)


def fetch_files(pattern: str) -> list[Path]:
    """Local copies of the files of an address or a glob, in the order of their remote names."""
    if pattern.partition(":")[0].lower() in WEB:
        raise ValueError(
            f"{pattern!r} is an address on the web, which is not read; download the file first, as "
            "in: curl -LO ADDRESS"
        )
    with fetching(pattern):
        system, path = fsspec.url_to_fs(pattern)
        is_folder = system.isdir(path)
        names = [path] if system.exists(path) else sorted(system.glob(path))
        # asked for one by one, because listings describe the same file in another way
        found = [system.info(name) for name in names]
    if is_folder:
        raise IsADirectoryError(f"{pattern!r} is a folder; name its files, as in FOLDER/*.txt")
    files = [about for about in found if about["type"] == "file"]
    if not files:
        raise FileNotFoundError(f"There is no file {pattern!r}.")
    return [fetch_file(system, about) for about in files]


def fetch_file(system: Any, about: dict[str, Any]) -> Path:
    """The local copy of a file, fetched now or earlier; `about` is what fsspec says of it."""
    name, size = about["name"], about["size"]
    address = system.unstrip_protocol(name)
    if size is None:
        raise ValueError(f"{address!r} has no known size; download it and name the local file.")
    version = next((str(about[field]) for field in VERSIONS if field in about), "")
    key = hashlib.sha256(repr((address, size, version)).encode()).hexdigest()[:16]
    folder = cache_folder() / "texts"
    folder.mkdir(exist_ok=True)
    # messages name the file, and its ending says what it is
    path = folder / f"{key}-{name.rpartition('/')[2]}"
    with (folder / f"{key}.lock").open("w") as lock:
        # another process of this machine may be fetching it
        while not lock_file(lock):
            time.sleep(0.2)
        if not path.exists():
            with fetching(address), part_of(path) as building:
                download(system, about, building)
                os.replace(building, path)
    return path


def download(system: Any, about: dict[str, Any], path: Path) -> None:
    refuse_full_disk(path.parent, about["size"])
    settings = {"desc": "fetch", "unit": "B", "unit_scale": True, "leave": False}
    with TqdmCallback(tqdm_kwargs=settings) as progress:
        system.get_file(about["name"], str(path), callback=progress)
    fetched = path.stat().st_size
    if fetched != about["size"]:
        raise ValueError(f"{fetched:,} bytes came of {about['size']:,}; repeat the command")


@contextmanager
def fetching(address: str) -> Iterator[None]:
    """
    Reports what goes wrong in one sentence. Every system of fsspec has its own errors; that of a
    missing library names it.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        kind = ImportError if isinstance(error, ImportError) else OSError
        reason = getattr(error, "strerror", None) or first_line(error)
        raise kind(f"{address!r} cannot be fetched: {reason}.") from error
