# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`ElmoEmbedder`: sentences to arrays, with the chain of methods that old code overrides."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from tqdm.auto import tqdm

from elmo_hf.extras import require
from elmo_hf.standin.bilm import _ElmoBiLm
from elmo_hf.standin.boundaries import remove_sentence_boundaries
from elmo_hf.standin.elmo import batch_to_ids
from elmo_hf.standin.errors import ConfigurationError
from elmo_hf.standin.indexer import ELMoTokenCharactersIndexer
from elmo_hf.standin.utilities import lazy_groups_of
from elmo_hf.system.writing import new_file

PLACE = (
    "https://allennlp.s3.amazonaws.com/models/elmo/2x4096_512_2048cnn_2xhighway/"
    "elmo_2x4096_512_2048cnn_2xhighway_"
)
DEFAULT_OPTIONS_FILE = f"{PLACE}options.json"
DEFAULT_WEIGHT_FILE = f"{PLACE}weights.hdf5"
DEFAULT_BATCH_SIZE = 64
FORMATS = ("all", "top", "average")


def empty_embedding() -> np.ndarray:
    """Of a sentence without words, whatever the model's size, as in AllenNLP."""
    return np.zeros((3, 0, 1024))


class ElmoEmbedder:
    """All layers of sentences, (3, words, 1024) in AllenNLP's default model."""

    def __init__(
        self,
        options_file: Any = DEFAULT_OPTIONS_FILE,
        weight_file: Any = DEFAULT_WEIGHT_FILE,
        cuda_device: int = -1,
    ):
        self.indexer = ELMoTokenCharactersIndexer()
        self.elmo_bilm = _ElmoBiLm(options_file, weight_file)
        if cuda_device >= 0:
            self.elmo_bilm = self.elmo_bilm.cuda(device=cuda_device)
        self.cuda_device = cuda_device

    def batch_to_embeddings(self, batch: list[list[str]]) -> tuple[torch.Tensor, torch.Tensor]:
        """(batch, layers, words, size) and the mask (batch, words)."""
        character_ids = batch_to_ids(batch)
        if self.cuda_device >= 0:
            character_ids = character_ids.cuda(device=self.cuda_device)
        read = self.elmo_bilm(character_ids)
        layers = [remove_sentence_boundaries(part, read["mask"]) for part in read["activations"]]
        return torch.stack([layer for layer, _ in layers], dim=1), layers[0][1]

    def embed_sentence(self, sentence: list[str]) -> np.ndarray:
        """(layers, words, size)"""
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: list[list[str]]) -> list[np.ndarray]:
        """The layers of each sentence."""
        # a sentence may be an array, which compares word by word
        if len(batch) == 1 and not len(batch[0]):
            return [empty_embedding()]
        embeddings, mask = self.batch_to_embeddings(batch)
        arrays = embeddings.detach().cpu().numpy()
        lengths = mask.sum(dim=1).tolist()
        return [
            arrays[number, :, :length] if length else empty_embedding()
            for number, length in enumerate(lengths)
        ]

    def embed_sentences(
        self, sentences: Iterable[list[str]], batch_size: int = DEFAULT_BATCH_SIZE
    ) -> Iterator[np.ndarray]:
        """The layers of each sentence, in the given order."""
        for batch in lazy_groups_of(iter(sentences), batch_size):
            yield from self.embed_batch(batch)

    def embed_file(
        self,
        input_file: IO[str],
        output_file_path: str,
        output_format: str = "all",
        batch_size: int = DEFAULT_BATCH_SIZE,
        forget_sentences: bool = False,
        use_sentence_keys: bool = False,
    ) -> None:
        """Writes the layers of a text of one tokenised sentence per line as hdf5."""
        assert output_format in FORMATS, f"`output_format` is one of {', '.join(FORMATS)}."
        # closed, as in AllenNLP
        with input_file:
            sentences = [line.strip() for line in input_file]
        blank = [number for number, sentence in enumerate(sentences) if not sentence]
        if blank:
            raise ConfigurationError(f"The input has empty lines at {blank}; remove them.")
        keys = sentences if use_sentence_keys else list(map(str, range(len(sentences))))
        if len(set(keys)) < len(keys):
            raise ConfigurationError(
                "The input has the same sentence twice, so sentences cannot be keys; leave out "
                "--use-sentence-keys."
            )
        vectors = self.embed_sentences((sentence.split() for sentence in sentences), batch_size)
        h5py = require("h5py", "Writing hdf5")
        with new_file(Path(output_file_path)) as part, h5py.File(part, "w", locking=False) as file:
            for key, array in zip(keys, tqdm(vectors, total=len(keys)), strict=True):
                file.create_dataset(key, data=choose_layers(array, output_format), dtype="float32")
            if not (forget_sentences or use_sentence_keys):
                index = json.dumps(dict(zip(sentences, keys, strict=True)))
                file.create_dataset("sentence_to_index", data=[index], dtype=h5py.string_dtype())


def choose_layers(array: np.ndarray, output_format: str) -> np.ndarray:
    if output_format == "all":
        return array
    return array[-1] if output_format == "top" else array.mean(axis=0)
