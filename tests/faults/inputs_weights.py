"""Published weights: hdf5, options.json, zip, and the words of the softmax."""

import gzip
import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from faults import crafted
from faults.corruptions import hostile_json
from faults.kind import Files, Kind, digest
from helpers.tiny import random_arrays, tiny_config
from safetensors.numpy import load_file

from elmo_hf import WordVocabulary
from elmo_hf.conversion import formats
from elmo_hf.conversion.building import add_softmax, load_converted
from elmo_hf.conversion.formats.bilm_hdf5 import Source, open_files
from elmo_hf.conversion.options_map import options_from_config
from elmo_hf.conversion.source import open_source
from elmo_hf.conversion.weights_file import write_weights

WORDS = ["<S>", "</S>", "<UNK>", "the", "bank", "Ufer", "Ça", "."]


def write_published(variant: int) -> None:
    """options.json, weights.hdf5 with a softmax, and vocab.txt."""
    config = tiny_config()
    draw = np.random.default_rng(variant)
    softmax = {
        "softmax/W": draw.standard_normal((len(WORDS), config.projection_size), np.float32),
        "softmax/b": draw.standard_normal(len(WORDS), np.float32),
    }
    Path("options.json").write_text(json.dumps(options_from_config(config)))
    write_weights(Path("weights.hdf5"), (random_arrays(config, variant) | softmax).items())
    order = [*WORDS[:3], *sorted(WORDS[3:], reverse=bool(variant))]
    Path("vocab.txt").write_text("\n".join(order) + "\n", encoding="utf-8")


def summary(weights: dict[str, np.ndarray]) -> tuple[str, str]:
    """All weights bit by bit, and the sizes of those in matrices, wherever they moved."""
    exact = "".join(f"{name} {digest(weights[name])} " for name in sorted(weights))
    return digest(exact.encode()), magnitudes(weights.values())


def magnitudes(arrays: Iterable[np.ndarray]) -> str:
    """Conversion transposes, cuts and joins matrices but changes none of their values."""
    flat = [np.abs(array, dtype=np.float32).ravel() for array in arrays if array.ndim > 1]
    joined = np.sort(np.concatenate([np.zeros(0, np.float32), *flat]))
    # a row of zeros is added for "no word"
    return digest(joined[joined > 0])


def converted(weights: formats.Weights) -> tuple[str, str]:
    model, _ = load_converted(weights)
    whole = add_softmax(model, weights) or model
    mixes = (name for name in whole.state_dict() if "mixes." not in name)
    return summary({name: whole.state_dict()[name].numpy() for name in mixes})


class Weights(Kind):
    """hdf5 weights."""

    name = "hdf5"
    targets = ("weights.hdf5",)
    crafts = (crafted.hdf5,)

    def make(self, variant: int) -> None:
        write_published(variant)
        Path("vocab.txt").unlink()

    def run(self) -> Any:
        with open_files(Source(Path("options.json"), Path("weights.hdf5"))) as weights:
            return converted(weights)

    def arguments(self, output: str) -> list[str]:
        files = ["--options-file", "options.json", "--weight-file", "weights.hdf5"]
        return ["elmo-hf", "convert", *files, "--output-dir", output]

    def result(self, output: Path) -> Any:
        weights = load_file(output / "model.safetensors")
        return summary({name: part for name, part in weights.items() if "mixes." not in name})

    def doubt(self, result: Any, in_process: bool) -> str | None:
        """hdf5 has no checksums: another number is another file, but it must arrive."""
        with h5py.File("weights.hdf5") as file:
            arrays = list(arrays_in(file))
        if magnitudes(arrays) != result[1]:
            return "the weights differ from those in the file"
        return None


def arrays_in(group: Any) -> Iterator[np.ndarray]:
    """By their names: where a file is damaged, h5py may not visit all items at once."""
    for name in group:
        if isinstance(group[name], h5py.Dataset):
            yield group[name][()]
        else:
            yield from arrays_in(group[name])


class Options(Weights):
    """options.json beside intact weights, which it cannot change."""

    name = "options.json"
    targets = ("options.json",)
    crafts = (hostile_json("options.json"),)

    def doubt(self, result: Any, in_process: bool) -> str | None:
        return "the weights differ from those in the file"


class Zip(Weights):
    """The files in a zip, whose checksums leave no room for other numbers."""

    name = "zip"
    targets = ("model.zip",)
    crafts = (crafted.zip_archive,)

    def make(self, variant: int) -> None:
        write_published(variant)
        with zipfile.ZipFile("model.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name in ("options.json", "weights.hdf5", "vocab.txt"):
                archive.write(name, f"folder/{name}")
                Path(name).unlink()

    def run(self) -> Any:
        with open_source("model.zip") as weights:
            return converted(weights)

    def arguments(self, output: str) -> list[str]:
        return ["elmo-hf", "convert", "model.zip", "--output-dir", output]

    def doubt(self, result: Any, in_process: bool) -> str | None:
        return "the weights differ from those in the file"

    def unpacked_size(self, files: Files) -> int:
        try:
            with zipfile.ZipFile(io.BytesIO(files["model.zip"])) as archive:
                wanted = [entry for entry in archive.infolist() if "bomb" not in entry.filename]
                return sum(min(entry.file_size, 1 << 20) for entry in wanted)
        except Exception:
            return len(files["model.zip"])


class Vocabulary(Weights):
    """The words of a softmax."""

    name = "vocabulary"
    file = "vocab.txt"
    targets = ("vocab.txt*",)
    crafts = (crafted.lines("vocab.txt"),)

    def make(self, variant: int) -> None:
        write_published(variant)

    def run(self) -> Any:
        return WordVocabulary.load(self.file).words

    def arguments(self, output: str) -> list[str]:
        command = super().arguments(output)
        return [*command, "--vocab-file", self.file]

    def result(self, output: Path) -> Any:
        return (output / "lm_vocabulary.txt").read_bytes().decode().split("\n")[:-1]

    def doubt(self, result: Any, in_process: bool) -> str | None:
        words = self.read_words()
        while words and words[-1] in ("", "!!!MAXTERMID"):
            words.pop()
        if result != words:
            return "the words differ from those in the file"
        return None if in_process or len(words) == len(WORDS) else "another number of words"

    def read_words(self) -> list[str]:
        text = Path(self.file).read_bytes().decode("utf-8-sig")
        return [line.removesuffix("\r") for line in text.split("\n")]


class GzippedVocabulary(Vocabulary):
    name = "vocabulary.gz"
    file = "vocab.txt.gz"
    crafts = (crafted.gzip_file("vocab.txt.gz"),)

    def make(self, variant: int) -> None:
        write_published(variant)
        Path(self.file).write_bytes(gzip.compress(Path("vocab.txt").read_bytes(), mtime=0))
        Path("vocab.txt").unlink()

    def read_words(self) -> list[str]:
        text = gzip.decompress(Path(self.file).read_bytes()).decode("utf-8-sig")
        return [line.removesuffix("\r") for line in text.split("\n")]

    def unpacked_size(self, files: Files) -> int:
        return crafted.gunzipped_size(files[self.file])
