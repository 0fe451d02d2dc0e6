"""Ray Data: the classes for `map_batches`, and the example, which resumes."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray
from helpers.engines import (
    assert_vectors,
    kill_three_times,
    processes,
    run_example,
    sample_sentences,
    start_example,
    write_table,
)

from elmo_hf import ElmoEmbedder, ElmoTagger
from elmo_hf.engines import BadRowError, Embedding, RayEmbedder, RayTagger, Tagging, reason_of
from elmo_hf.engines.ray import actor_device

pytestmark = [
    pytest.mark.usefixtures("ray_address"),
    # those of Ray are not ours
    pytest.mark.filterwarnings("default"),
]


def mapped(rows, kind, actors=2, **settings):
    return rows.map_batches(
        kind,
        fn_constructor_kwargs={"keys": ["id"], **settings},
        batch_format="pyarrow",
        batch_size=100,
        compute=ray.data.ActorPoolStrategy(size=actors),
    )


def table_of(rows) -> pa.Table:
    return pa.concat_tables(ray.get(rows.to_arrow_refs())).sort_by("id")


@pytest.fixture(scope="module")
def table():
    words = [sentence.split() for sentence in sample_sentences()]
    return pa.table({"id": range(len(words)), "text": words})


@pytest.mark.parametrize("layers, pooling", [("all", "none"), ("top", "mean")])
def test_vectors_are_those_of_one_process(table, layers, pooling):
    rows = ray.data.from_arrow(table).repartition(8)
    found = table_of(mapped(rows, RayEmbedder, layers=layers, pooling=pooling))
    job = Embedding(keys=["id"], layers=layers, pooling=pooling)
    assert found.schema.equals(job.result_schema(table.schema))
    assert found["id"] == table["id"]
    expected = ElmoEmbedder().embed(table["text"].to_pylist(), layers, pooling)
    for row, array in zip(found["embedding"].to_pylist(), expected, strict=True):
        np.testing.assert_allclose(np.array(row, np.float32), array, rtol=0, atol=2e-5)


def test_tags_are_those_of_one_process(table):
    rows = ray.data.from_arrow(table).repartition(8)
    found = table_of(mapped(rows, RayTagger))
    assert found.schema.equals(Tagging(keys=["id"]).result_schema(table.schema))
    expected = list(ElmoTagger().tag(table["text"].to_pylist()))
    assert found["tags"].to_pylist() == [some.tags for some in expected]
    scores = np.concatenate([some.scores for some in expected])
    np.testing.assert_allclose(found["scores"].combine_chunks().flatten(), scores, atol=2e-5)


def test_an_actor_loads_its_model_once(table):
    class Counting(RayEmbedder):
        calls = 0

        def __init__(self, **settings):
            super().__init__(**settings)
            self.loaded = self.mapper.reader.embedder.model

        def __call__(self, batch):
            self.calls += 1
            assert self.mapper.reader.embedder.model is self.loaded
            for result in super().__call__(batch):
                calls = pa.array([self.calls] * result.num_rows)
                yield result.append_column("calls", calls)

    rows = mapped(ray.data.from_arrow(table), Counting, actors=1, layers="top", pooling="mean")
    assert max(table_of(rows)["calls"].to_pylist()) == -(-table.num_rows // 100)


@pytest.mark.parametrize("gpus, device", [(0, "cpu"), (1, "cuda:0")])
def test_an_actor_uses_the_gpu_that_it_has(gpus, device):
    @ray.remote(num_cpus=0, num_gpus=gpus)
    def chosen():
        return actor_device()

    assert ray.get(chosen.remote()) == device


def test_batches_that_are_not_arrow_are_refused(table):
    rows = ray.data.from_arrow(table)
    wrong = rows.map_batches(
        RayEmbedder,
        fn_constructor_kwargs={"keys": ["id"]},
        compute=ray.data.ActorPoolStrategy(size=1),
    )
    with pytest.raises(Exception, match="pass batch_format='pyarrow' to map_batches"):
        wrong.materialize()


@pytest.mark.parametrize("kind", [RayEmbedder, RayTagger])
def test_bad_rows_stop_or_are_skipped(kind):
    rows = ray.data.from_arrow(pa.table({"id": ["x", "y"], "text": ["Hi!", None]}))
    with pytest.raises(Exception) as caught:
        mapped(rows, kind, actors=1).materialize()
    assert isinstance(caught.value, BadRowError) or "BadRowError" in str(caught.value)
    reason = "The row with id 'y': 'text' should be text or a list of words, not None."
    assert reason_of(caught.value).startswith(reason)
    good, bad = table_of(mapped(rows, kind, actors=1, on_error="skip")).to_pylist()
    assert (good["error"], bad["error"]) == (None, reason)


class TestExample:
    OPTIONS = ("--layers", "top", "--pooling", "mean", "--split", "whitespace")

    def test_parquet_jsonl_and_text(self, tmp_path, ray_address):
        write_table(tmp_path / "rows.parquet", 50)
        texts = pq.read_table(tmp_path / "rows.parquet")["text"].to_pylist()
        lines = [json.dumps({"id": n, "text": text}) for n, text in enumerate(texts)]
        (tmp_path / "rows.jsonl").write_text("\n".join(lines))
        (tmp_path / "rows.txt").write_text("\n".join(texts))
        for kind, file in (("parquet", "parquet"), ("jsonl", "jsonl"), ("text", "txt")):
            keys = () if kind == "text" else ("--keys", "id")
            place = ("--input", tmp_path / f"rows.{file}", "--output", tmp_path / kind)
            options = (*self.OPTIONS, "--format", kind, *keys)
            run_example("embed_with_ray.py", *place, *options, RAY_ADDRESS=ray_address)
            [folder] = (tmp_path / kind).iterdir()
            found = pq.read_table(folder)
            assert set(found["path"].to_pylist()) == {str(tmp_path / f"rows.{file}")}
            if kind == "text":
                columns = ["id" if name == "line" else name for name in found.column_names]
                pq.write_table(found.rename_columns(columns), tmp_path / "text.parquet")
                folder = tmp_path / "text.parquet"
            assert_vectors(folder, 50)

    def test_finished_files_are_not_done_again(self, tmp_path, ray_address):
        texts, output = tmp_path / "texts", tmp_path / "vectors"
        texts.mkdir()
        for number in range(3):
            (texts / f"{number}.txt").write_text("One line\nAnother\n")
        (texts / "2.txt").write_bytes(b"\xff\n")
        command = ("--input", texts, "--output", output, "--format", "text", *self.OPTIONS)
        run_example("embed_with_ray.py", *command, code=1, RAY_ADDRESS=ray_address)
        before = {path: path.stat().st_mtime_ns for path in output.glob("*/*.parquet")}
        assert len(list(output.glob("*/_finished.json"))) == 2
        (texts / "2.txt").write_text("Now it is\n")
        printed = run_example("embed_with_ray.py", *command, RAY_ADDRESS=ray_address)
        assert "2 of 3 files are finished" in printed
        after = {path: path.stat().st_mtime_ns for path in output.glob("*/*.parquet")}
        assert before.items() <= after.items()
        rows = pq.read_table(output).to_pylist()
        assert sorted((row["path"][-5], row["line"]) for row in rows) == [
            ("0", 0),
            ("0", 1),
            ("1", 0),
            ("1", 1),
            ("2", 0),
        ]
        printed = run_example(
            "embed_with_ray.py", *command, "--layers", "0", code=1, RAY_ADDRESS=ray_address
        )
        assert "choose another --output" in printed

    def test_a_bad_row_is_one_sentence(self, tmp_path, ray_address):
        pq.write_table(
            pa.table({"id": [5], "text": pa.nulls(1, pa.string())}), tmp_path / "x.parquet"
        )
        place = ("--input", tmp_path / "x.parquet", "--output", tmp_path / "out", "--keys", "id")
        printed = run_example("embed_with_ray.py", *place, code=1, RAY_ADDRESS=ray_address)
        assert printed.splitlines()[-1].startswith("The row with path")

    def test_killed_actors(self, tmp_path, ray_address):
        rows = 40_000
        write_table(tmp_path / "rows.parquet", rows)
        run = start_example(
            "embed_with_ray.py",
            *("--input", tmp_path / "rows.parquet", "--output", tmp_path / "vectors"),
            *("--keys", "id", *self.OPTIONS, "--actors", 2),
            RAY_ADDRESS=ray_address,
        )
        kill_three_times(run, lambda: processes(lambda line: "ray::" in line), seed=1)
        printed, _ = run.communicate(timeout=300)
        assert run.returncode == 0, printed
        [folder] = (tmp_path / "vectors").iterdir()
        assert_vectors(folder, rows)
