"""A corpus becomes a file of vectors: crashes, several processes, bad input, full disks."""

import gzip
import os
import random
import re
import shutil
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest
from datasets import Dataset
from helpers.launch import free_port
from helpers.tiny import tiny_config
from helpers.vectors import ENDINGS, SENTENCES, read, source_of

from elmo_hf import ElmoEmbedder, ElmoModel
from elmo_hf.cli.embed import embed
from elmo_hf.embedding import EmbeddingJob, chunks
from elmo_hf.embedding import job as job_module
from elmo_hf.embedding.chunks import Chunk, split_into_chunks
from elmo_hf.system import failures
from elmo_hf.system.processes import Processes
from elmo_hf.text import Line, text_source


def write(path, sentences):
    path.write_text("".join(" ".join(words) + "\n" for words in sentences), encoding="utf-8")
    return path


def some_sentences(count: int) -> list[list[str]]:
    draw = random.Random(3)
    return [[f"w{draw.randrange(300)}" for _ in range(draw.randrange(12))] for _ in range(count)]


def command(folder, source, output, *more, launcher=()) -> list[str]:
    start = [sys.executable, *launcher, "-m", "elmo_hf", "embed", "--model", folder]
    return [*map(str, [*start, "--input", source, "--output", output, *more])]


def begin(arguments, **environment) -> subprocess.Popen:
    settings = {"OMP_NUM_THREADS": "1", **environment}
    return subprocess.Popen(
        arguments,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | settings,
    )


def run_two(arguments) -> None:
    """Two processes, as accelerate and torchrun start them."""
    settings = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    pair = [begin(arguments, RANK=str(rank), **settings) for rank in range(2)]
    assert [process.wait(120) for process in pair] == [0, 0]


def run(arguments, given: str | None = None, **environment) -> None:
    settings = {"OMP_NUM_THREADS": "1", **environment}
    done = subprocess.run(
        arguments, capture_output=True, text=True, env=os.environ | settings, input=given
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.program
@pytest.mark.parametrize("ending", ENDINGS)
def test_killed_and_shared_runs_end_with_the_same_vectors(folder, tmp_path, ending):
    source = write(tmp_path / "text", some_sentences(20_000))
    run(command(folder, source, tmp_path / f"whole{ending}"))
    killed = command(folder, source, tmp_path / f"killed{ending}")
    draw = random.Random(ending)
    kills = 0
    for _ in range(3):
        before = len(list(tmp_path.glob(".killed*/*/*.npz")))
        process = begin(killed)
        deadline = time.time() + 60
        while time.time() < deadline and process.poll() is None:
            if len(list(tmp_path.glob(".killed*/*/*.npz"))) > before:
                break
            time.sleep(0.02)
        time.sleep(draw.random() / 5)
        kills += process.poll() is None
        process.kill()
        process.wait()
    assert kills >= 2
    if not (tmp_path / f"killed{ending}").exists():
        run(killed)
    run_two(command(folder, source, tmp_path / f"shared{ending}"))
    expected = read(tmp_path / f"whole{ending}")
    assert len(expected) == 20_000
    for name in ("killed", "shared"):
        found = read(tmp_path / f"{name}{ending}")
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.program
def test_two_processes_may_have_one_chunk_between_them(folder, tmp_path):
    """By accelerate's launcher, as the page says."""
    source = write(tmp_path / "text", SENTENCES)
    launcher = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", 2]
    launcher += ["--num_machines", 1, "--mixed_precision", "no", "--dynamo_backend", "no"]
    launcher += ["--main_process_port", free_port()]
    arguments = command(folder, source, tmp_path / "out.npy", launcher=launcher)
    run(arguments, ACCELERATE_USE_CPU="true")
    assert len(read(tmp_path / "out.npy")) == len(SENTENCES)
    assert not list(tmp_path.glob(".out*"))


def test_a_run_that_was_to_replace_a_file_loses_nothing(folder, tmp_path, monkeypatch):
    """Killed on the way, and started again without the word that it may replace the file."""
    monkeypatch.setattr(chunks, "CHUNK", 2)
    output = tmp_path / "out.npy"
    old = write(tmp_path / "old", SENTENCES[:1])
    new = write(tmp_path / "new", SENTENCES)
    embed(output, str(old), str(folder))
    before = output.read_bytes()

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(EmbeddingJob, "assemble", killed)
        with pytest.raises(KeyboardInterrupt):
            embed(output, str(new), str(folder), overwrite=True)
    with pytest.raises(FileExistsError, match="exists; pass --overwrite"):
        embed(output, str(new), str(folder))
    assert output.read_bytes() == before and len(list(tmp_path.glob(".out*/*/*.npz"))) == 3
    # after the file was in its place, before its chunks were dropped, or while they were
    for place, name in ((EmbeddingJob, "clean"), (shutil, "rmtree")):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, killed)
            with pytest.raises(KeyboardInterrupt):
                embed(output, str(new), str(folder), overwrite=True)
        # which is no leave to take it for another text's
        with pytest.raises(FileExistsError, match="exists; pass --overwrite"):
            embed(output, str(old), str(folder))
        embed(output, str(new), str(folder))
        assert len(read(output)) == len(SENTENCES) and not list(tmp_path.glob(".out*"))


