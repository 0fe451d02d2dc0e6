"""Damages that need no knowledge of a format, and hostile values for JSON."""

import json
from collections.abc import Iterator
from fnmatch import fnmatch
from random import Random
from typing import Any

from faults.kind import Craft, Damage, Files, Kind

HOSTILE = [
    *(None, True, False, [], {}, "", "x", [[]], [[1]], [[1, 2, 3]], {"a": 1}, "\0", "../../x"),
    *(
        -1,
        0,
        1,
        2**31,
        2**63,
        10**30,
        0.5,
        1e308,
        -1e308,
        float("nan"),
        float("inf"),
        "1",
        "\ud800",
    ),
]
# written as text, since Python's own writer would refuse or run out of stack
RAW_JSON = [
    "[" * 100_000,
    '{"a":' * 50_000 + "1" + "}" * 50_000,
    "9" * 5000,
    "-",
    "nul",
    "\ufeff{}",
]


def flip_bits(data: bytearray, draw: Random, other: bytes) -> str:
    places = [draw.randrange(8 * len(data)) for _ in range(draw.choice([1, 1, 2, 8, 64]))]
    for place in places:
        data[place // 8] ^= 1 << place % 8
    return f"{len(places)} bits flipped, the first in byte {places[0] // 8}"


def zero_run(data: bytearray, draw: Random, other: bytes) -> str:
    start, stop = span(data, draw)
    data[start:stop] = bytes(stop - start)
    return f"bytes {start} to {stop} zeroed"


def truncate(data: bytearray, draw: Random, other: bytes) -> str:
    size = draw.choice([0, 1, draw.randrange(len(data)), len(data) - 1])
    del data[size:]
    return f"truncated to {size} bytes"


def insert(data: bytearray, draw: Random, other: bytes) -> str:
    place, size = draw.randrange(len(data) + 1), draw.choice([1, 2, 16, 512])
    data[place:place] = draw.randbytes(size)
    return f"{size} random bytes inserted at {place}"


def delete(data: bytearray, draw: Random, other: bytes) -> str:
    start, stop = span(data, draw)
    del data[start:stop]
    return f"bytes {start} to {stop} deleted"


def overwrite(data: bytearray, draw: Random, other: bytes) -> str:
    start, stop = span(data, draw)
    data[start:stop] = draw.randbytes(stop - start)
    return f"bytes {start} to {stop} randomised"


def duplicate(data: bytearray, draw: Random, other: bytes) -> str:
    start, stop = span(data, draw)
    data[start:start] = data[start:stop]
    return f"bytes {start} to {stop} duplicated"


def swap_blocks(data: bytearray, draw: Random, other: bytes) -> str:
    first, second = sorted(draw.randrange(len(data)) for _ in range(2))
    size = min(second - first, len(data) - second, draw.choice([1, 64, 512]))
    one, two = bytes(data[first : first + size]), bytes(data[second : second + size])
    data[first : first + size], data[second : second + size] = two, one
    return f"{size} bytes at {first} and {second} swapped"


def splice(data: bytearray, draw: Random, other: bytes) -> str:
    """The beginning of this one and the end of another valid one."""
    here, there = draw.randrange(len(data) + 1), draw.randrange(1, len(other) + 1)
    data[here:] = other[there:]
    return f"from byte {here} on, another valid file from byte {there} on"


def append(data: bytearray, draw: Random, other: bytes) -> str:
    data += other[: draw.randrange(1, len(other) + 1)]
    return "the beginning of another valid file appended"


BLIND = (flip_bits, zero_run, truncate, insert, delete, overwrite, duplicate, swap_blocks, splice)
BLIND = (*BLIND, append)


def span(data: bytes, draw: Random) -> tuple[int, int]:
    start = draw.randrange(len(data))
    return start, min(len(data), start + draw.choice([1, 4, 64, 512, 4096]))


def damage_input(kind: Kind, valid: list[Files], draw: Random) -> Damage:
    """One of the kind's own damages, or a blind one to one of its files."""
    if kind.crafts and draw.random() < 0.5:
        return draw.choice(kind.crafts)(dict(valid[0]), draw)
    files, others = dict(valid[0]), list(targets(kind, valid[-1]))
    names = list(targets(kind, files))
    name = draw.choice([name for name in names if files[name]] or names)
    # the same file of another input, whose name may hold a hash
    other = valid[-1][others[names.index(name) % len(others)]]
    data = bytearray(files[name])
    corrupt = draw.choice(BLIND)
    text = corrupt(data, draw, other or b"\0") if data else "nothing"
    files[name] = bytes(data)
    return Damage(files, f"{name}: {text}")


def targets(kind: Kind, files: Files) -> Iterator[str]:
    return (name for name in sorted(files) if kind.is_target(name))


def hostile_json(*names: str) -> Craft:
    """Replaces, removes or adds one value of a JSON file."""

    def craft(files: Files, draw: Random) -> Damage:
        name = draw.choice(names)
        if draw.random() < 0.05:
            files[name] = draw.choice(RAW_JSON).encode()
            return Damage(files, f"{name}: replaced by {files[name][:20]!r}")
        values = json.loads(files[name])
        parent, key = draw.choice(list(places(values)))
        value = draw.choice(HOSTILE)
        done = draw.choice(["replaced", "replaced", "replaced", "removed", "nested"])
        if done == "removed":
            del parent[key]
        else:
            parent[key] = value if done == "replaced" else [parent[key]]
        files[name] = json.dumps(values).encode()
        return Damage(files, f"{name}: {key!r} {done} ({value!r})")

    return craft


def places(values: Any) -> Iterator[tuple[Any, Any]]:
    """Every value of a JSON document, as its container and its key."""
    items = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in list(items):
        yield values, key
        if isinstance(value, (dict, list)):
            yield from places(value)


def missing(*patterns: str) -> Craft:
    """Deletes one of these files."""

    def craft(files: Files, draw: Random) -> Damage:
        found = [name for name in sorted(files) if any(fnmatch(name, part) for part in patterns)]
        lost = draw.choice(found)
        del files[lost]
        return Damage(files, f"{lost} deleted")

    return craft
