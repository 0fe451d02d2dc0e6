"""Files that a stranger may have made: bounds first, and one sentence for what cannot be right."""

import gzip
import io
import json
import os
import random
import stat
import struct
import tarfile
import tracemalloc
import warnings
import zipfile

import pytest
import torch
from safetensors.torch import load_file, save_file

from elmo_hf.system import untrusted
from elmo_hf.system.untrusted import (
    printable,
    read_json,
    read_tensor_shapes,
    refuse_unreadable,
    unpack,
)

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not valid JSON: Expecting value"),
        ('{"a": NaN}', "NaN is not a number in JSON"),
        ('{"a": -Infinity}', "-Infinity is not a number in JSON"),
        ("[1]", "holds no JSON object"),
        ("null", "holds no JSON object"),
        ("[" * 100_000, "is nested too deeply"),
        ('{"a":' * 100_000, "is nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "is not valid JSON"),
        ('{"a": "' + "x" * (1 << 24) + '"}', "has more than 16,777,216 bytes or"),
        ('{"a": [' + "{}," * 150_000 + "1]}", "or 300,000 values, which is too much"),
        (b'{"a": "\xff"}', "is not valid JSON: 'utf-8' codec"),
        (POINTER, "is only a pointer to the file; .* `git lfs pull`"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_json_is_an_object_of_bounded_size(tmp_path, text, message):
    file = tmp_path / "config.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message) as caught:
        read_json(file)
    assert str(file) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["{},", '{"":0},', "[],", "1234567,", '"ab",', '"key%d":"v",'])
def test_json_of_many_values_takes_bounded_memory(tmp_path, value):
    file = tmp_path / "config.json"
    count = untrusted.MOST_VALUES // sum(map(value.count, ",[{")) - 5
    values = "".join(value % number if "%" in value else value for number in range(count))
    start, end = ('{"a": {', '"b": 1}}') if "%" in value else ('{"a": [', "1]}")
    file.write_text(start + values + end)
    tracemalloc.start()
    read_json(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (64 << 20) + 4 * file.stat().st_size


def test_a_file_that_may_not_be_read_is_not_called_missing(tmp_path, monkeypatch):
    file = tmp_path / "file"
    refuse_unreadable(file)
    file.touch()
    refuse_unreadable(file)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="file' may not be read; check its permissions"):
        refuse_unreadable(file)


@pytest.fixture
def weights(tmp_path):
    file = tmp_path / "model.safetensors"
    tensors = {"a": torch.zeros(2, 3), "b": torch.zeros(4, dtype=torch.float16)}
    save_file(tensors, file, metadata={"format": "pt"})
    return file


def write_header(file, header: dict, data: bytes) -> None:
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_shapes_of_tensors(weights):
    assert read_tensor_shapes(weights) == {"a": (2, 3), "b": (4,)}


@pytest.mark.parametrize("content", [b"", b"\0" * 7, b"\xff" * 9, b"\0" * 8, POINTER.encode()])
def test_what_is_no_safetensors_file_is_refused(weights, content):
    weights.write_bytes(content)
    with pytest.raises(ValueError, match=r"damaged or truncated|not valid JSON|git lfs pull"):
        read_tensor_shapes(weights)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [4, 0]},
        {"dtype": "F32", "shape": [1 << 62, 1 << 62], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]},
        {"dtype": ["F32"], "shape": [2], "data_offsets": [0, 8]},
        {"dtype": "F31", "shape": [2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": 2, "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 8, 9]},
        {"shape": [2]},
        [],
    ],
)
def test_an_odd_header_is_refused(weights, entry):
    write_header(weights, {"a": entry}, b"\0" * 8)
    with pytest.raises(ValueError, match="damaged or truncated; get the file again"):
        read_tensor_shapes(weights)


def test_any_damage_of_a_header_is_a_sentence_or_harmless(weights):
    whole, draw = weights.read_bytes(), random.Random(0)
    for _ in range(500):
        damaged = bytearray(whole[: draw.choice([len(whole), draw.randrange(len(whole))])])
        for _ in range(draw.choice([0, 1, 3])):
            if damaged:
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        weights.write_bytes(damaged)
        try:
            shapes = read_tensor_shapes(weights)
        except ValueError as error:
            assert "\n" not in str(error)
        else:
            assert {key: tuple(part.shape) for key, part in load_file(weights).items()} == shapes


