# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The files of a published model in a folder: downloaded once, checked, and recorded.

What this module keeps for itself, such as unfinished files and hashes, is in `.download` inside
that folder. A file that the user has put into the folder is used like a downloaded one.
"""

import hashlib
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2 as httpx
from huggingface_hub import constants
from tqdm.auto import tqdm

from elmo_hf.hub.registry import PublishedFile, PublishedModel
from elmo_hf.hub.transfer import HEAD, Partial, PlaceError, Wanted, fetch, make_client, refuse_pages
from elmo_hf.system.cache import cache_folder, cache_home
from elmo_hf.system.checksums import hash_file
from elmo_hf.system.failures import explain_failure
from elmo_hf.system.processes import lock_file
from elmo_hf.system.untrusted import LARGEST_JSON, read_json, refuse_unreadable
from elmo_hf.system.writing import new_file, write_text

STATE = ".download"
# bytes of a file whose size nobody has published; the largest known one has 1.7 GB
LARGEST = 1 << 33
# seconds between two looks at a file that another run downloads
LOOK = 0.1


@dataclass(frozen=True)
class Downloaded:
    """A file that is there, and what was recorded of it."""

    file: PublishedFile
    path: Path
    sha256: str
    # empty if the user has put it there
    url: str


@dataclass(frozen=True)
class Origin:
    """A published model whose files are all there."""

    model: PublishedModel
    files: tuple[Downloaded, ...]
    # what can be converted: the folder, or the archive in it
    source: Path

    @property
    def alignment(self) -> Path | None:
        """The map of a layer that was published with it."""
        return next((one.path for one in self.files if one.file.role == "alignment"), None)


class Changed(PlaceError):
    """Files that do not have the hash they had, or should have."""


def published_folder(model: PublishedModel) -> Path:
    """Where a model's files are kept by default."""
    place = cache_home() / "published" / model.name
    return place if place.is_dir() else cache_folder() / "published" / model.name


def download_model(
    model: PublishedModel,
    folder: Path | None = None,
    allow_http: bool = False,
    offline: bool = False,
) -> Origin:
    """
    Downloads what is missing of a model into a folder, by default in the cache. `allow_http` also
    uses places without https:// for files whose hash is not known; with `offline`, nothing is
    downloaded.
    """
    folder = published_folder(model) if folder is None else folder
    if not model.files:
        raise ValueError(
            f"{model.name!r} has no known addresses of files: fetch them from {model.page} and "
            "convert the folder you put them into."
        )
    with make_client() as client:
        files = tuple(
            get_file(client, model, file, folder, allow_http, offline or constants.HF_HUB_OFFLINE)
            for file in model.files
        )
    return Origin(model, files, find_source(model, files, folder))


def find_source(model: PublishedModel, files: tuple[Downloaded, ...], folder: Path) -> Path:
    if model.joined is not None:
        return join_parts(model.joined, files, folder)
    archives = [one.path for one in files if one.file.role == "archive"]
    return archives[0] if archives else folder


def get_file(
    client: httpx.Client,
    model: PublishedModel,
    file: PublishedFile,
    folder: Path,
    allow_http: bool,
    offline: bool,
) -> Downloaded:
    """One file, from the folder or else from the first place that gives it."""
    path = folder / file.name
    refuse_unreadable(path)
    if path.exists() and (known := recorded(file, path)) is not None:
        return known
    what = f"{file.name!r} of the published model {model.name!r}"
    if offline and not path.exists():
        raise FileNotFoundError(
            f"{what} is not in {str(folder)!r}, and downloads are switched off (--offline or "
            f"HF_HUB_OFFLINE); fetch it from {' or '.join(file.urls)} and put it there."
        )

    def explain(reason: str) -> str:
        kept = "what was downloaded is kept, and the command resumes when it is repeated"
        return f"{str(path)!r} could not be written: {reason}; {kept}."

    state_of(path).parent.mkdir(parents=True, exist_ok=True)
    with only_run(path):
        # another run may have finished it meanwhile
        if path.exists():
            return recorded(file, path) or record_found(file, path)
        failures = []
        for url in file.urls:
            try:
                with explain_failure(folder, explain):
                    return get_from(client, url, file, path, allow_http)
            except PlaceError as error:
                failures.append(f"{url}: {error}")
    raise OSError(
        f"{what} could not be downloaded ({'; '.join(failures)}); get a copy from elsewhere, put "
        f"it into {str(folder)!r} under this name, and repeat the command."
    )


