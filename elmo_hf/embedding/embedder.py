# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`ElmoEmbedder`: sentences in, arrays out, with the methods of AllenNLP's class of that name."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import torch
from torch import nn

from elmo_hf.configuration_elmo import ElmoConfig
from elmo_hf.embedding.job import EmbeddingJob
from elmo_hf.embedding.sentence_embedder import SentenceEmbedder
from elmo_hf.hub.bundled import BUNDLED, find_model
from elmo_hf.hub.loading import has_tokenizer, load_elmo, load_tokenizer
from elmo_hf.modeling_elmo import ElmoModel, ElmoPreTrainedModel
from elmo_hf.pooling import pool_words
from elmo_hf.text.batching import check_sentences
from elmo_hf.text.dataset_rows import check_sentence
from elmo_hf.text.lines import Line, LineSource
from elmo_hf.text_splitting import (
    WHITESPACE,
    SplitFunction,
    SplitSentence,
    Splitter,
    find_splitter,
)
from elmo_hf.tokenization_elmo import ElmoTokenizer

# AllenNLP's names of what `embed_file` writes, and our names of these layers
FILE_LAYERS = {"all": "all", "top": "top", "average": "mean"}


class ElmoEmbedder(SentenceEmbedder):
    """
    A biLM and its tokenizer, ready to turn sentences into vectors.

        embedder = ElmoEmbedder("my-elmo")
        embedder.embed([["Stocks", "fell", "."]])            # [array of (layers, words, size)]
        embedder.embed(sentences, layers="top", pooling="mean")  # [array of (size,), ...]
        embedder.embed("Stocks fell. Bonds rose.")           # two arrays, one per sentence

    `embed_sentence`, `embed_batch`, `embed_sentences` and `embed_file` are those of AllenNLP 0.9,
    with the same shapes and the same order of arguments. Their `batch_size` is accepted and
    ignored: batches are made by length, within bounded memory.
    """

    def __init__(
        self,
        model: str | Path | ElmoPreTrainedModel = BUNDLED,
        weight_file: str | Path | None = None,
        device: str | int | torch.device | None = None,
        options_file: str | Path | None = None,
        split: str | SplitFunction | None = None,
        batch_size: int | None = None,
    ):
        """
        `model`: a model, a folder, a Hub name, or "bundled". AllenNLP's files work too: pass
        `weight_file`, and the options as `options_file` or in the place of `model`. `device`: where
        the model goes, as in "cuda:0" or 0 for the first GPU; by default it stays where it is,
        which for a loaded one is the CPU. `split`: how raw text becomes sentences and words, the
        name of a splitter or a function; by default as the tokenizer saved with the model says,
        or between blanks if there is none. `batch_size`: the most sentences that the model reads
        at once.
        """
        # AllenNLP has `cuda_device` in this place, with -1 for the CPU
        if isinstance(device, int) and device < 0:
            raise ValueError(f"`device` is {device}; pass device='cpu' or 'cuda:0'.")
        model = options_file or model
        if split is not None:
            find_splitter(split)
        self._split = split
        self._place: str | None = None
        if isinstance(model, ElmoPreTrainedModel):
            # a tagger has its biLM inside
            loaded = cast(ElmoModel, model.base_model)
        elif weight_file is not None:
            from elmo_hf.conversion.building import load_converted
            from elmo_hf.conversion.formats.bilm_hdf5 import Source, open_files

            with open_files(Source(Path(model), Path(weight_file))) as weights:
                loaded, _ = load_converted(weights)
        else:
            loaded = load_elmo(str(model))
            self._place = find_model(str(model))
        if device is not None:
            loaded.to(device)  # type: ignore[arg-type]
        super().__init__(loaded, batch_size)

    def split(self, text: str) -> Iterable[SplitSentence]:
        """The sentences of a raw text as `embed` reads them, with the span of each word."""
        return self._splitter(text)

    @cached_property
    def _splitter(self) -> Splitter:
        """Made when the first text comes: the tokenizer knows its name and language."""
        return make_splitter(self._split, self._place, self.model.config)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_splitter": self._splitter}

    def embed(
        self,
        sentences: str | Sequence[Sequence[str]],
        layers: str | int = "all",
        pooling: str = "none",
        dtype: str = "float32",
        padded: bool = False,
    ) -> list[np.ndarray] | torch.Tensor:
        """
        One array per sentence: (words, size), or (size,) when it is pooled; with all layers there
        is an axis of layers in front. With `padded=True` the result is one tensor for all
        sentences, with zeros after the words of the shorter ones. A string is a raw text, whose
        sentences `split` finds.
        """
        if isinstance(sentences, str):
            sentences = [sentence.words for sentence in self.split(sentences)]
        result = list(self.embed_stream(refuse_texts(sentences), layers, pooling, dtype))
        if not padded:
            return result
        if not result:
            return cast(torch.Tensor, self.embed([[]], layers, pooling, dtype, padded))[:0]
        arrays = [torch.from_numpy(array) for array in result]
        if pooling == "none":
            arrays = [array.movedim(-2, 0) for array in arrays]
            return nn.utils.rnn.pad_sequence(arrays, batch_first=True).movedim(1, -2)
        return torch.stack(arrays)

    def __call__(
        self,
        rows: Mapping[str, Sequence[Any]],
        column: str = "text",
        layers: str | int = "all",
        pooling: str = "none",
        dtype: str = "float32",
    ) -> dict[str, list[Any]]:
        """
        New columns for rows of a dataset, as `Dataset.map(..., batched=True)` passes them:
        `embedding` with one array per row. The rows of `column` are lists of words, or raw texts;
        for these there is also `words`, the words of all sentences of a text, each of which is
        read by itself.
        """
        if column not in rows:
            raise ValueError(f"The rows have no column {column!r}; they have {', '.join(rows)}.")
        self.check(layers, pooling, dtype)
        given = list(rows[column])
        for number, row in enumerate(given):
            check_sentence(row, f"Row {number} of a batch: {column!r}")
        # a text without sentences has the vectors of an empty one
        texts = [
            [sentence.words for sentence in self.split(row)] or [[]]
            if isinstance(row, str)
            else [row]
            for row in given
        ]
        vectors = self.embed_stream(chain.from_iterable(texts), layers)
        embedding = []
        for text in texts:
            array = np.concatenate([next(vectors) for _ in text], axis=-2)
            if pooling != "none":
                array = pool_words(torch.from_numpy(array), None, pooling).numpy()
            embedding.append(array.astype(dtype, copy=False))
        columns: dict[str, list[Any]] = {"embedding": embedding}
        if any(isinstance(row, str) for row in given):
            columns["words"] = [list(chain.from_iterable(text)) for text in texts]
        return columns

    def embed_sentence(self, sentence: Sequence[str]) -> np.ndarray:
        """All layers of one sentence, (layers, words, size)."""
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """All layers of some sentences."""
        return list(self.embed_stream(batch))

    def embed_sentences(
        self, sentences: Iterable[Sequence[str]], batch_size: int = 64
    ) -> Iterator[np.ndarray]:
        """All layers of any number of sentences, one array at a time."""
        return self.embed_stream(sentences)

    def embed_file(
        self,
        input_file: IO[str],
        output_file_path: str | Path,
        output_format: str = "all",
        batch_size: int = 64,
    ) -> None:
        """
        Writes the vectors of a text, one tokenised sentence per line, as hdf5: all layers, only the
        `top` one, or their `average`.
        """
        if output_format not in FILE_LAYERS:
            names = ", ".join(FILE_LAYERS)
            raise ValueError(f"`output_format` is {output_format!r} but must be one of {names}.")
        job = EmbeddingJob(
            self, Path(output_file_path), FILE_LAYERS[output_format], output_format="hdf5"
        )
        lines = (
            Line(number, line.strip(), line.split(), 1) for number, line in enumerate(input_file)
        )
        # step by step: unlike `job.write`, AllenNLP takes a text without lines
        with job.locked():
            job.assemble(job.embed_chunks(LineSource("input_file", lines, None, "line")))


