# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Sentences of a table to vectors."""

from dataclasses import dataclass

import pyarrow as pa

from elmo_hf.embedding.embedder import ElmoEmbedder
from elmo_hf.embedding.formats._table import nested_lists
from elmo_hf.engines.job import Job, Reader, Sentence
from elmo_hf.pooling import POOLINGS


@dataclass(frozen=True, kw_only=True)
class Embedding(Job):
    """Sentences and their vectors, in the layout of the parquet files of `elmo-hf embed`."""

    layers: str | int = "all"
    pooling: str = "none"

    def __post_init__(self) -> None:
        if self.pooling not in ("none", *POOLINGS):
            names = ", ".join(("none", *POOLINGS))
            raise ValueError(f"`pooling` is {self.pooling!r} but must be one of {names}.")
        super().__post_init__()

    def fields(self) -> list[pa.Field]:
        kind = pa.list_(pa.float32())
        for has_axis in (self.pooling == "none", self.layers == "all"):
            kind = pa.list_(kind) if has_axis else kind
        return [pa.field("sentence", pa.string()), pa.field("embedding", kind)]

    def open(self, device: str) -> Reader:
        return EmbeddingReader(self, device)


class EmbeddingReader:
    def __init__(self, job: Embedding, device: str):
        self.job = job
        self.embedder = ElmoEmbedder(job.model, device=device, split=job.split)
        # now, and not at the first sentence
        self.embedder.check(job.layers, job.pooling, "float32")
        self.split = self.embedder.split

    def values(self, sentences: list[Sentence]) -> list[pa.Array]:
        words = [sentence.words for sentence in sentences]
        arrays = list(self.embedder.embed_stream(words, self.job.layers, self.job.pooling))
        return [pa.array([" ".join(some) for some in words], pa.string()), nested_lists(arrays)]