def make_zip(path, **members: bytes | str) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def is_json(name: str) -> bool:
    return name.endswith(".json")


def test_only_wanted_members_are_unpacked(tmp_path):
    make_zip(tmp_path / "a.zip", **{"deep/" * 400 + "a.json": "{}", "b.bin": b"0" * 1000})
    (tmp_path / "to").mkdir()
    names = unpack(tmp_path / "a.zip", tmp_path / "to", is_json)
    assert names == ["a.json", "b.bin"]
    assert [path.read_text() for path in (tmp_path / "to").rglob("*") if path.is_file()] == ["{}"]


def test_a_bomb_that_nobody_needs_is_not_unpacked_and_a_needed_one_is_refused(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(untrusted, "ALWAYS_ALLOWED", 1 << 20)
    (tmp_path / "to").mkdir()
    make_zip(tmp_path / "a.zip", **{"bomb.bin": bytes(1 << 23), "a.json": "{}"})
    unpack(tmp_path / "a.zip", tmp_path / "to", is_json)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.json")) == 2
    make_zip(tmp_path / "b.zip", **{"bomb.json": bytes(1 << 23)})
    # what the archive says of itself is not believed
    content = (tmp_path / "b.zip").read_bytes()
    lie = content.replace(struct.pack("<L", 1 << 23), struct.pack("<L", 10))
    for number, archive in enumerate((content, lie)):
        (tmp_path / "b.zip").write_bytes(archive)
        (tmp_path / f"to-{number}").mkdir()
        with pytest.raises(ValueError, match="unpacks to more than 16 times its size|is damaged"):
            unpack(tmp_path / "b.zip", tmp_path / f"to-{number}", is_json)
        written = sum(p.stat().st_size for p in tmp_path.glob(f"to-{number}/*/*"))
        assert written <= 1 << 20


def odd_zip(path, kind: str) -> None:
    make_zip(path, **{"a.json": "{}"})
    if kind in ("absolute", "parent"):
        make_zip(path, **{"/a.json" if kind == "absolute" else "x/../../a.json": "{}"})
    elif kind == "long":
        make_zip(path, **{"a" * 300 + ".json": "{}"})
    elif kind == "link":
        member = zipfile.ZipInfo("a.json")
        member.external_attr = (stat.S_IFLNK | 0o777) << 16
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(member, "/etc/passwd")
    elif kind == "bzip2":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
            archive.writestr("a.json", "{}")
    elif kind == "directory":
        # an archive of nothing but a list of members
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with zipfile.ZipFile(path, "w") as archive:
                for number in range(3000):
                    archive.writestr(f"{number}.json", "")
    else:
        content = bytearray(path.read_bytes())
        central = content.index(b"PK\x01\x02")
        if kind == "encrypted":
            content[central + 8] |= 1
        elif kind == "method":
            content[central + 10] = 99
        elif kind == "offset":
            content[central + 42 : central + 46] = b"\xff" * 4
        elif kind == "checksum":
            content[central + 16] ^= 1
        elif kind == "signature":
            content[central] = 0
        path.write_bytes(content)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("absolute", "points outside its folder with '/a.json'"),
        ("parent", "points outside its folder"),
        ("long", "has a name of more than 255 bytes"),
        ("link", "'a.json' is a link, which is refused"),
        ("bzip2", "packed by an unusual method; unpack it yourself"),
        ("method", "packed by an unusual method; unpack it yourself"),
        ("encrypted", "'a.json' is encrypted; unpack it yourself"),
        ("offset", "is damaged"),
        ("checksum", "is damaged"),
        ("signature", "is damaged"),
        ("directory", "is damaged .its directory is too large"),
    ],
)
def test_odd_zips_are_one_sentence(tmp_path, monkeypatch, kind, message):
    monkeypatch.setattr(untrusted, "LARGEST_DIRECTORY", 1 << 17)
    odd_zip(tmp_path / "a.zip", kind)
    (tmp_path / "to").mkdir()
    with pytest.raises(ValueError, match=message) as caught:
        unpack(tmp_path / "a.zip", tmp_path / "to", is_json)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_damaged_zips_are_one_sentence(tmp_path):
    make_zip(tmp_path / "whole.zip", **{"a.json": "{}" * 50, "b/c.json": "[]" * 30})
    whole, draw = (tmp_path / "whole.zip").read_bytes(), random.Random(0)
    for number in range(400):
        damaged = bytearray(whole[: draw.choice([len(whole), draw.randrange(len(whole))])])
        for _ in range(draw.choice([0, 1, 4])):
            if damaged:
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        (tmp_path / "a.zip").write_bytes(damaged)
        (tmp_path / str(number)).mkdir()
        try:
            unpack(tmp_path / "a.zip", tmp_path / str(number), is_json)
        except ValueError as error:
            assert "\n" not in str(error)


