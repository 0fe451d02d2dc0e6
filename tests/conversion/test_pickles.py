"""Files of `torch.save` that would fill the memory or never end are refused beforehand."""

import copy
import io
import pickle
import struct
import time
import warnings
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
import torch

from elmo_hf.conversion.alignment import read_alignment
from elmo_hf.conversion.pickles import LARGEST_TUPLE, MOST_OPERATIONS, TENSORS, Pickle
from elmo_hf.conversion.torch_file import directory_start, read_state_dict


def write(path, content: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", content)
        archive.writestr("archive/version", "3\n")


def text(value: str) -> bytes:
    return b"X" + len(value).to_bytes(4, "little") + value.encode()


def encoded(times: int, encoding: str = "hex_codec") -> bytes:
    """Text that is encoded again and again; each time may double it."""
    calls = b"c_codecs\nencode\n" * (times + 1)
    inner = text("aaaaaaaa") + text("latin1") + b"\x86R"
    return b"\x80\x02" + calls + inner + (text(encoding) + b"\x86R") * times + b"."


def nested(times: int) -> bytes:
    """A dictionary whose key is a tuple that holds another one twice, and so on."""
    return b"\x80\x02}" + text("a") + b"\x85q\x00" + b"h\x00\x86q\x00" * times + b"K\x01s."


HOSTILE = {
    "encoding": encoded(25),
    "any encoding": encoded(1, "utf-32"),
    "tuples": nested(25),
    "bytearray": b"\x80\x02cbuiltins\nbytearray\n\x8a\x05\x00\x00\x00\x00\x40\x85R.",
    "object array": b"\x80\x02cnumpy\nndarray\nJ\x00\x00\x00\x10" + text("O") + b"\x86R.",
    "empty stack": b"\x80\x02R.",
    "no end": b"\x80\x02}",
    "operation": b"\x80\x02N0.",
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("read", [read_state_dict, lambda path: read_alignment(path, 4)])
def test_small_pickles_that_become_huge_are_refused(kind, read, tmp_path):
    write(tmp_path / "a.th", HOSTILE[kind])
    began = time.process_time()
    with pytest.raises(ValueError, match="is damaged") as caught:
        read(tmp_path / "a.th")
    assert time.process_time() - began < 2 and "\n" not in str(caught.value)
    # the same before the numbers of an older file
    store = io.BytesIO()
    torch.save({}, store, _use_new_zipfile_serialization=False)
    head = pickle.dumps({}, 2)
    assert head in store.getvalue()
    (tmp_path / "a.th").write_bytes(store.getvalue().replace(head, HOSTILE[kind]))
    with pytest.raises(ValueError, match="is damaged"):
        read(tmp_path / "a.th")


def test_the_bounds_are_far_from_what_torch_writes():
    """A model of 1,000 tensors, with parameters and the order of its names."""
    model = torch.nn.Sequential(*(torch.nn.Linear(1, 1) for _ in range(500)))
    state = OrderedDict((f"layer.{name}", part) for name, part in model.state_dict().items())
    state["parameter"] = torch.nn.Parameter(torch.zeros(2, 3, 4, 5))
    state._metadata = model.state_dict()._metadata
    store = io.BytesIO()
    torch.save(state, store)
    with zipfile.ZipFile(store) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("data.pkl")]
        content = archive.read(name)
    followed = Pickle(TENSORS)
    followed.follow(io.BytesIO(content))
    assert max(value.size for value in followed.memo.values()) < LARGEST_TUPLE / 10
    assert len(content) < MOST_OPERATIONS / 4


def test_too_many_operations():
    with pytest.raises(pickle.UnpicklingError, match="too many operations"):
        Pickle(TENSORS).follow(io.BytesIO(b"N" * (MOST_OPERATIONS + 1)))


def test_records_that_share_their_bytes_are_refused(tmp_path):
    torch.save({str(number): torch.zeros(1 << 10) for number in range(4)}, tmp_path / "whole.th")
    assert len(read_state_dict(tmp_path / "whole.th")) == 4
    with zipfile.ZipFile(tmp_path / "whole.th") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        contents = {member.filename: archive.read(member) for member in archive.infolist()}
    with zipfile.ZipFile(tmp_path / "a.th", "w") as archive:
        for name, content in contents.items():
            if "/data/" not in name or name.endswith("/0"):
                archive.writestr(name, content)
        first = next(one for one in archive.infolist() if one.filename.endswith("/data/0"))
        for number in range(1, 4):
            other = copy.copy(first)
            other.filename = other.orig_filename = first.filename[:-1] + str(number)
            archive.filelist.append(other)
    with pytest.raises(ValueError, match="is a zip whose members overlap"):
        read_state_dict(tmp_path / "a.th")


def test_a_second_directory_that_only_torch_would_read_is_refused(tmp_path):
    """Python takes the directory before the end, torch the one that the end points to."""
    path = tmp_path / "a.th"
    harmless = b"\x80\x02}."
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (("hidden", nested(3)), ("archive", harmless)):
            archive.writestr(f"{name}/data.pkl".replace("hidden", "archivf"), content)
            archive.writestr(f"{name}/version".replace("hidden", "archivf"), "3\n")
        start = archive.infolist()[2].header_offset
    whole = path.read_bytes()
    directory = whole.index(b"PK\1\2")
    half = (len(whole) - 22 - directory) // 2
    hidden, shown = whole[directory : directory + half], bytearray(whole[directory + half : -22])
    # Python adds the distance of the two directories to all places
    for at in (42, shown.rindex(b"PK\1\2") + 42):
        place = int.from_bytes(shown[at : at + 4], "little") - half
        shown[at : at + 4] = place.to_bytes(4, "little")
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 2, 2, half, directory, 0)
    path.write_bytes(whole[:directory] + hidden + bytes(shown) + end)
    assert start > half
    with zipfile.ZipFile(path) as archive:
        assert archive.read("archive/data.pkl") == harmless
    with pytest.raises(ValueError, match="has more before its list of members than it says"):
        read_state_dict(path)


