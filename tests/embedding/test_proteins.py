"""FASTA files: a record's vectors are found by its id, and are those of its residues alone."""

import copy
import gzip
import json
import random

import h5py
import numpy as np
import pytest
from helpers.vectors import ENDINGS, load_rows, read

from elmo_hf import recurrence_plain
from elmo_hf.cli.embed import embed
from elmo_hf.embedding import EmbeddingJob, chunks
from elmo_hf.embedding.sentence_embedder import SentenceTooLongError
from elmo_hf.text import Line, fasta_source

PROTEINS = {"sp|P1|ONE": "MKVLAACDEF", "two/2": "ACDx", "three": "M", ".": "MK"}


@pytest.fixture
def fasta(tmp_path):
    text = "".join(f">{key} a protein\n{seq[:5]}\n{seq[5:]}*\n" for key, seq in PROTEINS.items())
    (tmp_path / "proteins.fa.gz").write_bytes(gzip.compress(text.encode()))
    return str(tmp_path / "proteins.fa.gz")


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("pooling", ["none", "mean"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_vectors_of_a_protein_are_found_by_its_id(
    folder, embedder, fasta, tmp_path, monkeypatch, capsys, ending, pooling
):
    monkeypatch.setattr(chunks, "CHUNK", 3)
    output = tmp_path / f"out{ending}"
    embed(output, fasta, str(folder), layers="top", pooling=pooling, split="characters")
    alone = [embedder.embed([[*seq]], "top", pooling)[0] for seq in PROTEINS.values()]
    if ending == ".hdf5":
        with h5py.File(output) as file:
            found = {name: file[name][...] for name in file if name != "sentence_to_index"}
            table = json.loads(file["sentence_to_index"][0])
        assert set(found) == {"sp|P1|ONE", "two_2", "three", "._"} == set(table.values())
        for name, vectors in zip(["sp|P1|ONE", "two_2", "three", "._"], alone, strict=True):
            close(found[name], vectors)
        assert table["A C D x"] == "two_2"
        return
    for one, other in zip(read(output), alone, strict=True):
        close(one.reshape(other.shape), other)
    if ending in (".parquet", ".arrow"):
        rows = load_rows(output)
        assert rows["id"][:] == [*PROTEINS] and rows["sentence"][2] == "M"
    assert "raw text" not in capsys.readouterr().err


@pytest.mark.parametrize("split", ["none", "english"])
def test_fasta_is_not_embedded_as_text(folder, fasta, tmp_path, split):
    with pytest.raises(ValueError, match="is FASTA, which is read residue.* --split characters"):
        embed(tmp_path / "out.npy", fasta, str(folder), split=split)
    assert not list(tmp_path.glob("*.npy"))


def test_fasta_of_another_name_is_not_embedded_with_its_headers(folder, tmp_path):
    (tmp_path / "proteins.txt").write_text(">a\nMK\n")
    with pytest.raises(ValueError, match="line 1: this is the header.* ends in .fasta, .fa, .faa"):
        embed(tmp_path / "out.npy", str(tmp_path / "proteins.txt"), str(folder), split="characters")
    (tmp_path / "proteins.txt").write_text("MK\n")
    embed(tmp_path / "out.npy", str(tmp_path / "proteins.txt"), str(folder), split="characters")
    assert len(read(tmp_path / "out.npy")) == 1


def test_a_mistake_in_a_record_is_reported(folder, tmp_path):
    path = tmp_path / "proteins.fasta"
    path.write_text(">a\nMK\n>b\n")
    options = {"model": str(folder), "split": "characters"}
    with pytest.raises(ValueError, match="'b' has no sequence; delete it. Or pass --on-error skip"):
        embed(tmp_path / "out.npy", str(path), **options)
    embed(tmp_path / "out.npy", str(path), **options, on_error="skip")
    assert [array.shape[1] for array in read(tmp_path / "out.npy")] == [2, 0]
    path.write_text("")
    with pytest.raises(ValueError, match="There is no line in"):
        embed(tmp_path / "none.npy", str(path), **options)


def test_another_id_is_another_chunk(embedder, tmp_path):
    job = EmbeddingJob(embedder, tmp_path / "out.npy")
    one, other = (Line(0, "M K", ["M", "K"], 1, key) for key in ("a", "b"))
    assert job.path_of(0, [one]) != job.path_of(0, [other])


def test_a_record_that_does_not_fit_into_memory_is_named(embedder, tmp_path, fasta, monkeypatch):
    def full(sentences, *rest):
        raise SentenceTooLongError(sentences[0])

    monkeypatch.setattr(embedder, "_embed_batch", full)
    with pytest.raises(MemoryError, match=r"The record 'sp\|P1\|ONE': A sentence of 10 words does"):
        EmbeddingJob(embedder, tmp_path / "out.npy").write(fasta_source(fasta))


def test_a_long_sequence_has_the_same_vectors_in_windows(embedder, monkeypatch):
    """From prepared copies, and step by step as on a GPU."""
    residues = random.Random(0).choices("ACDEFGHIKLMNPQRSTVWY", k=300)
    expected = embedder.embed_sentence(residues)
    plain = copy.deepcopy(embedder)
    # which drops the copies
    plain.model.train().eval()
    at_once = plain.embed_sentence(residues)
    monkeypatch.setattr(recurrence_plain, "TOKENS_AT_ONCE", 64)
    np.testing.assert_array_equal(plain.embed_sentence(residues), at_once)
    np.testing.assert_allclose(at_once, expected, rtol=0, atol=2e-5)
