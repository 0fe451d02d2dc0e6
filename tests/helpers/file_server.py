"""A web server on loopback that behaves as badly as real ones do."""

import hashlib
import re
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from helpers.loopback import LoopbackServer

TABLE = """\
[families.test]
title = "Models of tests"
format = "bilm hdf5"
splitter = "moses"
licence = "CC0-1.0"
citation = "Nobody 2018"
page = "https://example.org"
[languages]
en = "English"
[[models]]
name = "tiny"
family = "test"
title = "A tiny model"
languages = ["en"]
"""


class FileServer(LoopbackServer):
    """
    Serves `files` by path while its `with` block runs. A fault is set in `faults` by path: a
    function that is given the handler, and may answer; it is false if it has not.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, Callable[[Any], Any]] = {}
        # paths, with the first byte that was asked for
        self.requests: list[tuple[str, int]] = []
        self.knows_ranges, self.checks_ranges, self.has_tags = True, True, True
        # seconds between two blocks
        self.pause, self.block = 0.0, 1 << 16
        super().__init__(_Handler)

    def table(self, path: Path, hashed: bool = True, prefix: str = "") -> Path:
        """A registry with the model `tiny`: the files of this server below a prefix."""
        text = TABLE
        for name, content in self.files.items():
            if not name.startswith(prefix):
                continue
            roles = {".json": "options", ".pth": "alignment"}
            role = roles.get(Path(name).suffix, "weights")
            text += f'[[models.files]]\nrole = "{role}"\nurls = ["{self.url}/{name}"]\n'
            if hashed:
                text += f'sha256 = "{hashlib.sha256(content).hexdigest()}"\n'
        path.write_text(text)
        return path


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, server: FileServer, *connection: Any):
        self.files = server
        super().__init__(*connection)

    def handle(self) -> None:
        with suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        name = self.path.lstrip("/").partition("?")[0]
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(found[1]) if found else 0
        self.files.requests.append((name, start))
        if name in self.files.faults and self.files.faults[name](self) is not False:
            return
        if name not in self.files.files:
            self.answer(404)
            return
        self.send_file(self.files.files[name], start)

    def send_file(self, content: bytes, start: int) -> None:
        tag = f'"{hashlib.md5(content).hexdigest()}"'
        changed = self.files.checks_ranges and self.headers.get("If-Range", tag) != tag
        if not self.files.knows_ranges or changed:
            start = 0
        if start and start >= len(content):
            self.answer(416)
            return
        headers = {"ETag": tag} if self.files.has_tags else {}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self.answer(206 if start else 200, content[start:], headers)

    def answer(
        self,
        code: int,
        content: bytes = b"",
        headers: dict[str, str] | None = None,
        length: int | None = None,
    ) -> None:
        self.send_response(code)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        self.end_headers()
        for at in range(0, len(content), self.files.block):
            self.wfile.write(content[at : at + self.files.block])
            time.sleep(self.files.pause)

    def log_message(self, *message: Any) -> None:
        """Nothing: the default writes every request to stderr."""
