"""A Hugging Face Hub on loopback: what its client asks for when it pushes and loads models.

The client reads its endpoint when it is imported, so it has to run in a process of its own:
`subprocess.run(command, env=os.environ | hub.environment(home))`. As on the Hub, reading needs no
token but a wrong one is refused everywhere, and LFS objects go to a signed address without one.
"""

import base64
import hashlib
import hmac
import json
import re
import secrets
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from helpers.loopback import LoopbackServer

USER = "tester"
LFS_THRESHOLD = 10_000_000


class _Answer(Exception):
    """What a request gets; raised where an error ends the request early."""

    def __init__(self, data: Any, status: int = 200, headers: dict[str, str] | None = None):
        super().__init__(status, data)
        raw = isinstance(data, bytes)
        self.body = data if raw else json.dumps(data).encode()
        self.status = status
        kind = "application/octet-stream" if raw else "application/json"
        self.headers = {"Content-Type": kind} | (headers or {})


def _error(status: int, message: str, code: str = "", commit: str = "") -> _Answer:
    # the client picks its exception by code and message, and caches that a commit lacks a file
    headers = {"X-Error-Message": message, "X-Error-Code": code, "X-Repo-Commit": commit}
    return _Answer({"error": message}, status, {key: text for key, text in headers.items() if text})


