"""Damages that know a format: hdf5, zip, gzip, lines of text, safetensors, pickles."""

import contextlib
import functools
import gzip
import io
import os
import struct
import warnings
import zipfile
import zlib
from random import Random
from typing import Any

import h5py
import numpy as np
from faults.kind import Craft, Damage, Files

# a bomb's size when unpacked: far above what is allowed, small enough to be made quickly
BOMB = 128 << 20
# the share of bombs, which take a second each
BOMBS = 0.02


def hdf5(files: Files, draw: Random) -> Damage:
    """Replaces one dataset by one of another shape, type or storage, or moves it."""
    store = io.BytesIO(files["weights.hdf5"])
    with h5py.File(store, "r+") as file:
        names: list[str] = []
        file.visititems(
            lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None
        )
        name = draw.choice(names)
        change = draw.choice(HDF5_CHANGES)
        must_fail = change(file, name, file[name][()], draw) is True
    return Damage(
        files | {"weights.hdf5": store.getvalue()}, f"{name}: {change.__name__}", must_fail
    )


def replace(file: Any, name: str, *arguments: Any, **settings: Any) -> None:
    del file[name]
    file.create_dataset(name, *arguments, **settings)


def other_type(file: Any, name: str, array: np.ndarray, draw: Random) -> bool:
    types = ["f2", "f8", ">f4", "i4", "u1", "S4", "c8", "?", [("a", "f4"), ("b", "i4")]]
    replace(file, name, data=np.zeros(array.shape, np.dtype(draw.choice(types))))
    return False


def strange_type(file: Any, name: str, array: np.ndarray, draw: Random) -> bool:
    types = [h5py.vlen_dtype("f4"), h5py.string_dtype(), h5py.ref_dtype, h5py.opaque_dtype("V8")]
    replace(file, name, shape=array.shape, dtype=draw.choice(types))
    return True


def other_shape(file: Any, name: str, array: np.ndarray, draw: Random) -> bool:
    shapes = [(), (0,), (1,), array.shape[::-1], (*array.shape, 1), array.shape[:-1], (2, 2, 2, 2)]
    shape = draw.choice([shape for shape in shapes if shape != array.shape])
    replace(file, name, data=np.ones(shape, np.float32))
    return True


def huge_shape(file: Any, name: str, array: np.ndarray, draw: Random) -> bool:
    shape = draw.choice([(1 << 40,), (1 << 20, 1 << 20), array.shape[:-1] + (1 << 34,)])
    replace(file, name, shape=shape, dtype="f4", chunks=True, compression="gzip")
    return True


def empty(file: Any, name: str, array: np.ndarray, draw: Random) -> bool:
    replace(file, name, data=h5py.Empty("f4"))
    return True


def not_finite(file: Any, name: str, array: np.ndarray, draw: Random) -> bool:
    array = array.copy()
    array.flat[draw.randrange(array.size)] = draw.choice([np.nan, np.inf, -np.inf])
    replace(file, name, data=array)
    return True


def external(file: Any, name: str, array: np.ndarray, draw: Random) -> bool:
    place = [("/etc/passwd", 0, h5py.h5f.UNLIMITED)]
    replace(file, name, shape=array.shape, dtype="f4", external=place)
    return True


def virtual(file: Any, name: str, array: np.ndarray, draw: Random) -> bool:
    del file[name]
    layout = h5py.VirtualLayout(shape=array.shape, dtype="f4")
    layout[...] = h5py.VirtualSource("missing.hdf5", "a", shape=array.shape)
    file.create_virtual_dataset(name, layout)
    return True


def soft_link(file: Any, name: str, array: np.ndarray, draw: Random) -> bool:
    del file[name]
    links = [h5py.SoftLink("/nowhere"), h5py.ExternalLink("other.hdf5", "/a"), h5py.SoftLink("/")]
    file[name] = draw.choice(links)
    return True


def loop(file: Any, name: str, array: np.ndarray, draw: Random) -> bool:
    file["CNN/again"] = file["/"]
    return False


def removed(file: Any, name: str, array: np.ndarray, draw: Random) -> bool:
    del file[name]
    # without its softmax a model is whole
    return not name.startswith("softmax")


def unknown(file: Any, name: str, array: np.ndarray, draw: Random) -> bool:
    names = ["more", "CNN/W_cnn_9", "RNN_2/a", "embedding", "rnn/a"]
    # a word-level model has an embedding
    file[draw.choice([other for other in names if other not in file])] = array
    return True


def group_instead(file: Any, name: str, array: np.ndarray, draw: Random) -> bool:
    del file[name]
    file.create_group(name)
    return True


def attributes(file: Any, name: str, array: np.ndarray, draw: Random) -> bool:
    file[name].attrs["note"] = draw.choice(["x" * 1000, [1, 2], np.nan])
    return False


def compressed(file: Any, name: str, array: np.ndarray, draw: Random) -> bool:
    replace(file, name, data=array, chunks=True, compression="gzip", fletcher32=True)
    return False