def make_splitter(
    split: str | SplitFunction | None, place: str | None, config: ElmoConfig
) -> Splitter:
    """
    A splitter, or by default the one of the tokenizer that is saved with a model; `whitespace` if
    there is no tokenizer.
    """
    if place is None or not has_tokenizer(place):
        return find_splitter(WHITESPACE if split is None else split)
    tokenizer = load_tokenizer(place, config)
    return find_splitter(tokenizer.word_splitter if split is None else split, tokenizer.language)


def refuse_texts(sentences: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """A list of strings might be one sentence or many texts."""
    for sentence in sentences:
        if isinstance(sentence, str):
            raise ValueError(
                f"A sentence is a list of words, not a string; split {sentence[:30]!r} first, or "
                "embed one text at a time, as in embed('Some text.')."
            )
        yield sentence


def batch_to_ids(batch: Sequence[Sequence[str]]) -> torch.Tensor:
    """Character ids of sentences, (sentences, words, 50), like AllenNLP's function of this name."""
    sentences = list(batch)
    check_sentences(sentences)
    tokenizer = ElmoTokenizer(boundary_words=True)
    if not sentences:
        return torch.zeros(0, 0, tokenizer.max_characters_per_token, dtype=torch.long)
    encoded = tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")
    return encoded["input_ids"]
