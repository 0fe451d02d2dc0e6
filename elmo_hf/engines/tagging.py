# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Sentences of a table to tags."""

from dataclasses import dataclass

import pyarrow as pa

from elmo_hf.engines.job import Job, Reader, Sentence
from elmo_hf.tagging.tagger import ElmoTagger

STRINGS = pa.list_(pa.string())


@dataclass(frozen=True, kw_only=True)
class Tagging(Job):
    """Words with their places in raw text, their tags and the tags' probabilities."""

    def fields(self) -> list[pa.Field]:
        return [
            pa.field("words", STRINGS),
            pa.field("spans", pa.list_(pa.list_(pa.int32()))),
            pa.field("tags", STRINGS),
            pa.field("scores", pa.list_(pa.float32())),
        ]

    def open(self, device: str) -> Reader:
        return TaggingReader(self, device)


class TaggingReader:
    def __init__(self, job: Tagging, device: str):
        self.fields = job.fields()
        self.tagger = ElmoTagger(job.model, device, job.split)
        self.split = self.tagger.split

    def values(self, sentences: list[Sentence]) -> list[pa.Array]:
        tagged = list(self.tagger.tag(sentence.words for sentence in sentences))
        columns = (
            [sentence.words for sentence in sentences],
            [sentence.spans for sentence in sentences],
            [some.tags for some in tagged],
            [some.scores for some in tagged],
        )
        return [
            pa.array(column, field.type) for column, field in zip(columns, self.fields, strict=True)
        ]
