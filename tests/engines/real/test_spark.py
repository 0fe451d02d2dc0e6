"""Spark: `elmo_embed` and `elmo_tag` in one process and on a cluster, and the example."""

import contextlib
import shutil
import sys

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.engines import (
    SPARK,
    SPARK_CONF,
    assert_vectors,
    kill_three_times,
    processes,
    run_example,
    sample_sentences,
    spark_cluster,
    start_example,
    submit_arguments,
    write_table,
)

from elmo_hf import ElmoEmbedder, ElmoTagger
from elmo_hf.engines import elmo_embed, elmo_tag, reason_of
from elmo_hf.hub import bundled_model

pytestmark = [
    pytest.mark.usefixtures("java"),
    # those of PySpark, as of a pandas that it does not know, are not ours
    pytest.mark.filterwarnings("default"),
]
OPTIONS = ("--keys", "id", "--layers", "top", "--pooling", "mean", "--split", "whitespace")


@pytest.fixture(scope="module")
def spark(java):
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        for name, value in (SPARK | {"PYSPARK_PYTHON": sys.executable}).items():
            patch.setenv(name, value)
        builder = SparkSession.builder.master("local[2]")
        for name, value in SPARK_CONF.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        yield session
        session.stop()


@pytest.fixture(scope="module")
def words():
    return [sentence.split() for sentence in sample_sentences()]


@pytest.fixture(scope="module")
def frame(spark, words):
    return spark.createDataFrame(list(enumerate(words)), ["id", "text"]).repartition(4)


@pytest.mark.parametrize("layers, pooling", [("all", "none"), ("top", "mean")])
def test_vectors_are_those_of_one_process(frame, words, layers, pooling):
    found = elmo_embed(frame, keys=["id"], layers=layers, pooling=pooling).toArrow().sort_by("id")
    assert found["id"].to_pylist() == list(range(len(words)))
    assert found["sentence"].to_pylist() == list(map(" ".join, words))
    expected = ElmoEmbedder().embed(words, layers, pooling)
    for row, array in zip(found["embedding"].to_pylist(), expected, strict=True):
        np.testing.assert_allclose(np.array(row, np.float32), array, rtol=0, atol=2e-5)


def test_tags_are_those_of_one_process(frame, words):
    found = elmo_tag(frame, keys=["id"]).toArrow().sort_by("id")
    expected = list(ElmoTagger().tag(words))
    assert found["tags"].to_pylist() == [some.tags for some in expected]
    scores = np.concatenate([some.scores for some in expected])
    np.testing.assert_allclose(found["scores"].combine_chunks().flatten(), scores, atol=2e-5)


def test_raw_text_has_spans(spark):
    frame = spark.createDataFrame([(1, "Stop! Go on.")], ["id", "text"])
    first, second = elmo_tag(frame, keys=["id"]).collect()
    assert (first.words, first.spans) == (["Stop", "!"], [[0, 4], [4, 5]])
    assert (second.number, second.words) == (1, ["Go", "on", "."])
    schema = elmo_tag(frame, keys=["id"]).dtypes
    assert dict(schema)["spans"] == "array<array<int>>" and dict(schema)["id"] == "bigint"


def test_a_worker_keeps_its_model_and_has_one_thread(frame):
    from pyspark.sql.types import StructType

    def look(batches):
        import os

        import torch

        from elmo_hf.engines.spark import open_mapper

        list(batches)
        known = open_mapper.cache_info()
        numbers = [os.getpid(), known.currsize, known.misses, torch.get_num_threads()]
        yield pa.RecordBatch.from_arrays([pa.array([n]) for n in numbers], names=list("abcd"))

    embedded = elmo_embed(frame, keys=["id"], layers="top", pooling="mean")
    for _ in range(3):
        embedded.count()
        embedded.collect()
    schema = StructType()
    for name in "abcd":
        schema = schema.add(name, "long")
    seen = [tuple(row) for row in frame.mapInArrow(look, schema).collect()]
    at_work = [row for row in seen if row[1]]
    assert at_work and all(misses <= 2 and threads == 1 for *_, misses, threads in at_work)