def get_from(
    client: httpx.Client, url: str, file: PublishedFile, path: Path, allow_http: bool
) -> Downloaded:
    """Downloads a file from one place; it gets its name when it is whole and has been checked."""
    partial = Partial(state_of(path, "part"), state_of(path, "facts"))
    largest = LARGEST_JSON if file.role == "options" else LARGEST
    wanted = Wanted(file.name, file.size, largest, allow_http or bool(file.hashes))
    fetch(client, url, partial, wanted)
    try:
        sha256 = check(file, partial.data)
        earlier = read_record(path).get("sha256", sha256)
        if sha256 != earlier:
            raise Changed(
                f"its file is another one than before, with SHA-256 {sha256} instead of {earlier}; "
                f"delete {str(state_of(path, 'record'))!r} to accept it"
            )
    except PlaceError:
        partial.remove()
        raise
    # first, so that a run that is killed now leaves a whole partial file with its place
    write_record(path, partial.data, sha256, url)
    partial.data.replace(path)
    partial.remove()
    return Downloaded(file, path, sha256, url)


def recorded(file: PublishedFile, path: Path) -> Downloaded | None:
    """A file that was checked before; None if there is no record of it."""
    record = read_record(path)
    if not record:
        return None
    sha256 = str(record.get("sha256"))
    stat = path.stat()
    if [stat.st_size, stat.st_mtime_ns] != [record.get("size"), record.get("mtime_ns")]:
        if check_local(file, path) != sha256:
            raise ValueError(
                f"{str(path)!r} has changed since it was downloaded; delete it to get it again."
            )
        write_record(path, path, sha256, str(record.get("url")))
    if dict(file.hashes).get("sha256", sha256) != sha256:
        check_local(file, path)
    return Downloaded(file, path, sha256, str(record.get("url")))


def record_found(file: PublishedFile, path: Path) -> Downloaded:
    """A file that the user has put into the folder."""
    sha256 = check_local(file, path)
    write_record(path, path, sha256, "")
    return Downloaded(file, path, sha256, "")


def check_local(file: PublishedFile, path: Path) -> str:
    try:
        with path.open("rb") as opened:
            refuse_pages("", opened.read(HEAD))
        return check(file, path)
    except PlaceError as error:
        reason = str(error).replace("it sends", "it is").removesuffix(" instead of the file")
        raise ValueError(
            f"{str(path)!r} is not the published file: {reason}; delete it to download it again."
        ) from error


def check(file: PublishedFile, path: Path) -> str:
    """The SHA-256 of a file that has the size and the hashes it should have."""
    size = path.stat().st_size
    if file.size not in (None, size):
        raise PlaceError(f"its file has {size:,} bytes instead of {file.size:,}")
    for kind, expected in file.hashes:
        if (found := hash_file(path, kind)) != expected:
            raise Changed(f"its {kind} is {found} instead of {expected}")
    return hash_file(path)


def state_of(path: Path, kind: str = "") -> Path:
    """What is kept of a file: under names that no pattern of a model's files fits."""
    key = hashlib.sha256(path.name.encode()).hexdigest()[:12]
    return path.parent / STATE / f"{key}-{kind}"


def read_record(path: Path) -> dict:
    try:
        return read_json(state_of(path, "record"))
    except (OSError, ValueError):
        return {}


def write_record(path: Path, measured: Path, sha256: str, url: str) -> None:
    stat = measured.stat()
    size, time_ns = stat.st_size, stat.st_mtime_ns
    facts = {"name": path.name, "url": url, "sha256": sha256, "size": size, "mtime_ns": time_ns}
    write_text(state_of(path, "record"), json.dumps(facts, indent=1) + "\n")


@contextmanager
def only_run(path: Path) -> Iterator[None]:
    """Waits until no other run downloads this file; a run that was killed gives its lock back."""
    with state_of(path, "lock").open("ab") as lock:
        waiting = False
        while not lock_file(lock):
            if not waiting:
                tqdm.write(f"waiting for another run that downloads {path.name}", file=sys.stderr)
            waiting = True
            time.sleep(LOOK)
        yield


def join_parts(joined: PublishedFile, parts: tuple[Downloaded, ...], folder: Path) -> Path:
    """The archive that was published in parts."""
    path = folder / joined.name
    if path.exists():
        check_local(joined, path)
        return path
    with new_file(path) as building:
        with building.open("wb") as whole:
            for part in parts:
                with part.path.open("rb") as piece:
                    while block := piece.read(1 << 20):
                        whole.write(block)
        try:
            check(joined, building)
        except PlaceError as error:
            for part in parts:
                # what was recorded of a bad part must not refuse a good one
                state_of(part.path, "record").unlink(missing_ok=True)
            names = " and ".join(repr(str(part.path)) for part in parts)
            raise ValueError(
                f"The parts of {joined.name!r} do not make the published file: {error}; delete "
                f"{names} to download them again."
            ) from error
    return path