def test_a_file_beside_the_output_is_not_replaced_unasked(folder, tmp_path, monkeypatch):
    """Unless a run of ours put it there and was killed before the output itself was there."""
    output, beside = tmp_path / "out.npy", tmp_path / "out.offsets.npy"
    source = str(write(tmp_path / "text", SENTENCES))
    beside.write_text("somebody's")
    with pytest.raises(FileExistsError, match="out.offsets.npy' exists; pass --overwrite"):
        embed(output, source, str(folder))
    assert beside.read_text() == "somebody's" and not list(tmp_path.glob(".out*"))
    beside.unlink()
    beside.mkdir()
    with pytest.raises(IsADirectoryError, match="out.offsets.npy' is a folder"):
        embed(output, source, str(folder), overwrite=True)
    beside.rmdir()
    replace = os.replace

    def killed(old, new):
        if new == output:
            raise KeyboardInterrupt
        return replace(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            embed(output, source, str(folder))
    assert beside.exists() and not output.exists()
    ours = beside.read_bytes()
    beside.write_text("somebody's")
    with pytest.raises(FileExistsError, match="out.offsets.npy' exists; pass --overwrite"):
        embed(output, source, str(folder))
    assert beside.read_text() == "somebody's"
    beside.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            embed(output, source, str(folder))
    embed(output, source, str(folder))
    assert len(read(output)) == len(SENTENCES) and beside.read_bytes() == ours
    assert not list(tmp_path.glob(".out*"))


def test_changed_words_and_settings_never_meet_old_chunks(embedder, tmp_path):
    job = EmbeddingJob(embedder, tmp_path / "out.npy")
    one, other = (Line(0, "two words", words, 1) for words in (["two", "words"], ["two words"]))
    assert job.path_of(0, [one]) != job.path_of(0, [other])
    changed = ElmoModel(tiny_config(cell_clip=1.0))
    changed.load_state_dict(embedder.model.state_dict())
    assert EmbeddingJob(ElmoEmbedder(changed), tmp_path / "out.npy").folder != job.folder


def test_one_run_at_a_time_writes_a_file(folder, embedder, tmp_path):
    """Also one with other settings; a refused one takes nothing from the other."""
    source = write(tmp_path / "text", SENTENCES)
    job = EmbeddingJob(embedder, tmp_path / "out.npy")
    with job.locked():
        paths = job.embed_chunks(source_of(SENTENCES))
        for layers in ("all", "top"):
            with pytest.raises(
                BlockingIOError, match="Another run is writing .*out.npy'; wait for"
            ):
                embed(job.output, str(source), str(folder), layers=layers)
        job.assemble(paths)
    assert len(read(job.output)) == len(SENTENCES) and not job.parts.exists()
    embed(job.output, str(source), str(folder), overwrite=True)


def test_what_other_runs_left_is_cleaned_up(folder, embedder, tmp_path):
    source = write(tmp_path / "text", SENTENCES)
    other = EmbeddingJob(embedder, tmp_path / "out.npy", layers="top")
    [chunk] = other.embed_chunks(source_of(SENTENCES))
    part = chunk.with_suffix(".1.part")
    part.write_bytes(b"half of a chunk")
    with pytest.raises(ValueError, match="There is no line"):
        embed(other.output, str(write(tmp_path / "empty", [])), str(folder))
    assert chunk.exists() and not part.exists()
    embed(other.output, str(source), str(folder))
    assert not other.parts.exists()


@pytest.mark.parametrize("size", [0, 500])
def test_a_damaged_chunk_is_made_anew(embedder, tmp_path, size):
    job = EmbeddingJob(embedder, tmp_path / "out.npy")
    [chunk] = job.embed_chunks(source_of(SENTENCES))
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[:size])
    assert job.embed_chunks(source_of(SENTENCES)) == [chunk] and chunk.read_bytes() == whole


