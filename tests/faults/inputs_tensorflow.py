"""Checkpoints of TensorFlow and modules of TF-Hub, whose checksums leave no room for others."""

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from faults.corruptions import hostile_json, missing
from faults.inputs_weights import WORDS, Weights, converted
from faults.kind import Damage, Files, write_files
from helpers.tensor_bundle import bundle, checkpoint_variables, message, module_variables, number
from helpers.tiny import random_arrays, tiny_config

from elmo_hf.conversion.options_map import options_from_config
from elmo_hf.conversion.source import open_source

HUGE = [1 << 20, 1 << 34, (1 << 63) - 1, -1, -(1 << 40)]
Entries = dict[str, dict[str, Any]]
# a module does not say how many characters it reads; those of the original are assumed
MODULE = tiny_config(max_characters_per_token=50, cell_clip=3.0, projection_clip=3.0)


def lying_entry(entries: Entries, name: str, draw: Random) -> str:
    """One field of an entry that cannot be true."""
    entry = entries[name]
    field = draw.choice(["shape", "shape", "offset", "size", "shard", "kind", "checksum", "more"])
    if field == "shape":
        shapes = [(draw.choice(HUGE),), (), (0,), (*entry["shape"], 2), (1,) * 300]
        shapes += [(draw.choice(HUGE), *entry["shape"][1:])]
        value: Any = draw.choice(shapes)
    elif field == "more":
        odd = [message(7, b"x"), message(2, number(3, 1)), b"\x0b", b"\xff" * 11, b"\x3a\xff\x7f"]
        value = draw.choice(odd)
    elif field == "kind":
        value = draw.choice([3, 7, 9, 19, 100, -1])
    elif field == "checksum":
        value = entry["checksum"] ^ 1 << draw.randrange(32)
    else:
        value = draw.choice(HUGE)
    entry[field] = value
    return f"{name}: {field} {str(value)[:40]}"


def lying_header(header: dict[str, Any], draw: Random) -> str:
    field = draw.choice(["shards", "endianness", "min_consumer"])
    header[field] = draw.choice([2, 7, 1 << 31, 1 << 62, -1])
    return f"header: {field} {header[field]}"


def other_block(draw: Random) -> Any:
    """A change of one block of the index, before its checksum is made."""

    def change(block: bytes) -> bytes:
        data = bytearray(block)
        at = draw.randrange(len(data))
        kind = draw.choice(["flip", "cut", "insert", "count"])
        if kind == "flip":
            data[at] ^= 1 << draw.randrange(8)
        elif kind == "cut":
            del data[at:]
        elif kind == "insert":
            data[at:at] = draw.randbytes(draw.choice([1, 9]))
        else:
            data[-4:] = draw.randbytes(4)
        return bytes(data)

    return change


def crafted_bundle(folder: str, name: str, make: Any) -> Any:
    """Lies about the variables of a bundle, with the right checksums."""

    def craft(files: Files, draw: Random) -> Damage:
        arrays = make(0)
        key = draw.choice([key for key in arrays if "Variable" not in key and arrays[key].ndim])
        done = [f"{key}: "]
        options: dict[str, Any] = {}
        kind = draw.choice(["entry", "entry", "header", "block", "type", "removed", "more", "nan"])
        # a fault in an accumulator or a state may never be looked at
        must_fail = kind in ("entry", "header", "type")
        if kind in ("entry", "header"):

            def lie(header: dict[str, Any], entries: Entries) -> None:
                done.append(
                    lying_entry(entries, key, draw)
                    if kind == "entry"
                    else lying_header(header, draw)
                )

            options["change"] = lie
        elif kind == "block":
            options["change_block"] = other_block(draw)
        elif kind == "type":
            options["block_type"] = draw.choice([1, 2, 255])
        elif kind == "removed":
            del arrays[key]
        elif kind == "more":
            arrays[f"{key}{draw.choice(['x', '/Adagrad/Adagrad', '/Adam'])}"] = arrays[key]
        else:
            arrays[key] = np.full_like(arrays[key], draw.choice([np.nan, np.inf]))
        made = {f"{folder}{file}": data for file, data in bundle(name, arrays, **options).items()}
        return Damage(files | made, f"{kind} {' '.join(done)}", must_fail, legal=kind == "block")

    return craft


def checkpoint(variant: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(variant)
    softmax = {
        "softmax/W": draw.standard_normal((len(WORDS), 8), np.float32),
        "softmax/b": draw.standard_normal(len(WORDS), np.float32),
    }
    return checkpoint_variables(random_arrays(tiny_config(), variant) | softmax)


def module(variant: int) -> dict[str, np.ndarray]:
    mix = {"aggregation/weights": np.ones(3, np.float32), "aggregation/scaling": np.float32(1)}
    arrays = random_arrays(MODULE, variant)
    return module_variables(arrays) | {name: np.asarray(array) for name, array in mix.items()}


class Checkpoint(Weights):
    name = "tensorflow checkpoint"
    targets = ("*.index", "*.data-*")
    crafts = (
        crafted_bundle("", "model.ckpt-7", checkpoint),
        hostile_json("options.json"),
        missing("*.index", "*.data-*", "options.json", "vocab.txt"),
    )

    def make(self, variant: int) -> None:
        write_files(Path(), bundle("model.ckpt-7", checkpoint(variant)))
        Path("options.json").write_text(json.dumps(options_from_config(tiny_config())))
        Path("vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")

    def run(self) -> Any:
        with open_source(".") as weights:
            return converted(weights)

    def arguments(self, output: str) -> list[str]:
        return ["elmo-hf", "convert", ".", "--output-dir", output]

    def doubt(self, result: Any, in_process: bool) -> str | None:
        return "the weights differ from those in the file"


class Module(Checkpoint):
    name = "tf-hub"
    targets = ("variables/*",)
    crafts = (
        crafted_bundle("variables/", "variables", module),
        missing("variables/*", "*.pb"),
    )

    def make(self, variant: int) -> None:
        write_files(Path("variables"), bundle("variables", module(variant)))
        Path("tfhub_module.pb").write_bytes(b"\x08\x03")