def make_tar(path, mode: str = "w:gz", **members: bytes) -> None:
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2"])
def test_only_wanted_members_of_a_tar_are_unpacked(tmp_path, mode):
    members = {"./deep/" + "er/" * 90 + "a.json": b"{}" * 700, "b.bin": b"0" * 1000, "c.json": b""}
    make_tar(tmp_path / "a.tar", mode, **members)
    (tmp_path / "to").mkdir()
    names = unpack(tmp_path / "a.tar", tmp_path / "to", is_json)
    assert names == ["a.json", "b.bin", "c.json"]
    found = {p.name: p.read_bytes() for p in (tmp_path / "to").rglob("*") if p.is_file()}
    assert found == {"a.json": b"{}" * 700, "c.json": b""}


@pytest.mark.parametrize("name", ["bomb.json", "bomb.bin"])
@pytest.mark.parametrize("mode", ["w:gz", "w:bz2"])
def test_a_tar_that_is_a_bomb_is_refused(tmp_path, monkeypatch, mode, name):
    monkeypatch.setattr(untrusted, "ALWAYS_ALLOWED", 1 << 20)
    make_tar(tmp_path / "a.tar", mode, **{"a.json": b"{}", name: bytes(1 << 23), "z": b""})
    (tmp_path / "to").mkdir()
    with pytest.raises(ValueError, match="The tar .* unpacks to more than 16 times its size"):
        unpack(tmp_path / "a.tar", tmp_path / "to", is_json)
    assert sum(p.stat().st_size for p in tmp_path.glob("to/*/*")) <= 1 << 20


def test_what_follows_a_tar_is_part_of_a_bomb(tmp_path, monkeypatch):
    monkeypatch.setattr(untrusted, "ALWAYS_ALLOWED", 1 << 20)
    make_tar(tmp_path / "a.tar", "w", **{"a.json": b"{}"})
    whole = (tmp_path / "a.tar").read_bytes()
    (tmp_path / "a.tar").write_bytes(gzip.compress(whole + bytes(1 << 23)))
    (tmp_path / "to").mkdir()
    with pytest.raises(ValueError, match="unpacks to more than 16 times its size"):
        unpack(tmp_path / "a.tar", tmp_path / "to", is_json)


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_folders_keep_their_last_name_and_their_depth(tmp_path, kind):
    names = ["a/b/9/a.json", "a/b/9/b.json", "c/b/9/a.json", "top.json", "a/a.json"]
    names += ["x.json/a.json", "d/" * 300 + "10/a.json", "ü/é/a.json", "y" * 300 + "/a.json"]
    make = {"zip": make_zip, "tar": make_tar}[kind]
    make(tmp_path / "a", **{name: name.encode() for name in names})
    (tmp_path / "to").mkdir()
    unpack(tmp_path / "a", tmp_path / "to", is_json)
    files = [path for path in (tmp_path / "to").rglob("*.json") if path.is_file()]
    assert len(files) == len(names) and not [p for p in tmp_path.rglob("*.json") if p.is_dir()]
    found = {path.read_text(): path.relative_to(tmp_path / "to") for path in files}
    assert found["a/b/9/a.json"].parent == found["a/b/9/b.json"].parent
    assert found["a/b/9/a.json"].parent != found["c/b/9/a.json"].parent
    last = [found[name].parent.name for name in names]
    assert last == ["9", "9", "9", "00002", "a", "_", "10", "é", "_"]
    depths = [len(found[name].parts) for name in names]
    assert depths == [5, 5, 5, 2, 3, 3, 10, 4, 3]


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_occurs_twice_is_refused(tmp_path, kind):
    make = {"zip": make_zip, "tar": make_tar}[kind]
    make(tmp_path / "a", **{"b/a.json": b"{}", "./b/a.json": b"[]"})
    (tmp_path / "to").mkdir()
    with pytest.raises(ValueError, match="'./b/a.json' occurs twice; unpack it and name"):
        unpack(tmp_path / "a", tmp_path / "to", is_json)


