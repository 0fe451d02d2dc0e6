"""A folder goes on with the run it holds, and with no other."""

import copy
import json

import pytest
from datasets import Dataset
from helpers.tiny import tiny_config

from elmo_hf import ElmoForTokenClassification, ElmoModel
from elmo_hf.training.checkpoints import begin_run, seal
from elmo_hf.training.identity import NAME, describe_run, find_difference, hash_sentences

SETTINGS = {"learning_rate": 0.1, "seed": 42, "mixed_precision": None}
CONTENTS = {"training text": "1234", "validation text": "5678"}


def identity(**changes) -> dict:
    labels = {0: "DET", 1: "NOUN"}
    config = tiny_config(id2label=labels, label2id={label: n for n, label in labels.items()})
    described = describe_run("tagger", ElmoForTokenClassification(config), SETTINGS, CONTENTS, 1)
    described = copy.deepcopy(described)
    for part, change in changes.items():
        if isinstance(described[part], dict):
            described[part].update(change)
        else:
            described[part] = change
    return described


def test_the_same_run_goes_on(tmp_path):
    assert begin_run(tmp_path, identity(), overwrite=False) is None
    (tmp_path / "checkpoint-3").mkdir()
    seal(tmp_path / "checkpoint-3", identity())
    assert begin_run(tmp_path, identity(), overwrite=False) == tmp_path / "checkpoint-3"


@pytest.mark.parametrize(
    "change, difference",
    [
        ({"kind": "language model"}, "another kind of model (tagger)"),
        ({"settings": {"learning_rate": 0.2}}, "learning_rate 0.1, not 0.2"),
        ({"settings": {"mixed_precision": "bf16"}}, "mixed_precision None, not 'bf16'"),
        ({"settings": {"number of processes": 2}}, "number of processes 1, not 2"),
        ({"settings": {"number of trained weights": 9}}, "number of trained weights 5748, not 9"),
        ({"model": {"cell_size": 99}}, "cell_size 12, not 99"),
        ({"labels": ["DET", "NOUNS"]}, r"other labels ('NOUN' is missing)"),
        ({"labels": ["ADJ", "DET", "NOUN"]}, r"other labels ('ADJ' is new)"),
        ({"labels": ["NOUN", "DET"]}, "its labels in another order"),
        ({"contents": {"training text": "4321"}}, "another training text"),
    ],
)
@pytest.mark.parametrize("place", ["folder", "checkpoint"])
def test_another_run_is_refused_until_it_may_be_overwritten(tmp_path, place, change, difference):
    begin_run(tmp_path, identity(), overwrite=False)
    checkpoint = tmp_path / "checkpoint-3"
    checkpoint.mkdir()
    seal(checkpoint, identity())
    if place == "checkpoint":
        (tmp_path / NAME).unlink()
    (tmp_path / "notes.txt").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError) as raised:
        begin_run(tmp_path, identity(**change), overwrite=False)
    assert str(raised.value) == (
        f"{str(tmp_path)!r} holds a run with {difference}; pass --overwrite_output_dir to train "
        "anew, or choose another --output_dir."
    )
    assert sorted(tmp_path.rglob("*")) == before
    assert begin_run(tmp_path, identity(**change), overwrite=True) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", NAME]
    begin_run(tmp_path, identity(**change), overwrite=False)


def test_a_setting_that_only_one_version_has_is_no_difference(tmp_path):
    begin_run(tmp_path, identity(settings={"old": 1}, model={"old": 2}), overwrite=False)
    begin_run(tmp_path, identity(settings={"new": 1}, model={"new": 2}), overwrite=False)


def test_a_frozen_bilm_makes_another_run():
    model = ElmoForTokenClassification(tiny_config())
    before = describe_run("tagger", model, SETTINGS, CONTENTS, 1)
    model.freeze_bilm()
    after = describe_run("tagger", model, SETTINGS, CONTENTS, 1)
    assert "number of trained weights" in str(find_difference(before, after))


def test_other_versions_are_reported_and_not_refused(tmp_path, capsys):
    begin_run(tmp_path, identity(versions={"torch": "1.0"}), overwrite=False)
    assert capsys.readouterr().err == ""
    begin_run(tmp_path, identity(), overwrite=False)
    assert "began with other versions (torch 1.0, now 2." in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", '{"kind": 1}', "[" * 100_000, '{"settings": 3}'])
def test_a_damaged_identity_is_one_sentence(tmp_path, text):
    (tmp_path / NAME).write_text(text)
    with pytest.raises(ValueError, match=r"run.json' is damaged; pass --overwrite_output_dir"):
        begin_run(tmp_path, identity(), overwrite=False)


def test_a_damaged_identity_beside_a_checkpoint_is_written_again(tmp_path):
    begin_run(tmp_path, identity(), overwrite=False)
    (tmp_path / "checkpoint-3").mkdir()
    seal(tmp_path / "checkpoint-3", identity())
    whole = (tmp_path / NAME).read_text()
    (tmp_path / NAME).write_text(whole[:100])
    assert begin_run(tmp_path, identity(), overwrite=False) == tmp_path / "checkpoint-3"
    assert (tmp_path / NAME).read_text() == whole


def test_an_identity_is_readable_and_names_no_path(tmp_path):
    config = tiny_config()
    config._name_or_path = "/home/somebody/elmo"
    described = describe_run("tagger", ElmoModel(config), SETTINGS, CONTENTS, 1)
    assert "somebody" not in json.dumps(described)
    assert described["versions"].keys() >= {"elmo_hf", "torch", "transformers"}


def test_hashes_of_sentences_tell_words_from_labels():
    rows = {"tokens": [["a", "b"], ["c"]], "labels": [[0, 1], [1]], "line": [1, 2]}
    first = hash_sentences(Dataset.from_dict(rows))
    assert hash_sentences(Dataset.from_dict({**rows, "line": [3, 4]})) == first
    for change in ({"tokens": [["a", "c"], ["b"]]}, {"labels": [[1, 0], [1]]}):
        assert hash_sentences(Dataset.from_dict({**rows, **change})) != first
