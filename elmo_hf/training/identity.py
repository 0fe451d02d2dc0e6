# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What a run is: a folder goes on with the run it holds, and with no other.

`run.json`, in the output folder and in every checkpoint, keeps what decides the result of a run:
settings, configuration, labels, and hashes of texts and weights.
"""

import hashlib
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from torch import nn
from tqdm.auto import tqdm

from elmo_hf._version import __version__
from elmo_hf.configuration_elmo import ElmoConfig
from elmo_hf.embedding.fingerprint import add_weights
from elmo_hf.modeling_elmo import ElmoPreTrainedModel
from elmo_hf.system.untrusted import read_json
from elmo_hf.system.writing import write_text

NAME = "run.json"
LIBRARIES = ("accelerate", "datasets", "numpy", "torch", "transformers")
# What decides numbers among the fields of ElmoConfig itself: transformers has more, and others in
# every version.
FIELDS = ElmoConfig.__annotations__.keys() - {"format_version", "provenance"}
WAY_OUT = "pass --overwrite_output_dir to train anew, or choose another --output_dir"


def describe_run(
    kind: str,
    model: ElmoPreTrainedModel,
    settings: dict[str, Any],
    contents: dict[str, str],
    num_processes: int,
) -> dict[str, Any]:
    """
    The identity of a run. `kind` names what is trained; `contents` has hashes by what they are of,
    such as "training text".
    """
    config = model.config
    trained = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    counts = {"number of processes": num_processes, "number of trained weights": trained}
    identity = {
        "kind": kind,
        "settings": settings | counts,
        "model": {name: getattr(config, name) for name in sorted(FIELDS)},
        "labels": [label for _, label in sorted((config.id2label or {}).items())],
        "contents": contents,
        "versions": {"elmo_hf": __version__} | {name: version(name) for name in LIBRARIES},
    }
    # as it will be read from the file
    return json.loads(json.dumps(identity, default=str))


def hash_sentences(dataset: Any) -> str:
    """A hash of the words and labels of a dataset."""
    key = hashlib.sha256()
    for rows in dataset.select_columns(["tokens", "labels"]).iter(batch_size=1000):
        key.update(json.dumps([rows["tokens"], rows["labels"]]).encode())
    return key.hexdigest()[:16]


def hash_weights(*modules: nn.Module | None) -> str:
    """A hash of the weights of all modules that are there."""
    key = hashlib.sha256()
    for module in modules:
        if module is not None:
            add_weights(key, module)
    return key.hexdigest()[:16]


def write_identity(folder: Path, identity: dict[str, Any]) -> None:
    write_text(folder / NAME, json.dumps(identity, indent=1) + "\n")


def read_identity(folder: Path) -> dict[str, Any] | None:
    """None if there is none, or if it is damaged."""
    try:
        identity = read_json(folder / NAME)
        parts = {name: identity[name] for name in ("settings", "model", "contents", "versions")}
        if not all(isinstance(part, dict) for part in parts.values()):
            return None
        labels = [str(label) for label in identity["labels"]]
        return {"kind": str(identity["kind"]), "labels": labels, **parts}
    except (OSError, ValueError, TypeError, KeyError):
        return None


def refuse_other_run(folder: Path, known: dict[str, Any] | None, identity: dict[str, Any]) -> None:
    """Raises an error unless the run that a folder is known to hold is this one."""
    difference = "a damaged identity" if known is None else find_difference(known, identity)
    if difference:
        raise ValueError(f"{str(folder)!r} holds a run with {difference}; {WAY_OUT}.")


def find_difference(old: dict[str, Any], new: dict[str, Any]) -> str | None:
    """The first thing in which two runs differ, to be part of a sentence."""
    if old["kind"] != new["kind"]:
        return f"another kind of model ({old['kind']})"
    for part in ("settings", "model"):
        # a setting that only one of them knows is of another version, and has its default
        for name in sorted(old[part].keys() & new[part].keys()):
            was, now = old[part][name], new[part][name]
            if was != now:
                return f"{name} {was!r}, not {now!r}"
    if old["labels"] != new["labels"]:
        odd = sorted(set(old["labels"]) ^ set(new["labels"]), key=str)
        if not odd:
            return "its labels in another order"
        return f"other labels ({odd[0]!r} is {'missing' if odd[0] in old['labels'] else 'new'})"
    for name in sorted(old["contents"].keys() | new["contents"].keys()):
        if old["contents"].get(name) != new["contents"].get(name):
            return f"another {name}"
    return None


def report_versions(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Another version of a library may change numbers slightly; that is for the user to judge."""
    changed = [
        f"{name} {old.get(name)}, now {now}" for name, now in new.items() if old.get(name) != now
    ]
    if changed:
        tqdm.write(
            f"This run began with other versions ({'; '.join(changed)}), and its numbers may "
            "differ slightly from those of an uninterrupted run.",
            file=sys.stderr,
        )
