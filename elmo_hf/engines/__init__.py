# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Embedding and tagging in other people's engines, Ray Data and Spark, as batches of Arrow."""

from typing import TYPE_CHECKING

from elmo_hf.system.lazy import lazy_names

if TYPE_CHECKING:
    from elmo_hf.engines.embedding import Embedding as Embedding
    from elmo_hf.engines.job import BadRowError as BadRowError
    from elmo_hf.engines.job import reason_of as reason_of
    from elmo_hf.engines.mapper import BatchMapper as BatchMapper
    from elmo_hf.engines.ray import RayEmbedder as RayEmbedder
    from elmo_hf.engines.ray import RayTagger as RayTagger
    from elmo_hf.engines.spark import elmo_embed as elmo_embed
    from elmo_hf.engines.spark import elmo_tag as elmo_tag
    from elmo_hf.engines.spark import require_java as require_java
    from elmo_hf.engines.tagging import Tagging as Tagging

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    embedding=["Embedding"],
    job=["BadRowError", "reason_of"],
    mapper=["BatchMapper"],
    ray=["RayEmbedder", "RayTagger"],
    spark=["elmo_embed", "elmo_tag", "require_java"],
    tagging=["Tagging"],
)
