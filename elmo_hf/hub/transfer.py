# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""One file from one place on the web, resumed where an earlier try ended, and never out of bounds.

A place may be gone, lie about a length, answer with a page, or change its file between two tries:
what it sends is kept only if it can be what was asked for.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import httpx2 as httpx
from tqdm.auto import tqdm

from elmo_hf._version import __version__
from elmo_hf.system.failures import explain_failure, first_line
from elmo_hf.system.untrusted import POINTER, read_json

# seconds until a connection stands, and between two pieces of a file
TIMEOUT = httpx.Timeout(30.0, connect=15.0)
MOST_REDIRECTS = 10
# tries in a row that bring nothing, and the seconds before the second of them, doubled each time
MOST_TRIES = 4
PAUSE = 0.5
# tries that each bring a little more
MOST_IN_ALL = 1000
# how the answer of a place begins if it is not a file
HEAD = 512
PAGES = (b"<!doctype html", b"<html", b"<?xml version", b"<head")
# numbers that int() takes
PART = re.compile(r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18}|\*)")
PASSING = (408, 425, 429, 500, 502, 503, 504)


class PlaceError(Exception):
    """A place that does not give the file, with the reason as part of a sentence."""


class TryAgain(PlaceError):
    """A failure that may pass: a lost connection, a busy server."""


@dataclass(frozen=True)
class Wanted:
    """What is known of a file before it comes."""

    name: str
    size: int | None
    largest: int
    # whether a place without https:// will do
    allow_http: bool


@dataclass(frozen=True)
class Partial:
    """An unfinished file, and beside it what the place said of it."""

    data: Path
    facts: Path

    def length(self) -> int:
        return self.data.stat().st_size if self.data.exists() else 0

    def read_facts(self, url: str) -> dict[str, Any]:
        """Of this very place; nothing if there are none."""
        with suppress(OSError, ValueError):
            facts = read_json(self.facts)
            if facts.get("url") == url:
                return facts
        return {}

    def is_whole(self, url: str) -> bool:
        total = self.read_facts(url).get("total")
        return total is not None and total == self.length()

    def begin(self, url: str, validator: str | None, total: int | None) -> None:
        self.remove()
        self.data.touch()
        facts = {"url": url, "validator": validator, "total": total}
        self.facts.write_text(json.dumps(facts), encoding="utf-8")

    def remove(self) -> None:
        self.facts.unlink(missing_ok=True)
        self.data.unlink(missing_ok=True)


def make_client(transport: httpx.BaseTransport | None = None) -> httpx.Client:
    """Proxies and certificates come from the environment."""
    # packed by the server, a file could not be resumed
    headers = {"User-Agent": f"elmo_hf/{__version__}", "Accept-Encoding": "identity"}
    return httpx.Client(timeout=TIMEOUT, headers=headers, transport=transport)


