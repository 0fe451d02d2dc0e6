"""Files at addresses: fetched once, whole, and again only when they have changed."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import fsspec
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from helpers.launch import free_port

from elmo_hf.pretraining import PretrainingSettings, read_splits
from elmo_hf.system.writing import new_folder, refuse_existing_file
from elmo_hf.tagging.treebank import read_treebank
from elmo_hf.text import find_files, text_source
from elmo_hf.training import claimed_folder


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ELMO_HF_HOME", str(tmp_path / "home"))
    yield tmp_path / "home"
    system = fsspec.filesystem("memory")
    if system.exists("/texts"):
        system.rm("/texts", recursive=True)


def put(name: str, content: bytes) -> str:
    address = f"memory://texts/{name}"
    with fsspec.open(address, "wb") as file:
        file.write(content)
    return address


@pytest.fixture
def fetched(monkeypatch):
    """The names of the files that were fetched."""
    names = []
    get = MemoryFileSystem.get_file

    def counted(self, name, *rest, **more):
        names.append(name)
        return get(self, name, *rest, **more)

    monkeypatch.setattr(MemoryFileSystem, "get_file", counted)
    return names


def test_files_are_fetched_in_order_and_once(fetched, home):
    put("b.txt", b"two\n")
    put("a.txt.gz", gzip.compress(b"one\n"))
    put("other", b"")
    for _ in range(2):
        lines = text_source("memory://texts/*.txt*").lines
        assert [line.text for line in lines] == ["one", "two"]
    assert fetched == ["/texts/a.txt.gz", "/texts/b.txt"]
    put("b.txt", b"new\n")
    [line] = text_source("memory://texts/b.txt").lines
    assert line.text == "new" and len(fetched) == 3
    # nothing unfinished, and nothing elsewhere
    names = sorted(path.name.partition("-")[2] for path in (home / "texts").glob("*-*"))
    assert names == ["a.txt.gz", "b.txt", "b.txt"]
    assert not list(home.rglob("*.part"))


def test_a_corpus_at_an_address_is_the_one_here(tmp_path):
    text = b"".join(b"line %d of the corpus\n" % number for number in range(3000))
    (tmp_path / "text.txt").write_bytes(text)
    corpora = [
        read_splits(
            PretrainingSettings(train_file=name, output_dir=tmp_path / "out"), quiet=True
        ).train
        for name in (str(tmp_path / "text.txt"), put("text.txt", text))
    ]
    assert corpora[0].checksum == corpora[1].checksum
    assert corpora[0].read([0, 2]) == corpora[1].read([0, 2])


def test_an_interrupted_fetch_leaves_no_file(monkeypatch, home):
    address = put("a.txt", b"a line\n")

    def broken(self, name, path, **more):
        Path(path).write_bytes(b"a l")
        raise TimeoutError("the server does not answer\nmore")

    with monkeypatch.context() as patched:
        patched.setattr(MemoryFileSystem, "get_file", broken)
        with pytest.raises(
            OSError, match=r"'memory:///texts/a.txt' cannot be fetched: the server does not answer."
        ):
            find_files(address)

        def cut_short(self, name, path, **more):
            Path(path).write_bytes(b"")

        patched.setattr(MemoryFileSystem, "get_file", cut_short)
        with pytest.raises(OSError, match=r"cannot be fetched: 0 bytes came of 7; repeat"):
            find_files(address)
    assert not list((home / "texts").glob("*-a.txt"))
    [path] = find_files(address)
    assert path.read_bytes() == b"a line\n"


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("memory://texts/*.nothing", FileNotFoundError, "There is no file 'memory://texts/.*'"),
        ("memory://texts", IsADirectoryError, "is a folder; name its files"),
        ("nothing://texts/a", OSError, "'nothing://texts/a' cannot be fetched: Protocol not known"),
        ("s3://texts/a", ImportError, "'s3://texts/a' cannot be fetched: Install s3fs to access"),
        ("https://texts/a", ValueError, "which is not read; download the file first"),
    ],
)
def test_what_cannot_be_fetched_is_one_sentence(address, error, message, monkeypatch):
    # with s3fs the test would ask the network
    monkeypatch.setitem(sys.modules, "s3fs", None)
    put("a.txt", b"")
    with pytest.raises(error, match=message) as raised:
        find_files(address)
    assert "\n" not in str(raised.value)


def test_addresses_are_refused_where_only_paths_will_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = "'s3://bucket/one' is an address, not a path of this machine; "
    path = Path("s3://bucket/one")
    with pytest.raises(ValueError, match=f"{message}write to a path"):
        refuse_existing_file(path, overwrite=True)
    with pytest.raises(ValueError, match=f"{message}write to a path"), new_folder(path, True):
        pass
    with pytest.raises(ValueError, match=f"{message}mount the storage"), claimed_folder(path):
        pass
    with pytest.raises(ValueError, match=f"{message}copy the file"):
        list(read_treebank(path))
    assert not list(tmp_path.glob("s3*"))


@pytest.mark.program
def test_the_command_reads_an_address_in_two_processes(tmp_path, home):
    text = tmp_path / "text.txt"
    text.write_text("Dogs bark .\nCats do n't .\n")
    vectors = []
    for name in (str(text), text.as_uri()):
        output = tmp_path / "vectors.npy"
        command = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu"]
        command += ["--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no"]
        command += ["--main_process_port", str(free_port())]
        command += ["--dynamo_backend", "no", "-m", "elmo_hf", "embed", name]
        command += ["--output", str(output), "--overwrite"]
        environment = os.environ | {"ACCELERATE_USE_CPU": "true"}
        subprocess.run(command, env=environment, check=True, timeout=240)
        vectors.append(np.load(output))
    np.testing.assert_array_equal(*vectors)
    [copy] = (home / "texts").glob("*-text.txt")
    assert copy.read_text() == text.read_text()
