"""Every output format holds the same arrays, and a format is one file."""

import io
import json
import sys

import h5py
import numpy as np
import pytest
from helpers.vectors import ENDINGS, SENTENCES, load_rows, read, source_of

from elmo_hf.embedding import FORMATS, EmbeddingJob, chunks, formats
from elmo_hf.embedding.formats import SUFFIXES, find_format, hdf5


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    ("layers", "pooling", "dtype"),
    [("all", "none", "float32"), ("top", "none", "float16"), ("all", "mean", "float32")]
    + [("mix", "max", "float32")],
)
def test_every_format_holds_the_embedders_arrays(
    embedder, tmp_path, monkeypatch, ending, layers, pooling, dtype
):
    monkeypatch.setattr(chunks, "CHUNK", 2)
    job = EmbeddingJob(embedder, tmp_path / f"out{ending}", layers, pooling, dtype)
    job.assemble(job.embed_chunks(source_of(SENTENCES)))
    found = read(job.output)
    expected = embedder.embed(SENTENCES, layers, pooling, dtype)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == dtype
        # a list of no words has no size in a table; npy keeps an axis of the one pooled vector
        if other.size:
            np.testing.assert_allclose(
                one.reshape(other.shape),
                other,
                rtol=1e-3 if dtype == "float16" else 1e-5,
                atol=1e-6,
            )
    assert not job.folder.exists()


def test_hdf5_is_read_as_allennlps(embedder, tmp_path):
    """By the code of its day."""
    text = tmp_path / "text"
    text.write_text('Dogs bark .\n A  dog \t"barks" . \nDogs bark .\n')
    with text.open() as file:
        embedder.embed_file(file, str(tmp_path / "vectors.elmo"))
    with h5py.File(tmp_path / "vectors.elmo", "r") as fin:
        sentence_to_index = json.loads(fin["sentence_to_index"][0])
        # by the line, the last one where it stands twice
        assert sentence_to_index == {"Dogs bark .": "2", 'A  dog \t"barks" .': "1"}
        embeddings = fin[sentence_to_index["Dogs bark ."]][...]
        assert fin["0"].shape == embeddings.shape == (3, 3, embedder.model.config.hidden_size)
        assert set(fin) == {"0", "1", "2", "sentence_to_index"}
    with pytest.raises(
        ValueError, match="`output_format` is 'avg' but must be one of all, top, av"
    ):
        embedder.embed_file(io.StringIO("Dogs bark ."), tmp_path / "vectors.elmo", "avg")
    embedder.embed_file(io.StringIO(""), tmp_path / "vectors.elmo")
    with h5py.File(tmp_path / "vectors.elmo", "r") as fin:
        assert json.loads(fin["sentence_to_index"][0]) == {}


def test_a_table_too_long_for_hdf5_is_left_out(embedder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(hdf5, "LONGEST_STRING", 30)
    job = EmbeddingJob(embedder, tmp_path / "out.hdf5")
    job.assemble(job.embed_chunks(source_of(SENTENCES)))
    assert len(read(job.output)) == len(SENTENCES)
    assert "too long for hdf5 and left out" in capsys.readouterr().err


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_tables_tell_lines_and_sentences(embedder, tmp_path, ending):
    job = EmbeddingJob(embedder, tmp_path / f"out{ending}", pooling="mean", layers="top")
    job.assemble(job.embed_chunks(source_of(SENTENCES)))
    rows = load_rows(job.output)
    assert rows["line"][:] == [0, 1, 2, 3, 4]
    assert rows["sentence"][:] == [" ".join(words) for words in SENTENCES]
    assert len(rows[0]["embedding"]) == embedder.model.config.hidden_size


def test_all_formats_hold_the_same_numbers(embedder, tmp_path):
    """Bit by bit."""
    files = []
    for ending in ENDINGS:
        job = EmbeddingJob(embedder, tmp_path / f"out{ending}")
        job.write(source_of(SENTENCES))
        files.append(read(job.output))
    for arrays in zip(*files, strict=True):
        for array in arrays[1:]:
            # a list of no words has no size in a table
            np.testing.assert_array_equal(array.reshape(-1), arrays[0].reshape(-1))


def test_every_format_is_found_by_its_name_and_its_endings(tmp_path):
    assert set(FORMATS) == {"arrow", "hdf5", "npy", "parquet"}
    assert set(SUFFIXES) == {*ENDINGS, ".h5"}
    for name, known in FORMATS.items():
        assert find_format(tmp_path / "out.vectors", name) is known
        assert all(find_format(tmp_path / f"out{suffix}") is known for suffix in known.suffixes)
    with pytest.raises(ValueError, match="'xml' but must be one of arrow, hdf5, npy, parquet"):
        find_format(tmp_path / "out.npy", "xml")


def test_a_new_module_is_a_new_format(tmp_path, monkeypatch):
    (tmp_path / "text.py").write_text(
        "from elmo_hf.embedding.formats import OutputFormat\n"
        "FORMAT = OutputFormat('text', ('.txt',), lambda path, chunks, pooling: None)\n"
    )
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path)])
    assert set(formats.discover()) - set(FORMATS) == {"text"}


@pytest.mark.parametrize("name", ["arrow", "parquet", "hdf5", "npy"])
def test_a_named_format_is_written_whatever_the_ending(embedder, tmp_path, name):
    job = EmbeddingJob(embedder, tmp_path / "vectors.elmo", output_format=name)
    job.write(source_of(SENTENCES))
    job.output.rename(tmp_path / f"vectors.{name}")
    found = read(tmp_path / f"vectors.{name}")
    assert [array.shape[1] for array in found] == [len(words) for words in SENTENCES]


def test_a_missing_library_is_reported_before_the_work(embedder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(
        ImportError, match=r"Writing hdf5 requires h5py: pip install 'elmo_hf\[conversion\]'"
    ):
        EmbeddingJob(embedder, tmp_path / "out.hdf5")
