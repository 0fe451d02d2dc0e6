"""Raw text for pretraining: split once, used again, never that of another text."""

import gzip
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from datasets import Dataset, DatasetDict
from helpers.launch import assert_same_weights, kill, load_script, run, start
from helpers.tiny import PRETRAINING_SHAPE

from elmo_hf import ElmoTokenizer
from elmo_hf.pretraining import Pretraining, PretrainingSettings, read_splits, split_text
from elmo_hf.text_splitting import moses_tokenizer
from elmo_hf.training import training_run

SCRIPT = "run_pretrain.py"
RAW = "The dog didn't see it. \"Mr. Cat\" did!\nIt isn't over\n\nyet.\n"
LINES = ["The dog did n't see it .", '" Mr. Cat " did !', "It is n't over", "yet ."]


@pytest.fixture
def settings(tmp_path) -> PretrainingSettings:
    """A raw training and a raw validation text, and a model that trains in a moment."""
    (tmp_path / "raw.txt").write_text(RAW * 20)
    (tmp_path / "valid.txt").write_text(RAW)
    (tmp_path / "shape.json").write_text(json.dumps(PRETRAINING_SHAPE))
    return PretrainingSettings(
        train_file=str(tmp_path / "raw.txt"),
        validation_file=str(tmp_path / "valid.txt"),
        split="english",
        config_overrides=tmp_path / "shape.json",
        per_device_train_batch_size=4,
        num_train_epochs=2,
        checkpointing_steps=5,
        output_dir=tmp_path / "out",
    )


def train(settings: PretrainingSettings) -> None:
    with training_run("test", settings) as accelerator:
        load_script(SCRIPT).pretrain(settings, accelerator)


def made(settings: PretrainingSettings, split: str = "train") -> Path:
    return settings.output_dir / "split-text" / f"{split}.txt"


def lines_of(settings: PretrainingSettings, split: str = "train") -> list[str]:
    return made(settings, split).read_text(encoding="utf-8").splitlines()


@pytest.fixture
def splittings(monkeypatch) -> list[str]:
    """Which texts were split, in their order."""
    found = []
    write = split_text.write_sentences

    def counted(path, *rest):
        found.append(path.stem)
        write(path, *rest)

    monkeypatch.setattr(split_text, "write_sentences", counted)
    return found


def test_files_globs_and_gzip(settings, tmp_path):
    (tmp_path / "raw-1.txt.gz").write_bytes(gzip.compress(RAW.encode()))
    (tmp_path / "raw-2.txt").write_text("The end.")
    splits = read_splits(replace(settings, train_file=str(tmp_path / "raw-*")))
    assert lines_of(settings) == [*LINES, "The end ."] and lines_of(settings, "validation") == LINES
    assert splits.train.num_sentences == 5 and splits.word_counts["n't"] == 2
    assert splits.test is None and splits.validation.num_words == 19
    assert sorted(path.name for path in made(settings).parent.iterdir()) == [
        *("train.json", "train.txt", "validation.json", "validation.txt")
    ]


def test_paragraphs_that_end_at_blank_lines(settings):
    read_splits(replace(settings, paragraphs="blank"))
    assert lines_of(settings, "validation") == [*LINES[:2], "It is n't over", "yet ."]
    read_splits(replace(settings, split="whitespace", paragraphs="blank"))
    assert lines_of(settings, "validation") == [" ".join(RAW.rpartition("\n\n")[0].split()), "yet."]


def test_rows_of_a_dataset(settings, tmp_path):
    rows = {"train": RAW.splitlines(keepends=True), "test": [RAW]}
    splits = {split: Dataset.from_dict({"body": texts}) for split, texts in rows.items()}
    DatasetDict(splits).save_to_disk(tmp_path / "rows")
    files = {"train_file": None, "validation_file": None, "dataset_name": str(tmp_path / "rows")}
    found = read_splits(replace(settings, **files, text_column="body"))
    assert lines_of(settings) == lines_of(settings, "test") == LINES
    assert found.validation is None and found.test.num_sentences == 4
    DatasetDict(test=splits["test"]).save_to_disk(tmp_path / "rows")
    with pytest.raises(ValueError, match="has no split named train"):
        read_splits(replace(settings, **files))


def test_text_is_split_once(settings, splittings, tmp_path):
    read_splits(settings)
    # the same text in another file
    (tmp_path / "raw.txt.gz").write_bytes(gzip.compress((tmp_path / "raw.txt").read_bytes()))
    read_splits(replace(settings, train_file=str(tmp_path / "raw.txt.gz")))
    assert splittings == ["train", "validation"]
    read_splits(replace(settings, overwrite_output_dir=True))
    assert splittings == ["train", "validation"] * 2


@pytest.mark.parametrize(
    "damage", ["text", "record", "nonsense", "lost text", "killed before", "killed after", "source"]
)
def test_what_is_damaged_or_of_another_text_is_made_anew(settings, splittings, tmp_path, damage):
    read_splits(settings)
    path = made(settings)
    record, expected = path.with_suffix(".json"), path.read_text()
    if damage == "text":
        path.write_text(expected.replace("dog", "dig"))
    elif damage == "record":
        record.write_text(record.read_text()[:-9])
    elif damage == "nonsense":
        record.write_text("{}")
    elif damage == "lost text":
        path.unlink()
    elif damage == "killed before":
        path.rename(path.with_name(".train.txt.part"))
        record.unlink()
    elif damage == "killed after":
        path.write_text("Of another text .\n")
    else:
        (tmp_path / "raw.txt").write_text(RAW)
        expected = "\n".join(LINES) + "\n"
    read_splits(settings)
    assert splittings == ["train", "validation", "train"] and path.read_text() == expected
    assert {file.suffix for file in path.parent.iterdir()} == {".json", ".txt"}