def test_a_zip_on_several_disks_is_one_sentence(tmp_path):
    path = tmp_path / "a.th"
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, 0, 2)
    path.write_bytes(b"PK\3\4" + locator + struct.pack("<4s4H2LH", b"PK\5\6", *[0] * 7))
    with pytest.raises(ValueError, match="is damaged .*multiple disks.*; get it again"):
        read_state_dict(path)


def test_a_zip_of_many_members_is_read(tmp_path):
    """One with so many that its end is of the larger kind."""
    with zipfile.ZipFile(tmp_path / "a.th", "w") as archive:
        for number in range((1 << 16) + 1):
            archive.writestr(f"{number:x}", b"")
    assert b"PK\6\7" in (tmp_path / "a.th").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.th") as archive:
        assert directory_start(tmp_path / "a.th") == archive.start_dir


def test_what_is_allocated_counts_once(tmp_path):
    whole = torch.zeros(1000)
    torch.save({"a": whole[:500], "b": whole[500:]}, tmp_path / "a.th")
    assert len(read_state_dict(tmp_path / "a.th")) == 2
    # an older file that names a storage but does not bring it
    torch.save({"a": whole[:1]}, tmp_path / "a.th", _use_new_zipfile_serialization=False)
    content = (tmp_path / "a.th").read_bytes()
    keys = pickle.dumps([], 2)
    cut = content[: content.rindex(b"\x80\x02]")] + keys
    (tmp_path / "a.th").write_bytes(cut.replace(b"M\xe8\x03", b"J\x00\x00\x00\x10"))
    with pytest.raises(ValueError, match="claims more numbers than it has bytes"):
        read_state_dict(tmp_path / "a.th")


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["<f2", "<f4", ">f4", "<f8", ">f8"])
def test_arrays_are_read_as_numpy_reads_them(kind, order, legacy, tmp_path):
    draw = np.random.default_rng(0).standard_normal((4, 4))
    saved = np.array(draw, dtype=kind, order=order)
    torch.save(saved, tmp_path / "a.pth", _use_new_zipfile_serialization=not legacy)
    assert np.array_equal(read_alignment(tmp_path / "a.pth", 4), saved.astype(np.float32))
