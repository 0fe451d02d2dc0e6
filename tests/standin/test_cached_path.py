"""Where the stand-in finds the files behind AllenNLP's addresses."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest
import torch
from helpers.file_server import FileServer
from huggingface_hub import constants

from elmo_hf.hub.registry import OWN_TABLE, read_registry
from elmo_hf.standin.bilm import _ElmoBiLm
from elmo_hf.standin.elmo import batch_to_ids
from elmo_hf.standin.embedder import DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE
from elmo_hf.standin.files import addresses, cached_path

PLAIN = "https://example.org/elmo/options.json"


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of AllenNLP's."""
    monkeypatch.setenv("ALLENNLP_CACHE_ROOT", str(tmp_path / "root"))
    folder = tmp_path / "root" / "cache"
    folder.mkdir(parents=True)
    return folder


def test_paths_are_taken_as_they_are(tmp_path, monkeypatch):
    file = tmp_path / "options.json"
    file.write_text("{}")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cached_path(file) == cached_path(str(file)) == cached_path("~/options.json") == str(file)
    with pytest.raises(FileNotFoundError, match="There is no file 'none.json'"):
        cached_path("none.json")
    with pytest.raises(ValueError, match="neither a path nor an address"):
        cached_path("ftp://example.org/x")


def test_the_cache_of_allennlp_serves_its_latest_version(cache):
    name = hashed(PLAIN)
    for number, etag in enumerate(('"old"', '"new"')):
        path = cache / f"{name}.{hashed(etag)}"
        path.write_text(etag)
        os.utime(path, (number, number))
        # what it keeps beside a file, and a lock of a later version
        for note in (".json", ".lock"):
            path.with_name(path.name + note).write_text("{}")
    assert cached_path(PLAIN) == str(path)


def test_a_model_is_read_from_the_cache_of_allennlp(cache, tiny_files):
    urls = ["https://example.org/x/options.json", "https://example.org/x/weights.hdf5"]
    for url, file in zip(urls, tiny_files, strict=True):
        shutil.copy(file, cache / f"{hashed(url)}.{hashed('etag')}")
    ids = batch_to_ids([["a"]])
    expected = _ElmoBiLm(*tiny_files)(ids)["activations"][-1]
    assert torch.equal(_ElmoBiLm(*urls)(ids)["activations"][-1], expected)


def test_a_cache_may_be_named(tmp_path):
    (tmp_path / hashed(PLAIN)).write_text("{}")
    assert cached_path(PLAIN, cache_dir=str(tmp_path)) == str(tmp_path / hashed(PLAIN))


def test_one_file_has_several_addresses(cache):
    url = "https://s3-us-west-2.amazonaws.com/allennlp/models/elmo/x/x_options.json"
    same = addresses(url)
    assert "https://allennlp.s3.amazonaws.com/models/elmo/x/x_options.json" in same
    for other in same:
        if not other.startswith("s3:"):
            assert set(addresses(other)) == set(same)
    (cache / hashed(same[-2])).write_text("{}")
    assert cached_path(url) == str(cache / hashed(same[-2]))
    assert addresses(PLAIN) == [PLAIN]


def test_a_given_folder_comes_first(cache, tmp_path, monkeypatch):
    (cache / hashed(PLAIN)).write_text("{}")
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("ELMO_HF_STANDIN_WEIGHTS", str(own))
    assert cached_path(PLAIN) == str(cache / hashed(PLAIN))
    (own / "options.json").write_text("{}")
    assert cached_path(PLAIN) == str(own / "options.json")


def test_a_given_folder_may_have_whole_addresses(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("ELMO_HF_STANDIN_WEIGHTS", str(tmp_path))
    (tmp_path / "options.json").write_text("another model's")
    path = tmp_path / "example.org" / "elmo" / "options.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    assert cached_path(PLAIN) == str(path)


def test_a_copy_of_a_published_file_must_be_the_right_one(cache, tmp_path, monkeypatch):
    copy = tmp_path / Path(DEFAULT_OPTIONS_FILE).name
    copy.write_text("{}")
    monkeypatch.setenv("ELMO_HF_STANDIN_WEIGHTS", str(tmp_path))
    with pytest.raises(ValueError, match=r"is not the file behind .*2 bytes instead of 336; put"):
        cached_path(DEFAULT_OPTIONS_FILE)
    copy.write_text("x" * 336)
    assert cached_path(DEFAULT_OPTIONS_FILE) == str(copy)


def test_no_other_model_is_taken_instead(cache, tmp_path, monkeypatch):
    (tmp_path / "options.json").write_text("{}")
    monkeypatch.setenv("ELMO_HF_STANDIN_WEIGHTS", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"example.org/y_options.json.* with --weights"):
        cached_path("https://example.org/y_options.json")
    assert DEFAULT_OPTIONS_FILE.startswith("https://allennlp.s3.amazonaws.com/models/elmo/")


def test_a_published_file_is_downloaded_once_and_alone(cache, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("ELMO_HF_HOME", str(tmp_path / "home"))
    with FileServer() as server:
        server.files |= {"options.json": b"{}", "weights.hdf5": b"weights"}
        monkeypatch.setenv(OWN_TABLE, str(server.table(tmp_path / "table.toml")))
        (model,) = read_registry().models
        url = next(file.urls[0] for file in model.files if file.role == "options")
        path = Path(cached_path(url))
        assert path.read_bytes() == b"{}"
        assert [other.name for other in path.parent.iterdir() if other.is_file()] == [path.name]
    # without the server
    assert cached_path(url) == str(path)


def test_the_defaults_of_allennlp_are_known_and_errors_say_where_to_put_them(
    cache, tmp_path, monkeypatch
):
    monkeypatch.setenv("ELMO_HF_HOME", str(tmp_path))
    for url in (DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE):
        with pytest.raises(FileNotFoundError, match="of the published model 'original' is not in"):
            cached_path(url)


def test_a_version_of_an_address_is_no_other_file():
    url = "https://bucket.s3.amazonaws.com/a.hdf5"
    assert len(addresses(url)) > 1 and addresses(f"{url}?versionId=1") == [f"{url}?versionId=1"]
