# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The model inside the package: a small English biLM and taggers on it, for first steps.

`elmo_hf/bundled_model` is the biLM's folder. Each tagger adds two files to it: `<task>.json`, its
configuration, and `<task>.safetensors`, the parameters it has besides the biLM's. So the wheel
holds the biLM once; a whole tagger is put together in the cache when it is first needed. The model
card is `bundled_model/README.md`; `examples/bundled_model` trains and packs everything.
"""

import hashlib
import shutil
from pathlib import Path

from huggingface_hub import ModelCard
from safetensors.torch import load_file, save

from elmo_hf.configuration_elmo import ElmoConfig
from elmo_hf.hub.cards import bundled_tagger_card
from elmo_hf.system.cache import cache_folder, cache_home
from elmo_hf.system.writing import new_file

# The name of the model in every command; a folder of this name is reached as ./bundled.
BUNDLED = "bundled"
# The taggers by the kinds of tags that the option --task names.
TAGGERS = {"pos": "upos", "ner": "ner"}
FOLDER = Path(__file__).resolve().parents[1] / "bundled_model"
WEIGHTS = "model.safetensors"


def bundled_model() -> str:
    """The biLM's folder, as in `ElmoModel.from_pretrained(bundled_model())`."""
    return str(FOLDER)


def bundled_tagger(task: str = "upos") -> str:
    """The folder of a tagger on the bundled biLM: an ordinary model folder in the cache."""
    files = tagger_files(task)
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name} {len(content)} ".encode() + content)
    # Other contents have another name, so files of another release are never met here.
    name = f"bundled-{task}-{digest.hexdigest()[:16]}"
    # A complete folder serves even where it cannot be written, as in a container's image.
    folder = cache_home() / name
    if not has_exactly(folder, files):
        folder = cache_folder() / name
        write_files(folder, files)
    return str(folder)


def bundled_tasks() -> list[str]:
    """The tasks that have a bundled tagger."""
    return sorted(file.stem for file in FOLDER.glob("*.safetensors") if file.name != WEIGHTS)


def tagger_files(task: str) -> dict[str, bytes]:
    """All files of a tagger's folder by name."""
    if task not in bundled_tasks():
        tasks = ", ".join(bundled_tasks())
        raise ValueError(f"There is no bundled tagger for {task!r}; the tasks are: {tasks}.")
    tensors = load_file(FOLDER / WEIGHTS) | load_file(FOLDER / f"{task}.safetensors")
    config = ElmoConfig.from_json_file(FOLDER / f"{task}.json")
    card = bundled_tagger_card(config, task, ModelCard.load(FOLDER / "README.md"))
    return {
        "config.json": (FOLDER / f"{task}.json").read_bytes(),
        WEIGHTS: save(tensors, metadata={"format": "pt"}),
        "tokenizer_config.json": (FOLDER / "tokenizer_config.json").read_bytes(),
        "README.md": card.encode(),
    }


def has_exactly(folder: Path, files: dict[str, bytes]) -> bool:
    """Whether all these files are in a folder, byte for byte."""
    try:
        return all((folder / name).read_bytes() == content for name, content in files.items())
    except OSError:
        return False


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """
    Writes the files of a folder, or mends them. Each takes its name whole and always has the same
    content, so several processes may do so at once, even while others read.
    """
    for name, content in files.items():
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)
        with new_file(folder / name) as building:
            building.write_bytes(content)


def find_model(name: str) -> str:
    """The biLM's folder if the name is `bundled`, or else the name as it is."""
    return bundled_model() if name == BUNDLED else name


def find_tagger(name: str, task: str = "pos") -> str:
    """The folder of this task's tagger if the name is `bundled`, or else the name as it is."""
    return bundled_tagger(TAGGERS[task]) if name == BUNDLED else name
