"""Raw text is split into sentences and words, in Python and by the command."""

import copy
import pickle
from contextlib import nullcontext

import numpy as np
import pytest
from datasets import Dataset
from helpers.tiny import WIDTH
from helpers.vectors import ENDINGS, load_rows, read

from elmo_hf import ElmoEmbedder, ElmoTokenizer
from elmo_hf.cli import embed as command
from elmo_hf.cli.embed import embed
from elmo_hf.embedding import EmbeddingJob, chunks
from elmo_hf.system.processes import Processes

TEXT = "Dogs don't bark. A dog barks,\nthough!\n\nDo they?\n"
BY_LINES = ["Dogs do n't bark .", "A dog barks ,", "though !", "Do they ?"]
BY_BLANK_LINES = ["Dogs do n't bark .", "A dog barks , though !", "Do they ?"]


def equal(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def write(path, text=TEXT):
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_string_is_raw_text(embedder):
    sentences = [["Dogs", "bark."], ["They", "do."]]
    text = "Dogs bark.\nThey do."
    # the tokenizer beside the model says `whitespace`, for which a text is one sentence
    equal(embedder.embed(text), embedder.embed([sum(sentences, [])]))
    by_lines = ElmoEmbedder(embedder.model, split=lambda text: [*map(str.split, text.split("\n"))])
    equal(by_lines.embed(text, "top", "mean"), embedder.embed(sentences, "top", "mean"))
    assert [sentence.words for sentence in by_lines.split(text)] == sentences
    assert embedder.embed("") == [] and embedder.embed("", padded=True).shape[0] == 0
    with pytest.raises(ValueError, match=r"not a string; split 'Dogs bark.' first, or embed one t"):
        embedder.embed(["Dogs bark."])


def test_the_splitter_is_the_models_own(embedder, tmp_path):
    """That of the tokenizer beside it; `whitespace` where there is none."""
    embedder.model.save_pretrained(tmp_path)
    words = [
        [sentence.words for sentence in found] for found in [ElmoEmbedder(tmp_path).split(TEXT)]
    ]
    assert words == [[TEXT.split()]]
    tokenizer = ElmoTokenizer(max_characters_per_token=WIDTH, word_splitter="english")
    tokenizer.save_pretrained(tmp_path)
    english = ElmoEmbedder(tmp_path)
    for maker in (english, copy.deepcopy(english), pickle.loads(pickle.dumps(english))):
        found = [" ".join(sentence.words) for sentence in maker.split(TEXT)]
        assert found == BY_BLANK_LINES
    named = ElmoEmbedder(tmp_path, split="characters")
    assert [sentence.words for sentence in named.split("MK V")] == [["M", "K", "V"]]
    assert [len(sentence.words) for sentence in ElmoEmbedder().split("Don't.")] == [3]
    with pytest.raises(ValueError, match="'welsh'; choose whitespace, english"):
        ElmoEmbedder(tmp_path, split="welsh")


def test_batches_may_be_smaller(embedder, monkeypatch):
    sentences = [["Dogs", "bark"], ["Cats"], ["Birds", "sing", "."]]
    small = ElmoEmbedder(embedder.model, batch_size=2)
    sizes, whole = [], small._embed_at_once
    monkeypatch.setattr(
        small,
        "_embed_at_once",
        lambda batch, *rest: sizes.append(len(batch)) or whole(batch, *rest),
    )
    equal(small.embed(sentences), embedder.embed(sentences))
    assert sizes == [2, 1]
    with pytest.raises(ValueError, match="`batch_size` is 0 but must be at least 1"):
        ElmoEmbedder(embedder.model, batch_size=0)


@pytest.mark.parametrize(
    ("paragraphs", "expected"), [("line", BY_LINES), ("blank", BY_BLANK_LINES)]
)
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_command_splits_raw_text(
    folder, embedder, tmp_path, capsys, ending, paragraphs, expected
):
    output = tmp_path / f"out{ending}"
    options = {"split": "english", "paragraphs": paragraphs, "layers": "top", "batch_size": 1}
    embed(output, write(tmp_path / "text"), str(folder), **options)
    equal(read(output), embedder.embed([text.split() for text in expected], layers="top"))
    if ending == ".parquet":
        rows = load_rows(output)
        assert rows["line"][:] == [*range(len(expected))] and rows["sentence"][:] == expected
    assert "raw text" not in capsys.readouterr().err


def test_rows_of_a_dataset_are_split_too(folder, embedder, tmp_path):
    Dataset.from_dict({"text": [TEXT.split("\n\n")[0], "Do they?"]}).save_to_disk(tmp_path / "data")
    data = {"dataset_name": str(tmp_path / "data"), "split": "english", "layers": "top"}
    embed(tmp_path / "out.npy", model=str(folder), paragraphs="blank", **data)
    expected = embedder.embed([text.split() for text in BY_BLANK_LINES], layers="top")
    equal(read(tmp_path / "out.npy"), expected)


def test_a_killed_run_never_meets_the_chunks_of_another_splitter(
    folder, embedder, tmp_path, monkeypatch
):
    monkeypatch.setattr(chunks, "CHUNK", 1)
    output, text = tmp_path / "out.npy", write(tmp_path / "text")
    save, saved = chunks.Chunk.save, []

    def killed(self, path):
        if len(saved) == 2:
            raise KeyboardInterrupt
        saved.append(path)
        save(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(chunks.Chunk, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            embed(output, text, str(folder), split="english")
    assert len(list(tmp_path.glob(".out*/*/*.npz"))) == 2
    with monkeypatch.context() as patch:
        patch.setattr(EmbeddingJob, "assemble", lambda *_: None)
        embed(output, text, str(folder), split="characters")
        assert len(list(tmp_path.glob(".out*/*/*.npz"))) == 5
    embed(output, text, str(folder), split="english")
    equal(read(output), [embedder.embed_sentence(text.split()) for text in BY_LINES])
    assert not list(tmp_path.glob(".out*"))


def test_raw_text_without_a_splitter_is_warned_of_once(folder, tmp_path, capsys):
    embed(tmp_path / "raw.npy", write(tmp_path / "raw", TEXT * 200), str(folder))
    complained = capsys.readouterr().err
    assert complained.count("This looks like raw text: 'barks,' is read as one word.") == 1
    assert complained.count("--split english") == 1
    tokenised = write(tmp_path / "tokenised", "\n".join(BY_LINES))
    embed(tmp_path / "tokenised.npy", tokenised, str(folder))
    assert "raw text" not in capsys.readouterr().err


@pytest.mark.parametrize("rank", [0, 1])
def test_of_several_processes_only_the_first_warns(folder, tmp_path, monkeypatch, capsys, rank):
    monkeypatch.setattr(command, "process_group", lambda: nullcontext(Processes(rank, 2)))
    monkeypatch.setattr(EmbeddingJob, "write", lambda self, source, *_: [*source.lines])
    embed(tmp_path / "out.npy", write(tmp_path / "text"), str(folder))
    assert ("raw text" in capsys.readouterr().err) == (rank == 0)


def test_mistakes_are_one_sentence(folder, tmp_path):
    text, output = write(tmp_path / "text"), tmp_path / "out.npy"
    with pytest.raises(ValueError, match="`split` is 'welsh' but must be one of none,"):
        embed(output, text, str(folder), split="welsh")
    with pytest.raises(ValueError, match="`paragraphs` is 'page' but must be line or blank"):
        embed(output, text, str(folder), paragraphs="page")
    with pytest.raises(ValueError, match="`batch_size` is -1 but must be at least 1"):
        embed(output, text, str(folder), batch_size=-1)
    assert not output.exists() and not list(tmp_path.glob(".out*"))