def test_any_damage_of_a_chunk_is_noticed(embedder, tmp_path):
    """Flipped bits and zeroed blocks, wherever they are in the file."""
    job = EmbeddingJob(embedder, tmp_path / "out.npy")
    [chunk] = job.embed_chunks(source_of(SENTENCES))
    whole, draw = chunk.read_bytes(), random.Random(0)
    for _ in range(60):
        damaged = bytearray(whole)
        place = draw.randrange(len(whole))
        for at in range(place, min(place + draw.choice([1, 64]), len(whole))):
            damaged[at] ^= 1 + draw.randrange(255)
        chunk.write_bytes(damaged)
        job.embed_chunks(source_of(SENTENCES))
        [again], [expected] = [Chunk.load(chunk)], [job.embed_chunk([*source_of(SENTENCES).lines])]
        assert np.array_equal(again.values, expected.values)
        assert again.sentences == expected.sentences


def test_a_chunk_that_is_damaged_at_the_end_is_made_anew(embedder, tmp_path):
    job = EmbeddingJob(embedder, tmp_path / "out.npy")
    [chunk] = job.embed_chunks(source_of(SENTENCES))
    chunk.write_bytes(chunk.read_bytes()[:500])
    with pytest.raises(OSError, match="was damaged and is deleted.*the same command resumes"):
        job.assemble([chunk])
    job.write(source_of(SENTENCES))
    assert len(np.load(tmp_path / "out.npy")) == sum(map(len, SENTENCES))