@pytest.mark.parametrize("run", [elmo_embed, elmo_tag])
def test_bad_rows_stop_or_are_skipped(spark, run):
    frame = spark.createDataFrame([("x", "Hi!"), ("y", None)], ["id", "text"]).coalesce(1)
    with pytest.raises(Exception) as caught:
        run(frame, keys=["id"]).collect()
    reason = "The row with id 'y': 'text' should be text or a list of words, not None."
    assert reason_of(caught.value).startswith(reason)
    good, bad = run(frame, keys=["id"], on_error="skip").collect()
    assert (good.error, bad.error) == (None, reason)


def test_columns_that_are_missing_are_refused_at_once(frame):
    with pytest.raises(ValueError, match="There is no column 'key'; there are id, text."):
        elmo_embed(frame, keys=["key"])


def test_models_that_spark_ships_are_found_by_name(spark, frame, words, tmp_path):
    folder = shutil.copytree(bundled_model(), tmp_path / "shipped-folder")
    archive = shutil.make_archive(str(tmp_path / "shipped-archive"), "zip", folder)
    spark.sparkContext.addFile(str(folder), recursive=True)
    spark.sparkContext.addArchive(f"{archive}#shipped-archive")
    for name in ("shipped-folder", "shipped-archive"):
        found = elmo_embed(frame, keys=["id"], model=name, layers="top", pooling="mean")
        rows = found.toArrow().sort_by("id")["embedding"].to_pylist()
        expected = ElmoEmbedder().embed(words, "top", "mean")
        np.testing.assert_allclose(rows, expected, rtol=0, atol=2e-5)


@pytest.fixture(scope="module")
def cluster(java, tmp_path_factory):
    with spark_cluster(2, tmp_path_factory.mktemp("spark")) as address:
        yield address


class TestExample:
    def test_text_is_tagged(self, tmp_path, cluster):
        (tmp_path / "lines.txt").write_text("Stop!\nGo on. Now!\n")
        place = ("--input", tmp_path / "lines.txt", "--output", tmp_path / "tags")
        environment = submit_arguments(cluster)
        run_example("embed_with_spark.py", *place, "--format", "text", "--tag", **environment)
        rows = pq.read_table(tmp_path / "tags").sort_by(
            [("row", "ascending"), ("number", "ascending")]
        )
        assert rows["words"].to_pylist() == [["Stop", "!"], ["Go", "on", "."], ["Now", "!"]]

    def test_a_model_in_an_archive(self, tmp_path, cluster):
        archive = shutil.make_archive(str(tmp_path / "my-elmo"), "zip", bundled_model())
        write_table(tmp_path / "rows.parquet", 500)
        place = ("--input", tmp_path / "rows.parquet", "--output", tmp_path / "vectors")
        model = ("--archive", f"{archive}#my-elmo", "--model_name_or_path", "my-elmo")
        run_example("embed_with_spark.py", *place, *model, *OPTIONS, **submit_arguments(cluster))
        assert_vectors(tmp_path / "vectors", 500)

    def test_a_bad_row_is_one_sentence(self, tmp_path, cluster):
        table = pa.table({"id": [5], "text": pa.nulls(1, pa.string())})
        pq.write_table(table, tmp_path / "x.parquet")
        place = ("--input", tmp_path / "x.parquet", "--output", tmp_path / "out", *OPTIONS)
        printed = run_example("embed_with_spark.py", *place, code=1, **submit_arguments(cluster))
        assert printed.splitlines()[-1].startswith("The row with id 5: 'text' should be text")

    @pytest.mark.parametrize("kind", ["python", "jvm"])
    def test_killed_workers(self, kind, tmp_path, cluster):
        rows = 40_000
        write_table(tmp_path / "rows.parquet", rows)
        place = ("--input", tmp_path / "rows.parquet", "--output", tmp_path / "vectors")
        conf = {"spark.sql.files.maxPartitionBytes": "500k"}
        run = start_example(
            "embed_with_spark.py", *place, *OPTIONS, **submit_arguments(cluster, **conf)
        )

        def workers():
            return processes(lambda line: "pyspark.daemon" in line)

        def executors():
            """The nearest JVM above each worker."""
            found = []
            for worker in workers():
                with contextlib.suppress(psutil.Error):
                    found += [some for some in worker.parents() if some.name() == "java"][:1]
            return found

        kill_three_times(run, workers if kind == "python" else executors, seed=1)
        printed, _ = run.communicate(timeout=300)
        assert run.returncode == 0, printed
        assert_vectors(tmp_path / "vectors", rows)