def fetch(client: httpx.Client, url: str, partial: Partial, wanted: Wanted) -> None:
    """Completes a partial file from one place, or raises a PlaceError."""
    refuse_plain_http(url, wanted)
    tries = in_all = 0
    reached = partial.length()
    # also a file that a killed run had completed
    while not partial.is_whole(url):
        try:
            fetch_more(client, url, partial, wanted)
            return
        except (TryAgain, httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as error:
            # a place that cannot resume starts anew, so it must get further than ever before
            tries = 0 if partial.length() > reached else tries + 1
            reached, in_all = max(reached, partial.length()), in_all + 1
            if tries >= MOST_TRIES or in_all >= MOST_IN_ALL:
                raise PlaceError(explain(error)) from error
            time.sleep(PAUSE * 2**tries)


def fetch_more(client: httpx.Client, url: str, partial: Partial, wanted: Wanted) -> None:
    """One request for all that is missing."""
    facts, start = partial.read_facts(url), partial.length()
    headers = {}
    if start and facts.get("validator"):
        headers = {"Range": f"bytes={start}-", "If-Range": facts["validator"]}
    with closing(follow(client, url, headers, wanted)) as answer:
        resumed = answer.status_code != 200
        if resumed and not continues(answer, start, facts):
            # the file has changed, or has fewer bytes than we have
            partial.remove()
            raise TryAgain("it sends another part of the file than is missing")
        blocks, head = answer.iter_raw(), b""
        if not resumed:
            start, head = 0, read_head(blocks)
            refuse_pages(url, head)
            begin(answer, url, partial, wanted)
        total = partial.read_facts(url).get("total")
        bar = tqdm(total=total, initial=start, desc=wanted.name, unit="B", unit_scale=True)
        with bar, partial.data.open("ab") as file:
            for block in chain([head], blocks):
                write(file, block, bar, wanted)
    if total is not None and partial.length() != total:
        raise TryAgain(f"it sent {partial.length():,} of {total:,} bytes")
    if total is None:
        partial.facts.write_text(json.dumps({"url": url, "total": partial.length()}))


def follow(
    client: httpx.Client, url: str, headers: dict[str, str], wanted: Wanted
) -> httpx.Response:
    """The answer at the end of all redirections, open; every step is as safe as the first."""
    place = httpx.URL(url)
    for _ in range(MOST_REDIRECTS):
        answer = client.send(client.build_request("GET", place, headers=headers), stream=True)
        if not answer.has_redirect_location:
            break
        answer.close()
        place = place.join(answer.headers["Location"])
        refuse_plain_http(str(place), wanted)
    else:
        raise PlaceError(f"it redirects more than {MOST_REDIRECTS} times")
    code = answer.status_code
    encoding = answer.headers.get("Content-Encoding", "identity")
    useful = (200, 206, 416) if headers else (200,)
    if code in useful and encoding == "identity":
        return answer
    answer.close()
    if code in useful:
        raise PlaceError(f"it sends the file packed as {encoding}")
    reason = f"it answers {code} {answer.reason_phrase}".rstrip()
    raise TryAgain(reason) if code in PASSING else PlaceError(reason)


def continues(answer: httpx.Response, start: int, facts: dict[str, Any]) -> bool:
    """Whether a part begins where ours ends, and is of the same file."""
    found = PART.fullmatch(answer.headers.get("Content-Range", ""))
    if not found or int(found[1]) != start:
        return False
    same = found[2] == "*" or facts.get("total") in (None, int(found[2]))
    return same and validator_of(answer) in (None, facts.get("validator"))


def begin(answer: httpx.Response, url: str, partial: Partial, wanted: Wanted) -> None:
    """Starts a partial file anew, unless the place announces a wrong length."""
    length = answer.headers.get("Content-Length", "")
    total = int(length) if re.fullmatch(r"[0-9]{1,18}", length) else wanted.size
    if wanted.size is not None and total != wanted.size:
        raise PlaceError(f"its file has {total:,} bytes instead of {wanted.size:,}")
    if total is not None and total > wanted.largest:
        raise PlaceError(f"its file has {total:,} bytes, where at most {wanted.largest:,} are read")
    with explain_failure(partial.data.parent, no_room(wanted)):
        partial.begin(url, validator_of(answer), total)


def validator_of(answer: httpx.Response) -> str | None:
    """What tells this version of a file from others; a weak tag does not."""
    tag = answer.headers.get("ETag", "")
    return tag if tag.startswith('"') else answer.headers.get("Last-Modified")


def read_head(blocks: Iterator[bytes]) -> bytes:
    head = b""
    for block in blocks:
        head += block
        if len(head) >= HEAD:
            break
    return head


def write(file: IO[bytes], block: bytes, bar: tqdm, wanted: Wanted) -> None:
    limit = wanted.largest if wanted.size is None else wanted.size
    if file.tell() + len(block) > limit:
        raise PlaceError(f"it sends more than {limit:,} bytes")
    with explain_failure(Path(file.name).parent, no_room(wanted)):
        file.write(block)
    bar.update(len(block))


def no_room(wanted: Wanted) -> Callable[[str], str]:
    return lambda reason: (
        f"{wanted.name!r} could not be written: {reason}; what was downloaded is kept, so repeat "
        "the command when this is mended."
    )


def refuse_pages(url: str, head: bytes) -> None:
    """Places without the file often answer with something else."""
    if head.startswith(POINTER):
        raise PlaceError("it sends a Git-LFS pointer instead of the file")
    if head.lstrip(b"\xef\xbb\xbf \r\n\t").lower().startswith(PAGES):
        host = urlsplit(url).hostname or ""
        if host == "google.com" or host.endswith(".google.com"):
            raise PlaceError("Google Drive sends a page that asks for a click; use a browser")
        raise PlaceError("it sends a web page instead of the file")


def refuse_plain_http(url: str, wanted: Wanted) -> None:
    """Anybody on the way could exchange a file that is not encrypted and whose hash is unknown."""
    scheme = urlsplit(url).scheme
    if scheme not in ("http", "https"):
        raise PlaceError(f"it leads to {url!r}, which is not on the web")
    if scheme == "http" and not wanted.allow_http:
        raise PlaceError(
            "it is not https:// and no hash of the file is known, so it is used only with "
            "--allow-http (allow_http=True)"
        )


def explain(error: Exception) -> str:
    if isinstance(error, PlaceError):
        return str(error)
    if isinstance(error, httpx.TimeoutException):
        return "it does not answer in time"
    return f"the connection fails ({first_line(error)})"
