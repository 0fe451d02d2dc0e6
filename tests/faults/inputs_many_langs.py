"""Models that know words or characters by dictionaries: ELMoForManyLangs, word-level bilm."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from faults import crafted
from faults.corruptions import missing
from faults.inputs_archives import pickled
from faults.inputs_weights import Weights, magnitudes, summary
from helpers.many_langs import write_many_langs
from helpers.word_level import write_word_level

from elmo_hf.conversion.building import load_converted
from elmo_hf.conversion.source import open_source
from elmo_hf.dictionaries import NO_KEY

PICKLES = ("token_embedder.pkl", "encoder.pkl")
DICTIONARIES = ("char.dic", "word.dic")


class ManyLangs(Weights):
    """Pickles and dictionaries."""

    name = "many languages"
    targets = tuple(f"model/{name}" for name in (*PICKLES, *DICTIONARIES, "config.json"))
    crafts = (
        *(pickled(f"model/{name}") for name in PICKLES),
        *(crafted.lines(f"model/{name}") for name in DICTIONARIES),
        missing("model/*"),
    )

    def make(self, variant: int) -> None:
        write_many_langs(Path("model"), old_form=bool(variant % 2), seed=variant)

    def run(self) -> Any:
        with open_source("model") as weights:
            model, _ = load_converted(weights)
        known = [one.keys for one in (model.dictionaries.characters, model.dictionaries.words)]
        state = model.state_dict()
        arrays = {name: state[name].numpy() for name in state if "mixes." not in name}
        return *summary(arrays), known

    def arguments(self, output: str) -> list[str]:
        return ["elmo-hf", "convert", "model", "--output-dir", output]

    def result(self, output: Path) -> Any:
        return *super().result(output), [read_keys(output / name) for name in DICTIONARIES]

    def doubt(self, result: Any, in_process: bool) -> str | None:
        """Neither pickles nor dictionaries have checksums, but what they hold must arrive."""
        arrays: list[np.ndarray] = []
        for name in PICKLES:
            tensors = torch.load(f"model/{name}", weights_only=True)
            arrays += [part.float().numpy() for part in tensors.values()]
        if magnitudes(arrays) != result[1]:
            return "the weights differ from those in the files"
        if [read_keys(Path("model") / name) for name in DICTIONARIES] != result[2]:
            return "the dictionaries differ from those in the files"
        return None


def read_keys(path: Path) -> list[str]:
    """The keys of a dictionary in the order of their numbers; one without a key has `NO_KEY`."""
    lines = path.read_bytes().decode("utf-8-sig").split("\n")
    pairs = [line.removesuffix("\r").rpartition("\t") for line in lines if line not in ("", "\r")]
    return [key or NO_KEY for key, _, _ in sorted(pairs, key=lambda pair: int(pair[2]))]


class WordLevel(Weights):
    """The words of a word-level model, beside its hdf5 file."""

    name = "word level"
    targets = ("vocab.txt", "weights.hdf5")
    crafts = (crafted.lines("vocab.txt"), crafted.hdf5)

    def make(self, variant: int) -> None:
        write_word_level(Path(), seed=variant)

    def run(self) -> Any:
        with open_source(".") as weights:
            model, _ = load_converted(weights)
        state = model.state_dict()
        arrays = {name: state[name].numpy() for name in state if "mixes." not in name}
        return *summary(arrays), model.dictionaries.words.keys

    def arguments(self, output: str) -> list[str]:
        return ["elmo-hf", "convert", ".", "--output-dir", output]

    def result(self, output: Path) -> Any:
        return *super().result(output), read_keys(output / "word.dic")

    def doubt(self, result: Any, in_process: bool) -> str | None:
        text = Path("vocab.txt").read_bytes().decode("utf-8-sig")
        words = [line.removesuffix("\r") for line in text.split("\n")]
        while words and words[-1] in ("", "!!!MAXTERMID"):
            words.pop()
        # an empty line is no word of any text, and has the key of those without one in word.dic
        if [word or NO_KEY for word in words] != [word or NO_KEY for word in result[2]]:
            return "the words differ from those in the file"
        return super().doubt(result, in_process)
