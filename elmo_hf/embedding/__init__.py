# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Vectors for text: `ElmoEmbedder` for sentences in Python, `EmbeddingJob` for whole corpora."""

from elmo_hf.embedding.embedder import ElmoEmbedder, batch_to_ids
from elmo_hf.embedding.fingerprint import add_weights
from elmo_hf.embedding.formats import FORMATS
from elmo_hf.embedding.job import EmbeddingJob
from elmo_hf.embedding.sentence_embedder import SentenceTooLongError

__all__ = [
    "FORMATS",
    "ElmoEmbedder",
    "EmbeddingJob",
    "SentenceTooLongError",
    "add_weights",
    "batch_to_ids",
]
