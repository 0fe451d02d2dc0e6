"""Model folders: a biLM, a tagger and a language model, whose numbers must be those of the file."""

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from faults import crafted
from faults.corruptions import hostile_json, missing
from faults.inputs_texts import sentences, write_model
from faults.inputs_weights import WORDS
from faults.kind import Damage, Files, Kind, digest, read_files
from helpers.tiny import tiny_config
from safetensors.numpy import load, load_file, save

from elmo_hf import (
    ElmoEmbedder,
    ElmoForPreTraining,
    ElmoForTokenClassification,
    ElmoScorer,
    ElmoTagger,
    ElmoTokenizer,
    WordVocabulary,
)

WEIGHTS = "model/model.safetensors"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"


def tensors(files: Files, draw: Random) -> Damage:
    """Replaces, renames or removes one tensor."""
    arrays = load(files[WEIGHTS])
    name = draw.choice(sorted(arrays))
    array = arrays.pop(name)
    change = draw.choice(["removed", "renamed", "shape", "type", "not finite", "more", "pointer"])
    if change == "pointer":
        return Damage(files | {WEIGHTS: POINTER}, "a git-lfs pointer", must_fail=True)
    if change == "renamed":
        arrays[f"{name}x"] = array
    elif change == "shape":
        arrays[name] = np.zeros(draw.choice([(), (0,), (1, 1), (*array.shape, 1)]), array.dtype)
    elif change == "type":
        types = [np.float16, np.float64, np.int64, np.uint8, np.bool_]
        arrays[name] = array.astype(draw.choice(types))
    elif change == "not finite":
        arrays[name] = np.full_like(array, draw.choice([np.nan, np.inf]))
    elif change == "more":
        arrays |= {name: array, "more": array}
    data = save(arrays, metadata={"format": "pt"})
    must_fail = change in ("removed", "renamed", "shape", "not finite")
    return Damage(files | {WEIGHTS: data}, f"{name}: {change}", must_fail)


class Folder(Kind):
    """The folder of a biLM."""

    name = "model folder"
    output = "out.npy"
    kept = ("out.offsets.npy",)
    targets = ("model/*.json", "model/*.safetensors", "model/*.txt")
    crafts = (tensors, hostile_json("model/config.json"), hostile_json("model/config.json"))
    crafts += (hostile_json("model/tokenizer_config.json"), missing("model/*"))

    def make(self, variant: int) -> None:
        model = write_model(cell_clip=3.0 + variant)
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(variant / 100)
        model.save_pretrained("model")
        Path("text.txt").write_bytes("\n".join(sentences(variant)).encode())

    def run(self) -> Any:
        embedder = ElmoEmbedder("model")
        [array] = embedder.embed([["Dogs", "bark", "."]])
        return self.summary(embedder.model, [array])

    def summary(self, model: torch.nn.Module, arrays: list[np.ndarray]) -> Any:
        weights = {name: part.numpy() for name, part in model.state_dict().items()}
        finite = all(bool(np.isfinite(array).all()) for array in arrays)
        return tensor_digests(weights), finite, [digest(array) for array in arrays]

    def arguments(self, output: str) -> list[str]:
        return ["elmo-hf", "embed", "text.txt", "--model", "model", "--output", output]

    def result(self, output: Path) -> Any:
        values = np.load(output)
        return "", bool(np.isfinite(values).all()), [digest(values)]

    def doubt(self, result: Any, in_process: bool) -> str | None:
        loaded, finite, _ = result
        if not finite:
            return "numbers that are not finite"
        if not in_process:
            return None
        saved = tensor_digests(load_file(WEIGHTS))
        differing = [name for name in saved | loaded if saved.get(name) != loaded.get(name)]
        # a configuration may choose a layer instead of the mix
        differs = any("mixes." not in name for name in differing)
        return "the weights differ from those in the file" if differs else None


def tensor_digests(weights: dict[str, np.ndarray]) -> dict[str, str]:
    """In the type of the model, whatever that of the file is."""
    return {name: digest(weights[name].astype(np.float32)) for name in sorted(weights)}


class TaggerFolder(Folder):
    name = "tagger folder"
    output = "printed"

    def make(self, variant: int) -> None:
        torch.manual_seed(variant)
        config = tiny_config(num_labels=4, task_lstm_size=4, cell_clip=3.0 + variant)
        ElmoForTokenClassification(config).save_pretrained("model")
        width = config.max_characters_per_token
        ElmoTokenizer(max_characters_per_token=width).save_pretrained("model")
        Path("text.txt").write_bytes("\n".join(sentences(variant)).encode())

    def run(self) -> Any:
        tagger = ElmoTagger("model")
        [tagged] = tagger.tag([["Dogs", "bark", "."]])
        return self.summary(tagger.model, [np.array(tagged.scores)])

    def arguments(self, output: str) -> list[str]:
        return ["elmo-hf", "tag", "text.txt", "--model", "model"]

    def result(self, output: Path) -> Any:
        """What is printed; the log is beside the current folder."""
        printed = Path("../log.out").read_text(encoding="utf-8")
        rows = sum("\t" in line for line in printed.splitlines())
        return (
            "",
            rows == sum(len(line.split()) for line in read_text()),
            [digest(printed.encode())],
        )


def read_text() -> list[str]:
    return Path("text.txt").read_text(encoding="utf-8").splitlines()


class LanguageModelFolder(Folder):
    name = "language model folder"
    output = "out"
    kept = ()
    crafts = (*Folder.crafts, crafted.lines("model/lm_vocabulary.txt"))

    def make(self, variant: int) -> None:
        torch.manual_seed(variant)
        words = WordVocabulary([*WORDS, "Dogs", "bark"])
        model = ElmoForPreTraining(tiny_config(**words.config_fields(), cell_clip=3.0 + variant))
        model.vocabulary = words
        model.save_pretrained("model")
        width = model.config.max_characters_per_token
        ElmoTokenizer(max_characters_per_token=width).save_pretrained("model")

    def run(self) -> Any:
        scorer = ElmoScorer("model")
        [score] = scorer.score([["Dogs", "bark", "."]])
        return self.summary(scorer.model, [np.array(score.perplexity)])

    def arguments(self, output: str) -> list[str]:
        return ["elmo-hf", "export", "--model", "model", "--output-dir", output]

    def result(self, output: Path) -> Any:
        """A model without its words is whole, too."""
        whole = all((output / name).exists() for name in ("model.hdf5", "softmax_weights.hdf5"))
        return "", whole, [digest(data) for data in read_files(output).values()]