def odd_tar(path, kind: str) -> None:
    """A tar with one odd member, or an odd end."""
    member = tarfile.TarInfo("a.json")
    member.size, content = 2, b"{}"
    if kind in ("absolute", "parent", "long"):
        names = {"absolute": "/a.json", "parent": "b/../../a.json", "long": "x" * 300 + ".json"}
        member.name = names[kind]
    elif kind in ("symbolic", "hard", "device", "fifo"):
        types = {"symbolic": "SYMTYPE", "hard": "LNKTYPE", "device": "CHRTYPE", "fifo": "FIFOTYPE"}
        member.type, member.size = getattr(tarfile, types[kind]), 0
        member.linkname = "/etc/passwd"
    elif kind == "headers":
        member.pax_headers = {"comment": "x" * (1 << 18)}
    with tarfile.open(path, "w:gz" if kind != "end" else "w") as archive:
        archive.addfile(member, io.BytesIO(content[: member.size]))
    content = path.read_bytes()
    if kind == "cut":
        path.write_bytes(content[:-9])
    elif kind == "checksum":
        path.write_bytes(content[:-6] + b"\0\0" + content[-4:])
    elif kind == "text":
        path.write_bytes(gzip.compress(b"no tar at all" * 100))
    elif kind == "end":
        path.write_bytes(content[:1024] + b"x" * 512 + content[1536:])


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("absolute", "The tar .* points outside its folder with '/a.json'"),
        ("parent", "points outside its folder"),
        ("long", "has a name of more than 255 bytes"),
        ("symbolic", "'a.json' is a link or not a plain file"),
        ("hard", "'a.json' is a link or not a plain file"),
        ("device", "'a.json' is a link or not a plain file"),
        ("fifo", "'a.json' is a link or not a plain file"),
        ("headers", "is damaged .its headers are too large"),
        ("cut", "is damaged"),
        ("checksum", "is damaged"),
        ("text", "is damaged"),
        ("end", "is damaged .a header is not readable"),
    ],
)
def test_odd_tars_are_one_sentence(tmp_path, kind, message):
    odd_tar(tmp_path / "a.tar.gz", kind)
    (tmp_path / "to").mkdir()
    with pytest.raises(ValueError, match=message) as caught:
        unpack(tmp_path / "a.tar.gz", tmp_path / "to", is_json)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2"])
def test_damaged_tars_are_one_sentence(tmp_path, mode):
    make_tar(tmp_path / "whole", mode, **{"a.json": b"{}" * 50, "b/c.json": b"[]" * 30})
    whole, draw = (tmp_path / "whole").read_bytes(), random.Random(0)
    for number in range(200):
        damaged = bytearray(whole[: draw.choice([len(whole), draw.randrange(len(whole))])])
        for _ in range(draw.choice([0, 1, 4])):
            if damaged:
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        (tmp_path / "a.tar").write_bytes(damaged)
        (tmp_path / str(number)).mkdir()
        if untrusted.is_archive(tmp_path / "a.tar"):
            try:
                unpack(tmp_path / "a.tar", tmp_path / str(number), is_json)
            except ValueError as error:
                assert "\n" not in str(error)


def test_text_for_a_terminal():
    assert printable("plain Straße 日本\n\tnext") == "plain Straße 日本\n\tnext"
    assert printable("\x1b[31mred\r\x07\x9b") == r"\x1b[31mred\r\x07\x9b"
    assert printable("\u202eevil\ud800") == r"\u202eevil\ud800"


def test_a_zip_on_several_disks_is_one_sentence(tmp_path):
    path = tmp_path / "a.zip"
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, 0, 2)
    path.write_bytes(locator + struct.pack("<4s4H2LH", b"PK\5\6", *[0] * 7))
    with pytest.raises(ValueError, match="a.zip.* is damaged .*multiple disks"):
        untrusted.is_archive(path)