class HubServer(LoopbackServer):
    """Serves while its `with` block runs; `lfs` has safetensors and large files sent by LFS."""

    def __init__(self, lfs: bool = False):
        self.lfs = lfs
        self.token = f"hf_{secrets.token_hex(17)}"
        self.requests: list[tuple[str, str]] = []
        self._branches: dict[tuple[str, str], str] = {}
        self._commits: dict[tuple[str, str], dict[str, bytes]] = {}
        self._lfs_objects: dict[str, bytes] = {}
        self._served_before_failure: int | None = None
        self._lock = threading.Lock()
        super().__init__(_Handler)

    def environment(self, home: Path, token: str | None = None) -> dict[str, str]:
        """Variables that send a fresh process here, by default with the right token; "" is none."""
        return {
            "HF_ENDPOINT": self.url,
            "HF_TOKEN": self.token if token is None else token,
            "HF_HOME": str(home),
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }

    def fail_after(self, count: int) -> None:
        """Serve `count` writing requests; the next one has no effect and gets no answer."""
        self._served_before_failure = count

    def files(self, repo: str, revision: str = "main") -> dict[str, bytes]:
        return dict(self._commits[repo, self._commit_id(repo, revision)])

    def answer(self, method: str, address: str, token: str, body: bytes) -> _Answer | None:
        """None where the connection is to be dropped."""
        path, query = urlsplit(address).path, parse_qs(urlsplit(address).query)
        with self._lock:
            self.requests.append((method, path))
            try:
                function, guarded, names = self._route(method, path)
                self._check_token(token, guarded and query.get("signature") != [self._sign(path)])
                dropped = guarded and method in ("POST", "PUT") and self._fails_now()
                return None if dropped else function(self, body, **names)
            except _Answer as error:
                return error
            except (KeyError, TypeError, ValueError) as error:
                return _Answer({"error": f"Malformed request: {error!r}"}, 400)

    def _route(self, method: str, path: str) -> tuple[Any, bool, dict[str, str]]:
        for route_method, pattern, function, guarded in ROUTES:
            match = re.fullmatch(pattern, path)
            # a HEAD is a GET whose body is not sent
            if match and route_method == method.replace("HEAD", "GET"):
                found = match.groupdict().items()
                return function, guarded, {name: unquote(text) for name, text in found if text}
        raise _error(404, "Not found")

    def _check_token(self, token: str, needed: bool) -> None:
        if token not in ("", self.token):
            raise _error(401, "Invalid credentials in Authorization header")
        if needed and not token:
            raise _error(401, "Invalid username or password.")

    def _sign(self, path: str) -> str:
        return hmac.new(self.token.encode(), path.encode(), "sha256").hexdigest()

    def _fails_now(self) -> bool:
        left = self._served_before_failure
        self._served_before_failure = left - 1 if left else None
        return left == 0

    def _commit_id(self, repo: str, revision: str) -> str:
        if (repo, "main") not in self._branches:
            raise _error(404, "Repository not found", "RepoNotFound")
        commit = self._branches.get((repo, revision), revision)
        if (repo, commit) not in self._commits:
            raise _error(404, "Invalid rev id", "RevisionNotFound")
        return commit

    def _save(self, repo: str, branch: str, files: dict[str, bytes]) -> str:
        commit = secrets.token_hex(20)
        self._commits[repo, commit] = files
        self._branches[repo, branch] = commit
        return commit

    def _by_lfs(self, path: str, size: int) -> bool:
        # the client never sends an empty file by LFS
        return self.lfs and size > 0 and (path.endswith(".safetensors") or size > LFS_THRESHOLD)

    def _oid(self, path: str, content: bytes) -> str:
        if self._by_lfs(path, len(content)):
            return hashlib.sha256(content).hexdigest()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

    def _whoami(self, body: bytes) -> _Answer:
        token = {"displayName": "test", "role": "write"}
        return _Answer({"type": "user", "name": USER, "orgs": [], "auth": {"accessToken": token}})

    def _validate_card(self, body: bytes) -> _Answer:
        return _Answer({"errors": [], "warnings": []})

    def _create_repo(self, body: bytes) -> _Answer:
        asked = json.loads(body)
        repo = f"{asked.get('organization') or USER}/{asked['name']}"
        url = f"{self.url}/{repo}"
        if (repo, "main") in self._branches:
            return _Answer({"error": "You already created this model repo", "url": url}, 409)
        self._save(repo, "main", {})
        return _Answer({"url": url, "name": repo})

    def _create_branch(self, body: bytes, repo: str, branch: str) -> _Answer:
        start = self._commit_id(repo, json.loads(body).get("startingPoint", "main"))
        if (repo, branch) in self._branches:
            raise _error(409, "Reference already exists")
        self._branches[repo, branch] = start
        return _Answer({}, 201)

    def _preupload(self, body: bytes, repo: str, revision: str) -> _Answer:
        stored = {path: self._oid(path, data) for path, data in self.files(repo, revision).items()}
        answers = []
        for file in json.loads(body)["files"]:
            path = file["path"]
            mode = "lfs" if self._by_lfs(path, file["size"]) else "regular"
            # the client leaves a file out of the commit when it has the same oid
            oid = stored.get(path)
            answers.append({"path": path, "uploadMode": mode, "oid": oid, "shouldIgnore": False})
        return _Answer({"files": answers})

    def _lfs_batch(self, body: bytes, repo: str) -> _Answer:
        self._commit_id(repo, "main")
        objects = []
        for asked in json.loads(body)["objects"]:
            path = f"/lfs/{asked['oid']}/{asked['size']}"
            upload = {"href": f"{self.url}{path}?signature={self._sign(path)}"}
            actions = {"upload": upload, "verify": {"href": f"{self.url}/{repo}.git/lfs/verify"}}
            missing = asked["oid"] not in self._lfs_objects
            objects.append(asked | ({"actions": actions} if missing else {}))
        return _Answer({"transfer": "basic", "objects": objects})

    def _lfs_upload(self, body: bytes, oid: str, size: str) -> _Answer:
        if len(body) != int(size) or hashlib.sha256(body).hexdigest() != oid:
            raise _error(400, "The content has another size or sha256 than announced")
        self._lfs_objects[oid] = body
        return _Answer({})

    def _lfs_verify(self, body: bytes, repo: str) -> _Answer:
        self._lfs_object(json.loads(body))
        return _Answer({})

    def _lfs_object(self, asked: dict[str, Any]) -> bytes:
        content = self._lfs_objects.get(asked["oid"], b"")
        if len(content) != asked["size"]:
            raise _error(400, "An LFS object of this size was not uploaded")
        return content

    def _commit(self, body: bytes, repo: str, revision: str) -> _Answer:
        files = self.files(repo, revision)
        if (repo, revision) not in self._branches:
            raise _error(404, "Commits go to a branch", "RevisionNotFound")
        for line in body.splitlines():
            self._apply(files, **json.loads(line))
        commit = self._save(repo, revision, files)
        return _Answer({"commitOid": commit, "commitUrl": f"{self.url}/{repo}/commit/{commit}"})

    def _apply(self, files: dict[str, bytes], key: str, value: dict[str, Any]) -> None:
        if key == "file":
            files[value["path"]] = base64.b64decode(value["content"])
        elif key == "lfsFile":
            files[value["path"]] = self._lfs_object(value)
        elif key == "deletedFile":
            del files[value["path"]]
        elif key != "header" or "parentCommit" in value:
            raise ValueError(f"{key} with {', '.join(value)} is not supported")

    def _info(self, body: bytes, repo: str, revision: str = "main") -> _Answer:
        siblings = [{"rfilename": path} for path in self.files(repo, revision)]
        return _Answer({"id": repo, "sha": self._commit_id(repo, revision), "siblings": siblings})

    def _tree(self, body: bytes, repo: str, revision: str, folder: str = "") -> _Answer:
        """All files below a folder, whether or not the client wants those of its subfolders."""
        start = f"{folder}/" if folder else ""
        files = self.files(repo, revision).items()
        entries = [self._entry(path, data) for path, data in files if path.startswith(start)]
        if folder and not entries:
            raise _error(404, "Entry not found", "EntryNotFound", self._commit_id(repo, revision))
        return _Answer(entries)

    def _entry(self, path: str, content: bytes) -> dict[str, Any]:
        size, oid = len(content), self._oid(path, content)
        lfs = {"oid": oid, "size": size, "pointerSize": 134} if self._by_lfs(path, size) else None
        return {"type": "file", "path": path, "oid": oid, "size": size, "lfs": lfs}

    def _resolve(self, body: bytes, repo: str, revision: str, path: str) -> _Answer:
        files, commit = self.files(repo, revision), self._commit_id(repo, revision)
        if path not in files:
            raise _error(404, "Entry not found", "EntryNotFound", commit)
        headers = {"ETag": f'"{self._oid(path, files[path])}"', "X-Repo-Commit": commit}
        return _Answer(files[path], headers=headers)


