"""Published models from a server on loopback that fails in all the ways that real ones do."""

import hashlib
import json
import os
import signal
import socket
import sys
import threading
import time

import httpx2 as httpx
import pytest
import torch
from helpers.file_server import FileServer
from helpers.tiny import tiny_config, write_model
from huggingface_hub import constants

from elmo_hf import ElmoModel, ElmoTokenizer, load_published, published_model
from elmo_hf.cli import main
from elmo_hf.conversion.convert_allennlp_to_hf import convert
from elmo_hf.hub import download, transfer
from elmo_hf.hub.download import STATE, download_model
from elmo_hf.hub.registry import OWN_TABLE, PublishedFile, PublishedModel, read_table

CONTENT = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def online(monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(transfer, "PAUSE", 0.001)


@pytest.fixture
def server():
    with FileServer() as serving:
        serving.files["weights.hdf5"] = CONTENT
        yield serving


def model_at(*urls, name="weights.hdf5", role="weights", size=None, sha256=SHA256, **hashes):
    known = {"sha256": sha256, **hashes}
    pairs = tuple((kind, value) for kind, value in known.items() if value)
    file = PublishedFile(role, name, urls, size, pairs)
    fields = dict.fromkeys(("family", "title", "splitter", "licence", "citation", "page"), "x")
    return PublishedModel(name="tiny", languages=(), format="bilm hdf5", files=(file,), **fields)


def get(folder, *urls, allow_http=False, offline=False, **facts):
    [one] = download_model(model_at(*urls, **facts), folder, allow_http, offline).files
    return one


def left(folder):
    """Names of everything in a folder but locks and records."""
    names = (path.name for path in folder.rglob("*") if path.is_file())
    return {name for name in names if not name.endswith(("-lock", "-record"))}


def test_a_file_comes_whole_and_only_once(server, tmp_path):
    url = f"{server.url}/weights.hdf5"
    one = get(tmp_path, url, size=len(CONTENT))
    assert one.path.read_bytes() == CONTENT and (one.sha256, one.url) == (SHA256, url)
    assert left(tmp_path) == {"weights.hdf5"}
    assert get(tmp_path, url).sha256 == SHA256
    assert len(server.requests) == 1


def test_lost_connections_are_resumed(server, tmp_path):
    def drop(handler):
        found = handler.headers.get("Range", "bytes=0-")
        start = int(found[6:-1])
        part = CONTENT[start : start + 150_000]
        whole = start + len(part) == len(CONTENT)
        headers = {"ETag": '"a"'}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"
        length = len(CONTENT) - start
        handler.answer(206 if start else 200, part, headers, length)
        assert whole or length > len(part)

    server.faults["weights.hdf5"] = drop
    assert get(tmp_path, f"{server.url}/weights.hdf5").sha256 == SHA256
    assert [start for _, start in server.requests] == [0, 150_000, 300_000, 450_000]


def cut_first(server, name="weights.hdf5", at=200_000, tag=True):
    """The first answer ends in the middle; further ones are ordinary."""

    def cut(handler):
        if len(server.requests) > 1:
            return False
        content = server.files[name]
        known = {"ETag": f'"{hashlib.md5(content).hexdigest()}"'} if tag else {}
        handler.answer(200, content[:at], known, len(content))
        return None

    server.faults[name] = cut


@pytest.mark.parametrize("knows", ["ranges", "no ranges", "no tags"])
def test_a_download_is_resumed_only_where_it_is_safe(knows, server, tmp_path):
    server.knows_ranges = knows != "no ranges"
    server.has_tags = knows != "no tags"
    cut_first(server, tag=server.has_tags)
    assert get(tmp_path, f"{server.url}/weights.hdf5").sha256 == SHA256
    starts = [start for _, start in server.requests]
    assert starts == [0, 0 if knows == "no tags" else 200_000]


@pytest.mark.parametrize("checks", [True, False])
def test_a_file_that_changes_between_two_tries_is_started_anew(checks, server, tmp_path):
    """Also if the server sends the rest of the new file without looking at what we have."""
    server.checks_ranges = checks
    cut_first(server)
    cut = server.faults["weights.hdf5"]
    other = CONTENT[::-1]

    def change(handler):
        done = cut(handler)
        server.files["weights.hdf5"] = other
        return done

    server.faults["weights.hdf5"] = change
    one = get(tmp_path, f"{server.url}/weights.hdf5", allow_http=True, sha256=None)
    assert one.path.read_bytes() == other


def fixed(code, content=b"", headers=None, length=None):
    return lambda handler: handler.answer(code, content, headers, length)


PAGE = b"\n<!DOCTYPE html><html>Gone</html>"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"
FAULTS = {
    "404": (fixed(404), "it answers 404 Not Found"),
    "403": (fixed(403), "it answers 403 Forbidden"),
    "500": (fixed(500), "it answers 500 Internal Server Error"),
    "page": (fixed(200, PAGE), "it sends a web page instead"),
    "pointer": (fixed(200, LFS), "it sends a Git-LFS pointer instead"),
    "short": (fixed(200, CONTENT[:-9]), "its file has 511,991 bytes instead of 512,000"),
    "long": (fixed(200, CONTENT + b"x"), "its file has 512,001 bytes instead of 512,000"),
    "other": (fixed(200, CONTENT[::-1]), f"instead of {SHA256}"),
    "promise": (fixed(200, CONTENT[:-9], None, len(CONTENT)), "the connection fails"),
    "packed": (fixed(200, CONTENT, {"Content-Encoding": "gzip"}), "packed as gzip"),
    "loop": (fixed(302, b"", {"Location": "/weights.hdf5"}), "redirects more than 10 times"),
    "file": (fixed(302, b"", {"Location": "file:///etc/passwd"}), "is not on the web"),
    "nothing": (lambda handler: handler.connection.close(), "the connection fails"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_place_is_named_and_the_next_one_is_tried(fault, server, tmp_path):
    act, message = FAULTS[fault]
    server.faults["weights.hdf5"] = act
    bad = f"{server.url}/weights.hdf5"
    with pytest.raises(OSError) as error:
        get(tmp_path, bad, size=len(CONTENT))
    text = str(error.value)
    assert f"{bad}: " in text and message in text and str(tmp_path) in text and "'tiny'" in text
    server.files["copy"] = CONTENT
    one = get(tmp_path, bad, f"{server.url}/copy", size=len(CONTENT))
    assert one.url.endswith("/copy") and left(tmp_path) == {"weights.hdf5"}


def test_a_place_that_does_not_answer_is_given_up(server, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "TIMEOUT", httpx.Timeout(0.1))
    monkeypatch.setattr(transfer, "MOST_TRIES", 1)
    server.faults["weights.hdf5"] = lambda handler: time.sleep(0.3)
    with pytest.raises(OSError, match="it does not answer in time"):
        get(tmp_path, f"{server.url}/weights.hdf5")
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{some.getsockname()[1]}/weights.hdf5"
        with pytest.raises(OSError, match="the connection fails"):
            get(tmp_path, nobody)


def test_a_file_of_unknown_size_is_bounded(server, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "LARGEST", 1000)
    url = f"{server.url}/weights.hdf5"
    with pytest.raises(OSError, match="at most 1,000 are read"):
        get(tmp_path, url)

    def endless(handler):
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(CONTENT)

    server.faults["weights.hdf5"] = endless
    with pytest.raises(OSError, match="it sends more than 1,000 bytes"):
        get(tmp_path, url)


def test_redirects_are_followed_but_not_to_less_safe_places(server, tmp_path, monkeypatch):
    server.faults["old"] = fixed(301, b"", {"Location": "/weights.hdf5"})
    assert get(tmp_path / "a", f"{server.url}/old").sha256 == SHA256

    def answer(request):
        if request.url.scheme == "https":
            return httpx.Response(302, headers={"Location": "http://example.org/weights.hdf5"})
        return httpx.Response(200, content=CONTENT)

    client = transfer.make_client(httpx.MockTransport(answer))
    monkeypatch.setattr(download, "make_client", lambda: client)
    with pytest.raises(OSError, match="is not https:// and no hash"):
        get(tmp_path / "b", "https://example.org/w", sha256=None)


def test_google_drive_pages_are_named():
    with pytest.raises(transfer.PlaceError, match="Google Drive sends a page"):
        transfer.refuse_pages("https://drive.google.com/uc?id=1", PAGE)


def test_plain_http_needs_a_hash_or_permission(server, tmp_path):
    url = f"{server.url}/weights.hdf5"
    with pytest.raises(OSError, match="used only with --allow-http"):
        get(tmp_path, url, sha256=None)
    assert not server.requests
    assert get(tmp_path, url, sha256=None, allow_http=True).sha256 == SHA256


def test_the_first_hash_is_remembered(server, tmp_path):
    url = f"{server.url}/weights.hdf5"
    path = get(tmp_path, url, sha256=None, allow_http=True).path
    path.unlink()
    server.files["weights.hdf5"] = CONTENT[::-1]
    with pytest.raises(OSError, match="its file is another one than before"):
        get(tmp_path, url, sha256=None, allow_http=True)
    path.write_bytes(b"damaged")
    with pytest.raises(ValueError, match="has changed since it was downloaded"):
        get(tmp_path, url, sha256=None)
    path.write_bytes(CONTENT)
    assert get(tmp_path, url, sha256=None).sha256 == SHA256


def test_a_copy_by_hand_is_used_if_it_is_the_right_one(tmp_path):
    nowhere = "https://127.0.0.1:1/weights.hdf5"
    (tmp_path / "weights.hdf5").write_bytes(PAGE)
    with pytest.raises(ValueError, match="is not the published file: it is a web page"):
        get(tmp_path, nowhere)
    (tmp_path / "weights.hdf5").write_bytes(CONTENT[::-1])
    with pytest.raises(ValueError, match="is not the published file: its sha256 is"):
        get(tmp_path, nowhere)
    (tmp_path / "weights.hdf5").write_bytes(CONTENT)
    one = get(tmp_path, nowhere, offline=True)
    assert one.sha256 == SHA256 and one.url == ""


def test_offline_nothing_is_asked(server, tmp_path, monkeypatch):
    url = f"{server.url}/weights.hdf5"
    with pytest.raises(FileNotFoundError, match="downloads are switched off"):
        get(tmp_path, url, offline=True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(FileNotFoundError, match="put it there"):
        get(tmp_path, url)
    assert not server.requests and not list(tmp_path.iterdir())


def test_two_downloads_at_once_share_one(server, tmp_path):
    server.pause = 0.02
    url, found = f"{server.url}/weights.hdf5", []
    runs = [threading.Thread(target=lambda: found.append(get(tmp_path, url))) for _ in range(3)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert [one.sha256 for one in found] == [SHA256] * 3
    assert len(server.requests) == 1


def test_parts_are_joined(server, tmp_path):
    server.files |= {"a.part-0": CONTENT[:1000], "a.part-1": CONTENT[1000:]}
    parts = tuple(
        PublishedFile("part", name, (f"{server.url}/{name}",)) for name in ("a.part-0", "a.part-1")
    )
    joined = PublishedFile("archive", "a", (), None, (("sha256", SHA256),))
    base = model_at("https://x/a")
    model = PublishedModel(**{**vars(base), "files": parts, "joined": joined})
    origin = download_model(model, tmp_path, allow_http=True)
    assert origin.source == tmp_path / "a" and (tmp_path / "a").read_bytes() == CONTENT


def test_parts_that_make_another_file_can_be_got_again(server, tmp_path):
    server.files |= {"a.part-0": CONTENT[:1000], "a.part-1": CONTENT[1001:]}
    parts = tuple(
        PublishedFile("part", name, (f"{server.url}/{name}",)) for name in ("a.part-0", "a.part-1")
    )
    joined = PublishedFile("archive", "a", (), None, (("md5", hashlib.md5(CONTENT).hexdigest()),))
    base = model_at("https://x/a")
    model = PublishedModel(**{**vars(base), "files": parts, "joined": joined})
    for _ in range(2):
        with pytest.raises(ValueError, match="do not make the published file: its md5 is") as error:
            download_model(model, tmp_path, allow_http=True)
        assert left(tmp_path) == {"a.part-0", "a.part-1"}
    # as the message says
    for name in ("a.part-0", "a.part-1"):
        assert repr(str(tmp_path / name)) in str(error.value)
        (tmp_path / name).unlink()
    server.files["a.part-1"] = CONTENT[1000:]
    assert download_model(model, tmp_path, allow_http=True).source.read_bytes() == CONTENT


@pytest.mark.parametrize("lengths", [(1000, 600), range(600, 10_000)])
def test_a_place_that_gets_no_further_is_given_up(lengths, server, tmp_path, monkeypatch):
    """Without an ETag every try starts anew, and its length goes up and down, or up slowly."""
    monkeypatch.setattr(transfer, "PAUSE", 0)
    monkeypatch.setattr(transfer, "MOST_IN_ALL", 50)

    def drop(handler):
        count = lengths[len(server.requests) % len(lengths)]
        handler.answer(200, CONTENT[:count], None, len(CONTENT))

    server.faults["weights.hdf5"] = drop
    with pytest.raises(OSError, match="the connection fails"):
        get(tmp_path, f"{server.url}/weights.hdf5")
    assert len(server.requests) <= 50


def test_numbers_of_thousands_of_digits_are_no_numbers(tmp_path):
    huge = "1" * 5000
    part = httpx.Response(206, headers={"Content-Range": f"bytes {huge}-2/3"})
    assert not transfer.continues(part, 0, {})
    partial = transfer.Partial(tmp_path / "a", tmp_path / "facts")
    whole = httpx.Response(200, headers={"Content-Length": huge})
    transfer.begin(whole, "https://x/a", partial, transfer.Wanted("a", None, 9, False))
    assert partial.read_facts("https://x/a")["total"] is None


@pytest.fixture
def registry(server, tmp_path, monkeypatch):
    """A registry of our own whose model can be converted; the cache is in the test's folder."""
    server.files.clear()
    for path in write_model(tmp_path / "source", tiny_config()):
        server.files[path.name] = path.read_bytes()
    monkeypatch.setenv(OWN_TABLE, str(server.table(tmp_path / "table.toml")))
    monkeypatch.setenv("ELMO_HF_HOME", str(tmp_path / "home"))
    return read_table(tmp_path / "table.toml")


def test_a_published_model_is_downloaded_and_converted_once(registry, server, tmp_path, capsys):
    folder = published_model("tiny")
    assert capsys.readouterr().out == "" and len(server.requests) == 2
    assert published_model("tiny", offline=True) == folder and len(server.requests) == 2
    assert ElmoTokenizer.from_pretrained(folder).word_splitter == "moses"
    weights = ElmoModel.from_pretrained(folder).state_dict()
    assert all(
        (weights[key] == part).all() for key, part in load_published("tiny").state_dict().items()
    )
    card = (tmp_path / "home").joinpath(folder, "README.md").read_text()
    for fact in ("`tiny`: A tiny model", "CC0-1.0", "Nobody 2018", "127.0.0.1"):
        assert fact in card
    for content in server.files.values():
        assert hashlib.sha256(content).hexdigest() in card
    config = json.loads((tmp_path / "home").joinpath(folder, "config.json").read_text())
    assert config["provenance"]["published_model"] == "tiny"
    with pytest.raises(ValueError, match="did you mean tiny"):
        published_model("tyny")


def test_commands_take_a_published_name(registry, server, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["elmo-hf", "download", "tiny", "--output-dir", "files"])
    with pytest.raises(SystemExit) as stop:
        main()
    printed = capsys.readouterr().out
    assert not stop.value.code and "licence of tiny: CC0-1.0" in printed
    assert left(tmp_path / "files") == {"options.json", "weights.hdf5"}
    convert("tiny", output_dir=tmp_path / "out")
    convert("tiny", output_dir=tmp_path / "split", split="english", offline=True)
    assert ElmoTokenizer.from_pretrained(tmp_path / "split").word_splitter == "english"
    # a folder of this name comes first
    (tmp_path / "tiny").mkdir()
    with pytest.raises(FileNotFoundError, match="holds no options.json"):
        convert("tiny", output_dir=tmp_path / "other")


def test_a_published_alignment_is_applied(registry, server, tmp_path):
    torch.save(torch.eye(2 * tiny_config().projection_size), tmp_path / "en.pth")
    server.files["en.pth"] = (tmp_path / "en.pth").read_bytes()
    server.table(tmp_path / "table.toml")
    read_table.cache_clear()
    model = load_published("tiny")
    assert model.config.aligned_layer == 1
    assert model.config.provenance["alignment_file"] == "en.pth"


def start_download(folder, table):
    """In a fork of this process, which has imported everything already."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        download_model(read_table(table).find("tiny"), folder)
        code = 0
    finally:
        os._exit(code)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_killed_download_is_resumed(server, tmp_path):
    server.pause, server.block = 0.01, 8192
    table, folder = server.table(tmp_path / "table.toml"), tmp_path / "out"
    for number in range(2):
        child = start_download(folder, table)
        while len(server.requests) <= number:
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        assert not (folder / "weights.hdf5").exists()
    server.pause = 0
    assert os.waitpid(start_download(folder, table), 0)[1] == 0
    starts = [start for _, start in server.requests]
    assert starts[0] == 0 < starts[1] < starts[2]
    assert (folder / "weights.hdf5").read_bytes() == CONTENT
    assert left(folder) == {"weights.hdf5"} and (folder / STATE).is_dir()