HDF5_CHANGES = [other_type, strange_type, other_shape, huge_shape, empty, not_finite, external]
HDF5_CHANGES += [virtual, soft_link, loop, removed, unknown, group_instead, attributes, compressed]


def zip_archive(files: Files, draw: Random) -> Damage:
    """Changes flags, methods and names of a zip, or adds members that nobody needs."""
    data = bytearray(files["model.zip"])
    change = draw.choice(["encrypted", "method", "name", "outside", "twice", "deep", "size"])
    if draw.random() < BOMBS:
        change = "bomb"
    heads = [at for at in range(len(data) - 3) if data[at : at + 4] == b"PK\1\2"]
    if change in ("encrypted", "method", "size") and heads:
        at = draw.choice(heads)
        offset = {"encrypted": 8, "method": 10, "size": draw.choice([20, 24])}[change]
        value = {"encrypted": 1, "method": draw.choice([1, 9, 12, 14, 93, 99, 0])}
        data[at + offset : at + offset + 2] = struct.pack("<H", value.get(change, 0xFFFF))
        local = struct.unpack("<I", data[at + 42 : at + 46])[0]
        if change != "size":
            data[local + offset - 2 : local + offset] = data[at + offset : at + offset + 2]
        return Damage(files | {"model.zip": bytes(data)}, f"{change} at {at}")
    store = io.BytesIO(bytes(data))
    with zipfile.ZipFile(store, "a", zipfile.ZIP_DEFLATED) as archive:
        names = {
            "name": draw.choice(["a\\..\\..\\b", "con", "x" * 300, "ü/../x", "\ud7ff", " "]),
            "outside": draw.choice(["../../outside", "/tmp/outside", "a/../../outside"]),
            "twice": "folder/options.json",
            "deep": "d/" * 2000 + "x",
            "bomb": "folder/bomb.bin",
        }
        content = bytes(BOMB) if change == "bomb" else b"{}"
        # about a name that is there twice
        with warnings.catch_warnings(action="ignore"):
            archive.writestr(names.get(change, "x"), content)
    return Damage(files | {"model.zip": store.getvalue()}, f"a member of kind {change!r} added")


def gzip_file(name: str) -> Craft:
    """Members, headers, trailers and bombs."""

    def craft(files: Files, draw: Random) -> Damage:
        data = files[name]
        text = gzip.decompress(data)
        half = len(text) // 2
        changes = {
            "two members": gzip.compress(text[:half]) + gzip.compress(text[half:]),
            "garbage after it": data + draw.randbytes(draw.choice([1, 8, 600])),
            "zeros after it": data + bytes(512),
            "a wrong checksum": data[:-8] + draw.randbytes(4) + data[-4:],
            "a wrong length": data[:-4] + draw.randbytes(4),
            "no trailer": data[:-8],
            "another method": data[:2] + bytes([draw.randrange(256)]) + data[3:],
            "flags": data[:3] + bytes([draw.randrange(256)]) + data[4:],
            "not compressed": text,
            "raw deflate": zlib.compress(text),
            "empty member": gzip.compress(b"") + data,
            "compressed twice": gzip.compress(data),
        }
        if draw.random() < BOMBS:
            changes = {"a bomb of one line": bomb()}
        change = draw.choice(sorted(changes))
        return Damage(files | {name: changes[change]}, f"{name}: {change}")

    return craft


@functools.cache
def bomb() -> bytes:
    return gzip.compress(b"x" * BOMB, 1)


def gunzipped_size(data: bytes) -> int:
    """What a reader may hold of a gzipped file: not all of a bomb."""
    unpacker, size = zlib.decompressobj(31), 0
    with contextlib.suppress(zlib.error):
        size = len(unpacker.decompress(data, 1 << 20))
    return max(size, len(data))


ODD_LINES = [b"", b" ", b"\t", b"\r", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\x85"]
ODD_LINES += ["\u2028".encode(), "\u00a0".encode(), b"<S>", b"<UNK>", b"!!!MAXTERMID", b"# "]
ODD_LINES += [b"a" * 5000, "\u0301".encode() * 100, b"word " * 3000, b"\x1c", b"1\t2"]


def lines(name: str) -> Craft:
    """Lines of a text that are odd, repeated, missing, or end otherwise."""

    def craft(files: Files, draw: Random) -> Damage:
        found = files[name].split(b"\n")
        at = draw.randrange(len(found))
        odd = draw.choice(ODD_LINES)
        change = draw.choice(["inserted", "replaced", "appended", "removed", "doubled", "ends"])
        if change == "inserted":
            found.insert(at, odd)
        elif change == "replaced":
            found[at] = odd
        elif change == "appended":
            found[at] += odd
        elif change == "removed":
            del found[at]
        elif change == "doubled":
            found.insert(at, found[at])
        end = draw.choice([b"\r\n", b"\r", b"\n\n"]) if change == "ends" else b"\n"
        return Damage(files | {name: end.join(found)}, f"line {at} {change}: {odd[:20]!r}")

    return craft


class Trap:
    """A pickle that leaves a file behind when it is loaded."""

    def __reduce__(self) -> tuple:
        return os.mkdir, ("a-pickle-was-run",)