def test_a_file_of_somebody_else_is_not_replaced(settings):
    made(settings).parent.mkdir(parents=True)
    made(settings).write_text("mine")
    with pytest.raises(FileExistsError, match="has no record of what it was made of; move it away"):
        read_splits(settings)
    assert made(settings).read_text() == "mine"


def test_a_text_without_words_leaves_nothing(settings, tmp_path):
    (tmp_path / "raw.txt").write_text("\n \n")
    with pytest.raises(ValueError, match="There is no sentence in .*raw.txt"):
        read_splits(settings)
    assert not list(made(settings).parent.iterdir())


def test_a_missing_library_is_one_sentence(settings, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    # it is kept once it was loaded
    moses_tokenizer.cache_clear()
    with pytest.raises(ImportError, match=r"requires sacremoses: pip install 'elmo_hf\[moses\]'"):
        read_splits(replace(settings, split="moses"))


def interrupt(monkeypatch, step: int) -> None:
    take = Pretraining.train_step

    def take_or_stop(run):
        if run.progress.step == step:
            raise KeyboardInterrupt
        return take(run)

    monkeypatch.setattr(Pretraining, "train_step", take_or_stop)


@pytest.mark.program
def test_a_raw_run_is_that_of_the_split_text_and_resumes(
    settings, splittings, tmp_path, monkeypatch
):
    read_splits(settings)
    for split in ("train", "validation"):
        made(settings, split).rename(tmp_path / f"{split}.txt")
    files = {f"{split}_file": str(tmp_path / f"{split}.txt") for split in ("train", "validation")}
    train(replace(settings, **files, split="none", output_dir=tmp_path / "beforehand"))
    with monkeypatch.context() as patched:
        interrupt(patched, step=7)
        with pytest.raises(KeyboardInterrupt):
            train(settings)
    splittings.clear()
    train(settings)
    assert not splittings
    assert_same_weights(settings.output_dir, tmp_path / "beforehand")
    saved = {
        folder: ElmoTokenizer.from_pretrained(tmp_path / folder).word_splitter
        for folder in ("out", "beforehand")
    }
    assert saved == {"out": "english", "beforehand": "whitespace"}


@pytest.mark.program
def test_only_the_same_text_goes_on(settings, splittings, tmp_path):
    settings = replace(settings, num_train_epochs=1, test_file=settings.validation_file)
    train(settings)
    weights = (settings.output_dir / "model.safetensors").read_bytes()
    kept = made(settings).read_bytes()
    splittings.clear()
    for change, difference in (
        ({"split": "moses"}, "split 'english', not 'moses'"),
        ({"paragraphs": "blank"}, "paragraphs 'line', not 'blank'"),
        # its words are others
        ({"split": "none"}, "number of trained weights .*"),
        ({"train_file": str(tmp_path / "valid.txt")}, "another training text"),
        ({"validation_file": str(tmp_path / "raw.txt")}, "another validation text"),
    ):
        with pytest.raises(ValueError, match=f"holds a run with {difference}; pass --overwrite"):
            train(replace(settings, **change))
    # that of the test may change
    train(replace(settings, test_file=settings.train_file))
    assert splittings == ["test"] and made(settings).read_bytes() == kept
    assert (settings.output_dir / "model.safetensors").read_bytes() == weights

    # a run on tokenised text removes what a raw one has split, and continues from a model as it is
    base = settings.output_dir.rename(tmp_path / "base")
    made(settings).parent.mkdir(parents=True)
    files = {f"{split}_file": str(base / "split-text" / "train.txt") for split in ("train", "test")}
    tokenised = replace(settings, **files, validation_file=None, split="none", max_train_steps=1)
    train(replace(tokenised, model_name_or_path=str(base), overwrite_output_dir=True))
    assert not made(settings).parent.exists()
    assert ElmoTokenizer.from_pretrained(settings.output_dir).word_splitter == "english"
    with pytest.raises(ValueError, match="is what the training starts from, and would be lost"):
        train(replace(settings, train_file=str(base / "split-text" / "*.txt"), output_dir=base))


@pytest.mark.program
def test_a_run_killed_while_splitting_begins_again_in_two_processes(settings, tmp_path):
    (tmp_path / "raw.txt").write_text(RAW * 20_000)
    arguments = ["--train_file", settings.train_file, "--split", "english", "--max_train_steps", 3]
    arguments += ["--config_overrides", settings.config_overrides, "--vocab_file", tmp_path / "v"]
    arguments += ["--output_dir", settings.output_dir]
    (tmp_path / "v").write_text("<S>\n</S>\n<UNK>\nthe\n")
    process = start(SCRIPT, arguments)
    part = made(settings).with_name(".train.txt.part")
    while process.poll() is None and not (part.exists() and part.stat().st_size):
        time.sleep(0.02)
    kill(process)
    assert part.exists() and not made(settings).exists()
    assert not (settings.output_dir / "run.json").exists()
    (tmp_path / "raw.txt").write_text(RAW * 50)
    assert "950 words in 200 sentences" in run(SCRIPT, arguments, processes=2)
    assert lines_of(settings) == LINES * 50 and not part.exists()