class _Handler(BaseHTTPRequestHandler):
    """One request on one connection, so that nothing idles when a test ends."""

    def __init__(self, hub: HubServer, *connection: Any):
        self.hub = hub
        super().__init__(*connection)

    def handle(self) -> None:
        # a client that goes away in the middle is no failure of the server
        with suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        answer = self.hub.answer(self.command, self.path, token, self._body())
        if answer is not None:
            self._send(answer)

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

    def _body(self) -> bytes:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionError
        return body

    def _send(self, answer: _Answer) -> None:
        self.send_response(answer.status)
        for name, text in answer.headers.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, *message: Any) -> None:
        """Nothing: the default writes every request to stderr."""


REPO = r"/(?P<repo>[^/]+(/[^/]+)?)"
MODEL = rf"/api/models{REPO}"
REVISION = r"/(?P<revision>[^/]+)"
# method, path, what answers, whether it needs the token
ROUTES = [
    ("GET", r"/api/whoami-v2", HubServer._whoami, True),
    ("POST", r"/api/validate-yaml", HubServer._validate_card, False),
    ("POST", r"/api/repos/create", HubServer._create_repo, True),
    ("POST", rf"{MODEL}/branch/(?P<branch>[^/]+)", HubServer._create_branch, True),
    ("POST", rf"{MODEL}/preupload{REVISION}", HubServer._preupload, True),
    ("POST", rf"{REPO}\.git/info/lfs/objects/batch", HubServer._lfs_batch, True),
    ("PUT", r"/lfs/(?P<oid>[0-9a-f]{64})/(?P<size>\d+)", HubServer._lfs_upload, True),
    ("POST", rf"{REPO}\.git/lfs/verify", HubServer._lfs_verify, True),
    ("POST", rf"{MODEL}/commit{REVISION}", HubServer._commit, True),
    ("GET", MODEL, HubServer._info, False),
    ("GET", rf"{MODEL}/revision{REVISION}", HubServer._info, False),
    ("GET", rf"{MODEL}/tree{REVISION}(/(?P<folder>.+))?", HubServer._tree, False),
    ("GET", rf"{REPO}/resolve{REVISION}/(?P<path>.+)", HubServer._resolve, False),
]
