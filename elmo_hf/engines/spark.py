# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Embedding and tagging in Spark: a DataFrame in, a DataFrame out, by `mapInArrow`.

    from elmo_hf.engines import elmo_embed

    rows = spark.read.parquet("hdfs:///text")
    vectors = elmo_embed(rows, keys=["id"], layers="mix", pooling="mean")
    vectors.write.parquet("hdfs:///vectors")

The model is loaded once in each Python worker, which Spark keeps from task to task, with as many
threads as a task has cores.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from elmo_hf.engines.embedding import Embedding
from elmo_hf.engines.job import Job
from elmo_hf.engines.mapper import BatchMapper
from elmo_hf.engines.tagging import Tagging
from elmo_hf.extras import require

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Rows that are handed to the JVM at once: for each batch it needs room outside its heap.
ROWS_AT_ONCE = 128


def elmo_embed(frame: "DataFrame", **settings: Any) -> "DataFrame":
    """The vectors of a DataFrame's texts; the settings are those of `Embedding`."""
    return map_frame(frame, Embedding(**settings))


def elmo_tag(frame: "DataFrame", **settings: Any) -> "DataFrame":
    """The tags of a DataFrame's texts; the settings are those of `Tagging`."""
    return map_frame(frame, Tagging(**settings))


def require_java() -> None:
    """Refuses a machine without Java, which Spark would report in many lines."""
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=home and f"{home}/bin") is None:
        raise OSError(
            "Spark requires Java 17 or later: install Debian's openjdk-17-jre-headless, or let "
            "JAVA_HOME name the folder of another Java."
        )


def map_frame(frame: "DataFrame", job: Job) -> "DataFrame":
    types = require("pyspark.sql.types", "Spark")
    chosen = frame.select(*job.columns(frame.columns))
    schema = types.StructType([chosen.schema[key] for key in job.keys])
    for field in job.added_fields():
        schema = schema.add(field.name, spark_type(types, field.type))
    return chosen.mapInArrow(lambda batches: map_batches(job, batches), schema)


def spark_type(types: Any, kind: pa.DataType) -> Any:
    if pa.types.is_list(kind):
        return types.ArrayType(spark_type(types, kind.value_type))
    known = {
        pa.int32(): types.IntegerType,
        pa.float32(): types.FloatType,
        pa.string(): types.StringType,
    }
    return known[kind]()


def map_batches(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker."""
    mapper = open_mapper(job, worker_device())
    for batch in batches:
        for table in mapper(pa.Table.from_batches([batch])):
            yield from table.to_batches(max_chunksize=ROWS_AT_ONCE)


# Two, because one pipeline may embed and tag.
@lru_cache(maxsize=2)
def open_mapper(job: Job, device: str) -> BatchMapper:
    """What a worker keeps for its next task."""
    return BatchMapper(with_shipped_model(job), device)


def with_shipped_model(job: Job) -> Job:
    """The same job, with the place of a model that `addFile` or `addArchive` has brought here."""
    pyspark = require("pyspark", "Spark")
    shipped = Path(pyspark.SparkFiles.get(job.model))
    return replace(job, model=str(shipped)) if shipped.is_dir() else job


def worker_device() -> str:
    """The GPU that Spark has assigned to the task, or else the CPU."""
    pyspark = require("pyspark", "Spark")
    gpu = pyspark.TaskContext.get().resources().get("gpu")
    return f"cuda:{gpu.addresses[0]}" if gpu else "cpu"
