"""A writer of TensorFlow's TensorBundle, so that tests need no TensorFlow."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from elmo_hf.conversion.crc32c import masked_crc32c

MAGIC = 0xDB4775248B80FB57
KINDS = {"float32": 1, "float64": 2, "int32": 3, "int64": 9, "float16": 19}
CELL_PARTS = {"W_0": "kernel", "B": "bias", "W_P_0": "projection/kernel"}


def varint(value: int) -> bytes:
    value %= 1 << 64
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def number(field: int, value: int) -> bytes:
    """A field of a protocol buffer; one that is 0 is left out."""
    return varint(field << 3) + varint(value) if value else b""


def message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def encode_entry(entry: dict[str, Any]) -> bytes:
    axes = b"".join(message(2, number(1, axis)) for axis in entry["shape"])
    fields = [number(1, entry["kind"]), message(2, axes), number(3, entry["shard"])]
    fields += [number(4, entry["offset"]), number(5, entry["size"])]
    checksum = varint(6 << 3 | 5) + struct.pack("<I", entry["checksum"])
    return b"".join(fields) + checksum + entry.get("more", b"")


def encode_header(header: dict[str, Any]) -> bytes:
    version = message(3, number(1, 1) + number(2, header["min_consumer"]))
    return number(1, header["shards"]) + number(2, header["endianness"]) + version


def encode_block(items: list[tuple[bytes, bytes]], restart_every: int = 16) -> bytes:
    """Names share their beginnings with the one before, except at every restart."""
    body, restarts, previous = b"", [], b""
    for place, (name, value) in enumerate(items):
        shared = 0
        if place % restart_every == 0:
            restarts.append(len(body))
        else:
            while shared < min(len(name), len(previous)) and name[shared] == previous[shared]:
                shared += 1
        rest = name[shared:]
        body += varint(shared) + varint(len(rest)) + varint(len(value)) + rest + value
        previous = name
    restarts = restarts or [0]
    return body + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))


def encode_table(
    items: list[tuple[bytes, bytes]],
    entries_per_block: int = 1000,
    block_type: int = 0,
    change_block: Callable[[bytes], bytes] = lambda block: block,
) -> bytes:
    """The index: blocks of entries, an empty block of facts, a block of places, and the footer."""
    table = b""

    def add(block: bytes) -> bytes:
        nonlocal table
        place = varint(len(table)) + varint(len(block))
        stored = block + bytes([block_type])
        table += stored + struct.pack("<I", masked_crc32c(stored))
        return place

    starts = range(0, len(items), entries_per_block)
    blocks = [items[start : start + entries_per_block] for start in starts]
    places = [(block[-1][0], add(change_block(encode_block(block)))) for block in blocks]
    footer = add(encode_block([])) + add(encode_block(places))
    return table + footer.ljust(40, b"\0") + struct.pack("<Q", MAGIC)


def bundle(
    name: str,
    arrays: dict[str, np.ndarray],
    change: Callable[[dict[str, Any], dict[str, dict[str, Any]]], None] | None = None,
    shards: int = 1,
    **table: Any,
) -> dict[str, bytes]:
    """The files of a bundle; `change` may let the header or entries lie before they are encoded."""
    data = [b""] * shards
    entries: dict[str, dict[str, Any]] = {}
    for place, key in enumerate(sorted(arrays, key=str.encode)):
        array, shard = arrays[key], place % shards
        content = array.tobytes()
        entries[key] = {
            "kind": KINDS[array.dtype.name],
            "shape": array.shape,
            "shard": shard,
            "offset": len(data[shard]),
            "size": len(content),
            "checksum": masked_crc32c(content),
        }
        data[shard] += content
    header = {"shards": shards, "endianness": 0, "min_consumer": 0}
    if change is not None:
        change(header, entries)
    items = [(b"", encode_header(header))]
    items += sorted((key.encode(), encode_entry(entry)) for key, entry in entries.items())
    files = {f"{name}.index": encode_table(items, **table)}
    for shard, content in enumerate(data):
        files[f"{name}.data-{shard:05d}-of-{shards:05d}"] = content
    return files


def write_bundle(folder: Path, name: str, arrays: dict[str, np.ndarray], **options: Any) -> Path:
    """Writes the files of a bundle; returns the index."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in bundle(name, arrays, **options).items():
        (folder / file).write_bytes(content)
    return folder / f"{name}.index"


def training_variables(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays of the hdf5 layout under the names that bilm-tf's training gives them."""
    single = not any("Cell1/" in key for key in arrays)
    return {training_name(key, single): array for key, array in arrays.items()}


def training_name(key: str, single: bool) -> str:
    if not key.startswith("RNN_"):
        return f"lm/{key}"
    direction, _, _, cell, _, part = key.split("/")
    layer = "" if single else f"multi_rnn_cell/cell_{cell.removeprefix('Cell')}/"
    return f"lm/{direction}/rnn/{layer}lstm_cell/{CELL_PARTS[part]}"


def checkpoint_variables(arrays: dict[str, np.ndarray], steps: int = 7) -> dict[str, np.ndarray]:
    """All that bilm-tf saves: with each variable its accumulator, here one more than its square."""
    variables = training_variables(arrays)
    sums = {f"{name}/Adagrad": 1 + array * array for name, array in variables.items()}
    scalars = {"global_step": np.float32(steps), "train_perplexity": np.float32(0)}
    return variables | sums | {name: np.asarray(value) for name, value in scalars.items()}


def module_variables(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays of the hdf5 layout as a TF-Hub module names them, with a row for padding and state."""
    found = {}
    for key, array in arrays.items():
        *path, part = key.split("/")
        if path[-1:] == ["LSTMCell"]:
            key = "/".join([*path[:-1], "rnn/lstm_cell", CELL_PARTS[part]])
        found[f"bilm/{key}"] = array
    rows = found["bilm/char_embed"]
    found["bilm/char_embed"] = np.concatenate([np.zeros_like(rows[:1]), rows])
    state = {f"bilm/Variable{end}": np.ones((4, 8), np.float32) for end in ("", "_1", "_12")}
    return found | state
