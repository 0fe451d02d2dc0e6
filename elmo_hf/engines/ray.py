# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Embedding and tagging in Ray Data: classes for `Dataset.map_batches`, a model for each actor.

import ray
from elmo_hf.engines import RayEmbedder

rows = ray.data.read_parquet("s3://bucket/text")
vectors = rows.map_batches(
    RayEmbedder,
    fn_constructor_kwargs={"keys": ["id"], "layers": "mix", "pooling": "mean"},
    batch_format="pyarrow",
    compute=ray.data.ActorPoolStrategy(size=2),
)
vectors.write_parquet("s3://bucket/vectors")
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from elmo_hf.engines.embedding import Embedding
from elmo_hf.engines.job import Job
from elmo_hf.engines.mapper import BatchMapper
from elmo_hf.engines.tagging import Tagging
from elmo_hf.extras import require


class RayActor:
    """Loads the model of its job once, on the GPU that Ray gives the actor, or else on the CPU."""

    job: type[Job]

    def __init__(self, **settings: Any):
        self.mapper = BatchMapper(self.job(**settings), actor_device())

    def __call__(self, batch: pa.Table) -> Iterator[pa.Table]:
        if not isinstance(batch, pa.Table):
            raise TypeError("Batches must be Arrow; pass batch_format='pyarrow' to map_batches.")
        yield from self.mapper(batch)


class RayEmbedder(RayActor):
    """Vectors; the settings are those of `Embedding`."""

    job = Embedding


class RayTagger(RayActor):
    """Tags; the settings are those of `Tagging`."""

    job = Tagging


def actor_device() -> str:
    """Ray shows an actor its own GPUs only, so that the first of them is number 0."""
    ray = require("ray", "Ray Data")
    return "cuda:0" if ray.get_gpu_ids() else "cpu"
