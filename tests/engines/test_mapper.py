"""The seam between models and engines: batches of Arrow in and out, without an engine."""

import pickle

import numpy as np
import pyarrow as pa
import pytest

from elmo_hf import ElmoEmbedder, ElmoTagger
from elmo_hf.embedding.formats._table import nested_lists
from elmo_hf.embedding.sentence_embedder import SentenceTooLongError
from elmo_hf.engines import BadRowError, BatchMapper, Embedding, Tagging, reason_of

RAW = ["Stocks fell. Bonds rose!", "  ", "Who?"]
WORDS = [["Stocks", "fell", "."], [], ["Who", "?"]]
# many sentences, or a single one if blanks alone split them
MEGABYTE = "Stocks fell. " * 80_000


def table(texts, kind=None):
    ids = [f"r{number}" for number in range(len(texts))]
    return pa.table({"text": pa.array(texts, kind), "id": ids, "other": ids})


def run(job, texts, kind=None) -> pa.Table:
    return pa.concat_tables(BatchMapper(job)(table(texts, kind)))


def assert_close(column: pa.ChunkedArray, arrays: list[np.ndarray]) -> None:
    assert column.type == nested_lists(arrays).type
    for row, array in zip(column.to_pylist(), arrays, strict=True):
        found = np.array(row, np.float32).reshape(array.shape)
        np.testing.assert_allclose(found, array, rtol=0, atol=2e-5)


def test_raw_text_becomes_a_row_per_sentence_with_the_keys_of_its_row():
    found = run(Embedding(keys=["id"], layers="top"), RAW)
    assert found.column_names == ["id", "number", "sentence", "embedding", "error"]
    assert found["id"].to_pylist() == ["r0", "r0", "r1", "r2"]
    assert found["number"].to_pylist() == [0, 1, 0, 0]
    assert found["sentence"].to_pylist() == ["Stocks fell .", "Bonds rose !", "", "Who ?"]
    words = [["Stocks", "fell", "."], ["Bonds", "rose", "!"], [], ["Who", "?"]]
    assert_close(found["embedding"], ElmoEmbedder().embed(words, "top"))


@pytest.mark.parametrize("layers", ["all", "mix", 0])
@pytest.mark.parametrize("pooling", ["none", "max"])
def test_tokenised_text_has_values_and_types_of_the_embedder(layers, pooling):
    found = run(Embedding(keys=["id"], layers=layers, pooling=pooling), WORDS)
    assert_close(found["embedding"], ElmoEmbedder().embed(WORDS, layers, pooling))


def test_tokenised_text_may_be_strings():
    split, joined = (
        run(Embedding(keys="id", split="whitespace"), texts)
        for texts in (WORDS, [" ".join(words) for words in WORDS])
    )
    assert split == joined


def test_tags_are_those_of_the_tagger():
    found = run(Tagging(keys=["id", "other"]), RAW)
    expected = [*ElmoTagger()(RAW[0]), *ElmoTagger()(RAW[2])]
    rows = [row for row in found.to_pylist() if row["words"]]
    assert len(rows) == found.num_rows - 1
    for row, tagged in zip(rows, expected, strict=True):
        assert (row["words"], row["tags"]) == (tagged.words, tagged.tags)
        assert [tuple(span) for span in row["spans"]] == tagged.spans
        np.testing.assert_allclose(row["scores"], tagged.scores, rtol=0, atol=2e-5)
    assert run(Tagging(keys=["id"]), WORDS)["spans"].null_count == 3


@pytest.mark.parametrize(
    "job", [Embedding(keys=["id"]), Tagging(keys=["id"])], ids=["embed", "tag"]
)
def test_types_are_known_beforehand(job):
    bad = run(type(job)(keys=["id"], on_error="skip"), [None], pa.string())
    expected = job.result_schema(table(RAW).schema)
    assert run(job, RAW).schema == bad.schema == expected
    assert pickle.loads(pickle.dumps(job)) == job and hash(job)


