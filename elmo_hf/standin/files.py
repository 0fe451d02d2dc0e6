# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Files by path or by address, as `cached_path` of AllenNLP gives them.

An address is looked for among the user's own copies, then in AllenNLP's own cache, then among the
published models that this package can download. Never is another file given in its place.
"""

import functools
import hashlib
import os
from pathlib import Path
from urllib.parse import urlsplit

from huggingface_hub import constants

from elmo_hf.hub.download import check, get_file, published_folder
from elmo_hf.hub.registry import PublishedFile, PublishedModel, read_registry
from elmo_hf.hub.transfer import PlaceError, make_client
from elmo_hf.standin.settings import weights_folder

SCHEMES = ("http", "https", "s3")
# what Amazon's storage calls one and the same file
BUCKETS = (
    "https://{bucket}.s3.amazonaws.com/{key}",
    "https://s3.amazonaws.com/{bucket}/{key}",
    "https://s3-us-west-2.amazonaws.com/{bucket}/{key}",
    "https://{bucket}.s3-us-west-2.amazonaws.com/{key}",
    "https://{bucket}.s3.us-west-2.amazonaws.com/{key}",
    "s3://{bucket}/{key}",
)
# what AllenNLP's cache keeps beside a file
NOTES = (".json", ".lock")


def cached_path(url_or_filename: str | os.PathLike, cache_dir: str | None = None) -> str:
    """The path of a local file, or of a local copy of an address."""
    name = os.path.expanduser(os.fspath(url_or_filename))
    scheme = urlsplit(name).scheme
    if scheme in SCHEMES:
        return str(local_copy(name, cache_dir))
    if os.path.exists(name):
        return name
    if scheme == "" or os.path.isabs(name):
        raise FileNotFoundError(f"There is no file {name!r}.")
    raise ValueError(f"{name!r} is neither a path nor an address of http, https or s3.")


def local_copy(url: str, cache_dir: str | None) -> Path:
    """The file behind an address, from the first place that has it."""
    urls = addresses(url)
    own = weights_folder()
    if own and (found := in_folder(Path(own).expanduser(), urls)):
        return found
    if found := in_cache(cache_root() if cache_dir is None else Path(cache_dir), urls):
        return found
    if published := find_in_registry(urls):
        return download_one(*published)
    where = f" nor in {own!r}" if own else ""
    raise FileNotFoundError(
        f"{url!r} is neither in AllenNLP's cache {str(cache_root())!r}{where}, nor is it a "
        "published model that elmo_hf knows; get a copy and name its folder with --weights or "
        "install(weights=...)."
    )


def addresses(url: str) -> list[str]:
    """An address, and others by which Amazon's storage knows the same file."""
    parts = urlsplit(url)
    if parts.query:
        # it may ask for a version
        return [url]
    plain = f"{parts.netloc}{parts.path}"
    for pattern in BUCKETS:
        scheme, _, form = pattern.partition("://")
        before, _, between = form.partition("{bucket}")
        middle = between.removesuffix("{key}")
        if (scheme == "s3") != (parts.scheme == "s3") or not plain.startswith(before):
            continue
        bucket, found, key = plain.removeprefix(before).partition(middle)
        if found and key and "/" not in bucket and "." not in bucket:
            others = [known.format(bucket=bucket, key=key) for known in BUCKETS]
            return list(dict.fromkeys([url, *others]))
    return [url]


def in_folder(folder: Path, urls: list[str]) -> Path | None:
    """
    The user's copy, under its whole address without `https://`, or only under the name in it: the
    two of different models are often called alike, so a published file must be the right one.
    """
    parts = [urlsplit(url) for url in urls]
    places = [f"{part.netloc}{part.path}" for part in parts] + [Path(parts[0].path).name]
    found = next((path for place in places if (path := folder / place).is_file()), None)
    if found and (published := find_in_registry(urls)):
        stat = found.stat()
        check_copy(published[1], found, stat.st_size, stat.st_mtime_ns)
    return found


@functools.cache
def check_copy(file: PublishedFile, path: Path, size: int, time_ns: int) -> None:
    """Refuses another file; read once, as long as size and time stay as they are."""
    try:
        check(file, path)
    except PlaceError as error:
        raise ValueError(
            f"{str(path)!r} is not the file behind {file.urls[0]!r}: {error}; put the right one "
            "there, or remove it."
        ) from error


def cache_root() -> Path:
    root = os.environ.get("ALLENNLP_CACHE_ROOT") or "~/.allennlp"
    return Path(root).expanduser() / "cache"


def in_cache(folder: Path, urls: list[str]) -> Path | None:
    """
    What AllenNLP has downloaded: its name is a hash of the address and, after a dot, one of the
    version that the server named. The latest version is the right one.
    """
    found = [
        path
        for url in urls
        for path in folder.glob(hashlib.sha256(url.encode()).hexdigest() + "*")
        if path.is_file() and path.suffix not in NOTES
    ]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def find_in_registry(urls: list[str]) -> tuple[PublishedModel, PublishedFile] | None:
    """The file of a published model that is behind an address."""
    for model in read_registry().models:
        for file in model.files:
            if set(urls).intersection(file.urls):
                return model, file
    return None


def download_one(model: PublishedModel, file: PublishedFile) -> Path:
    """A file of a published model, and no other of its files; downloaded once."""
    with make_client() as client:
        offline = constants.HF_HUB_OFFLINE
        return get_file(client, model, file, published_folder(model), False, offline).path