def test_chunks_that_never_come_are_reported(embedder, tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK", 2)
    monkeypatch.setattr(job_module, "PATIENCE", 0)
    job = EmbeddingJob(embedder, tmp_path / "out.npy")
    with pytest.raises(OSError, match="and 0 more are missing; all machines need to share"):
        job.assemble(job.embed_chunks(source_of(SENTENCES), Processes(0, 2)))
    assert len(list(job.folder.glob("*.npz"))) == 2


def test_chunks_are_bounded_by_words_as_well(monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_WORDS", 4)
    sizes = [len(chunk) for chunk in split_into_chunks(source_of(SENTENCES).lines)]
    assert sizes == [1, 2, 1, 1]


def test_several_texts_are_one(folder, tmp_path):
    for name, some in (("a", SENTENCES[:2]), ("b", SENTENCES[2:])):
        write(tmp_path / f"{name}.txt", some)
    embed(tmp_path / "both.hdf5", str(tmp_path / "*.txt"), str(folder))
    with h5py.File(tmp_path / "both.hdf5") as file:
        assert set(file) == {*"01234", "sentence_to_index"}


@pytest.mark.program
def test_text_may_be_gzipped_standard_input_or_a_dataset(folder, embedder, tmp_path):
    text = "".join(" ".join(words) + "\n" for words in SENTENCES)
    (tmp_path / "text.gz").write_bytes(gzip.compress(text.encode()))
    embed(tmp_path / "gz.npy", str(tmp_path / "text.gz"), str(folder))
    odd = [*SENTENCES, ["a\nword", "two words"]]
    Dataset.from_list([{"words": words} for words in odd]).to_parquet(
        str(tmp_path / "data" / "train.parquet")
    )
    Dataset.from_list([{"words": words} for words in odd]).save_to_disk(tmp_path / "saved")
    for data, name in (("data", "dataset"), ("saved", "saved")):
        words = {"dataset_name": str(tmp_path / data), "column": "words"}
        embed(tmp_path / f"{name}.npy", model=str(folder), **words)
    run(command(folder, "-", tmp_path / "stdin.npy"), text)
    texts = {"gz": SENTENCES, "stdin": SENTENCES, "dataset": odd, "saved": odd}
    for name, sentences in texts.items():
        expected = embedder.embed(sentences)
        for one, other in zip(read(tmp_path / f"{name}.npy"), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("source", "output", "sentence"),
    [
        ("none", "out.npy", "There is no file"),
        (".", "out.npy", "is a folder"),
        ("empty", "out.npy", "There is no line in"),
        ("bytes", "out.npy", "line 2: the byte 0xff is not UTF-8"),
        ("text", "there.npy", "exists; pass --overwrite"),
        ("text", "folder.npy", "folder.npy' is a folder; name a file."),
        ("text", "out.txt", "must end in its format, one of .arrow, .hdf5, .h5, .npy, .parquet"),
    ],
)
def test_bad_input_is_one_sentence(folder, tmp_path, source, output, sentence):
    write(tmp_path / "text", SENTENCES)
    (tmp_path / "empty").write_text("")
    (tmp_path / "bytes").write_bytes(b"fine .\n\xff\xfe no\n")
    (tmp_path / "there.npy").write_text("old")
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises((ValueError, OSError), match=re.escape(sentence)):
        embed(tmp_path / output, str(tmp_path / source), str(folder))
    assert (tmp_path / "there.npy").read_text() == "old"
    assert not list(tmp_path.glob(".*"))


def test_bad_sources_are_one_sentence(folder, tmp_path, monkeypatch):
    output, model = tmp_path / "out.npy", str(folder)
    with pytest.raises(ValueError, match="Give --input or --dataset-name, not both"):
        embed(output, "text", model, dataset_name="data")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.csv").write_text("text\nfine\nx,y,z\n")
    with pytest.raises(ValueError, match="The dataset .*data' cannot be read: "):
        embed(output, model=model, dataset_name=str(tmp_path / "data"))
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValueError, match="There is no standard input"):
        embed(output, model=model)


def test_a_pipe_is_read_like_a_file(folder, embedder, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = subprocess.Popen(["sh", "-c", "printf 'Dogs bark .\n' > pipe"], cwd=tmp_path)
    embed(tmp_path / "out.npy", str(tmp_path / "pipe"), str(folder))
    assert writer.wait() == 0 and len(read(tmp_path / "out.npy")) == 1
    for source in (tmp_path / "pipe", "-"):
        with pytest.raises(ValueError, match="Several processes cannot share standard input or"):
            text_source(str(source), shared=True)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_skipped_line_keeps_the_others_places_and_a_word_may_be_long(
    folder, embedder, tmp_path, ending
):
    text = tmp_path / "text"
    text.write_bytes(b"fine .\n\xff\xfe no\nfine too .\n" + b"x" * 1_000_000 + b"\n")
    embed(tmp_path / f"out{ending}", str(text), str(folder), on_error="skip", layers="top")
    found = read(tmp_path / f"out{ending}")
    assert [len(array) for array in found] == [2, 0, 3, 1]
    [expected] = embedder.embed([["fine", "too", "."]], layers="top")
    np.testing.assert_allclose(found[2], expected, rtol=1e-5, atol=1e-6)


def test_a_row_that_is_no_text_is_reported_or_skipped(folder, tmp_path):
    rows = [{"text": "fine ."}, {"text": None}]
    Dataset.from_list(rows).to_parquet(str(tmp_path / "data" / "train.parquet"))
    data = {"model": str(folder), "dataset_name": str(tmp_path / "data")}
    with pytest.raises(ValueError, match="Row 1: 'text' should be text or a list of words"):
        embed(tmp_path / "out.npy", **data)
    embed(tmp_path / "out.npy", **data, on_error="skip")
    assert [array.shape[1] for array in read(tmp_path / "out.npy")] == [2, 0]


def test_a_full_disk_keeps_what_is_done(embedder, tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK", 2)
    job = EmbeddingJob(embedder, tmp_path / "out.npy")
    save, saved = Chunk.save, []

    def full(self, path):
        if len(saved) == 1:
            raise OSError(28, "No space left on device")
        saved.append(path)
        save(self, path)

    monkeypatch.setattr(Chunk, "save", full)
    with pytest.raises(OSError, match="No space left.*1 chunks of lines that are done are kept"):
        job.embed_chunks(source_of(SENTENCES))
    monkeypatch.setattr(Chunk, "save", save)
    job.assemble(job.embed_chunks(source_of(SENTENCES)))
    assert len(read(job.output)) == len(SENTENCES)


@pytest.mark.parametrize("ending", ENDINGS)
def test_room_for_the_whole_is_looked_for_first(embedder, tmp_path, monkeypatch, ending):
    job = EmbeddingJob(embedder, tmp_path / f"out{ending}")
    paths = job.embed_chunks(source_of(SENTENCES))
    with monkeypatch.context() as patch:
        usage = shutil.disk_usage(tmp_path)._replace(free=2000)
        patch.setattr(shutil, "disk_usage", lambda path: usage)
        patch.setattr(failures, "ROOM", 0)
        with pytest.raises(
            OSError, match="no room for .* MB more.*1 chunks of lines that are done are kept"
        ):
            job.assemble(paths)
    assert not job.output.exists()
    job.assemble(paths)
    assert len(read(job.output)) == len(SENTENCES)


def test_a_line_that_does_not_fit_into_memory_has_a_number(folder, tmp_path, monkeypatch):
    source = write(tmp_path / "text", [*SENTENCES, ["word"] * 50])
    whole = ElmoEmbedder._embed_at_once

    def small(self, sentences, *rest):
        if sum(map(len, sentences)) > 20:
            raise RuntimeError("can't allocate memory")
        return whole(self, sentences, *rest)

    monkeypatch.setattr(ElmoEmbedder, "_embed_at_once", small)
    reported = (
        "Line 6: A sentence of 50 words does not fit into memory; split it. Or pass --on-error skip"
    )
    with pytest.raises(MemoryError, match=re.escape(reported)):
        embed(tmp_path / "out.npy", str(source), str(folder))
    embed(tmp_path / "out.npy", str(source), str(folder), on_error="skip")
    assert [array.shape[1] for array in read(tmp_path / "out.npy")] == [3, 4, 0, 3, 3, 0]


def test_only_the_line_that_does_not_fit_is_left_empty_and_tried_again(
    folder, embedder, tmp_path, monkeypatch
):
    """It need not be the longest: what others leave of a GPU comes and goes."""
    sentences = [["word"] * length for length in (9, 8, 7)]
    whole = ElmoEmbedder._embed_at_once

    def small(self, sentences, *rest):
        if any(len(words) == 8 for words in sentences):
            raise RuntimeError("can't allocate memory")
        return whole(self, sentences, *rest)

    output = tmp_path / "out.npy"
    with monkeypatch.context() as patch:
        patch.setattr(ElmoEmbedder, "_embed_at_once", small)
        job = EmbeddingJob(embedder, output, on_error="skip")
        [chunk] = job.embed_chunks(source_of(sentences))
    assert Chunk.load(chunk).lengths.tolist() == [9, 0, 7]
    embed(output, str(write(tmp_path / "text", sentences)), str(folder))
    assert [array.shape[1] for array in read(output)] == [9, 8, 7]