BAD = {
    "null": ([["a"], None], None, "'text' should be text or a list of words, not None."),
    "null-word": (
        [["a"], ["b", None]],
        None,
        "should be text or a list of words, not ['b', None].",
    ),
    "number": ([7], pa.int64(), "'text' should be text or a list of words, not 7."),
    "bytes": ([b"a"], pa.binary(), "'text' should be text or a list of words, not b'a'."),
    "long": (
        ["a", MEGABYTE],
        None,
        "sentence 0 has 160,000 words, which is more than max_words=10,000; split it.",
    ),
}


@pytest.mark.parametrize("job", [Embedding, Tagging])
@pytest.mark.parametrize("kind", BAD)
def test_bad_rows_stop_or_are_skipped_with_their_key(job, kind):
    texts, arrow_type, reason = BAD[kind]
    key = f"r{len(texts) - 1}"
    settings = {"keys": ["id"], "split": "whitespace"}
    with pytest.raises(BadRowError) as caught:
        run(job(**settings), texts, arrow_type)
    assert str(caught.value).startswith(f"The row with id {key!r}: ")
    assert str(caught.value).endswith(f"{reason} Or pass on_error='skip' to leave it empty.")
    *rest, bad = run(job(**settings, on_error="skip"), texts, arrow_type).to_pylist()
    assert [row["error"] for row in rest] == [None] * (len(texts) - 1)
    assert (bad.pop("id"), bad.pop("number")) == (key, 0)
    assert bad.pop("error").endswith(reason) and set(bad.values()) == {None}


def test_text_that_is_not_utf8_is_a_bad_row():
    text = pa.array([b"a", b"\xff"]).cast(pa.binary()).view(pa.string())
    with pytest.raises(BadRowError, match="The row with id 'r1': 'text' is not UTF-8."):
        list(BatchMapper(Embedding(keys=["id"]))(table(["a", "b"]).set_column(0, "text", text)))


def test_a_long_text_comes_in_chunks():
    job = Embedding(keys=["id"], layers="top", pooling="mean")
    tables = list(BatchMapper(job)(table(["Stocks fell. " * 5000])))
    assert len(tables) == 5 and max(some.num_rows for some in tables) <= 1024
    numbers = pa.concat_tables(tables)["number"].to_pylist()
    assert numbers == list(range(5000))


def test_a_sentence_that_does_not_fit_into_memory_is_a_bad_row(monkeypatch):
    mapper = BatchMapper(Embedding(keys=["id"], on_error="skip"))
    embed = mapper.reader.embedder.embed_stream

    def fail(sentences, *settings):
        for words in sentences:
            if words[:1] == ["Stocks"]:
                raise SentenceTooLongError(words)
        return embed(sentences, *settings)

    monkeypatch.setattr(mapper.reader.embedder, "embed_stream", fail)
    *rest, bad = pa.concat_tables(mapper(table(WORDS))).to_pylist()
    assert [row["id"] for row in rest] == ["r1", "r2"]
    assert bad["error"] == "The row with id 'r0': sentence 0 does not fit into memory; split it."


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"keys": ["id"], "on_error": "ignore"}, "must be one of stop, skip"),
        ({"keys": ["error"]}, "There would be two columns 'error'; rename the one in `keys`."),
        ({"keys": ["id", "id"]}, "There would be two columns 'id'"),
        ({"keys": ["id"], "pooling": "sum"}, "`pooling` is 'sum' but must be one of none, mean"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Embedding(**settings)


def test_layers_are_refused_when_the_model_is_loaded():
    with pytest.raises(ValueError, match="`layers` is 'x' but must be one of all"):
        BatchMapper(Embedding(keys=["id"], layers="x"))


def test_columns_that_are_missing_are_refused():
    with pytest.raises(ValueError, match="There is no column 'key'; there are text, id, other."):
        run(Embedding(keys=["key"]), RAW)


def test_the_reason_inside_an_engines_error():
    wrapped = "Traceback ...\nelmo_hf.engines.job.BadRowError: The row with id 1: no.\n\tat java"
    assert reason_of(RuntimeError(wrapped)) == "The row with id 1: no."
    assert reason_of(RuntimeError("The worker has died.")) is None
