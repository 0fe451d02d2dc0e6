"""transformers' Trainer is as careful with its runs as our own loops."""

import shutil
from collections import namedtuple

import pytest
import torch
from helpers.tiny import tiny_config
from safetensors import SafetensorError
from transformers import Trainer, TrainerControl, TrainerState, TrainingArguments

from elmo_hf import ElmoModel
from elmo_hf.system.checksums import find_damage
from elmo_hf.system.processes import Processes
from elmo_hf.training import trainer_errors
from elmo_hf.training.checkpoints import seal
from elmo_hf.training.identity import NAME, describe_run
from elmo_hf.training.trainer import RunCallback

IDENTITY = describe_run("test", ElmoModel(tiny_config()), {}, {}, 1)


@pytest.fixture
def callback():
    return RunCallback(IDENTITY, Processes())


def trainer(folder) -> Trainer:
    args = TrainingArguments(output_dir=str(folder), use_cpu=True)
    return Trainer(torch.nn.Linear(2, 2), args)


def test_a_checkpoint_gets_an_identity_and_checksums(callback, tmp_path):
    checkpoint = tmp_path / "checkpoint-7"
    checkpoint.mkdir()
    (checkpoint / "rng_state.pth").write_text("random")
    args = TrainingArguments(output_dir=str(tmp_path), use_cpu=True)
    model = torch.nn.Linear(2, 2)
    callback.on_save(args, TrainerState(global_step=7), TrainerControl(), model=model)
    assert find_damage(checkpoint) is None and (checkpoint / NAME).exists()
    (checkpoint / "rng_state.pth").unlink()
    assert find_damage(checkpoint) == "rng_state.pth is missing"


@pytest.mark.parametrize("kind", [OSError, RuntimeError, SafetensorError])
def test_a_full_disk_is_one_sentence(kind, tmp_path, monkeypatch):
    for step in (3, 6):
        (tmp_path / f"checkpoint-{step}").mkdir()
    seal(tmp_path / "checkpoint-3", IDENTITY)
    usage = namedtuple("usage", "total used free")(1 << 40, 1 << 40, 0)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(OSError) as raised, trainer_errors(trainer(tmp_path)):
        raise kind("it broke\nsomewhere deep inside")
    assert str(raised.value) == (
        "The run could not be saved: the disk is full. The last good checkpoint is checkpoint-3; "
        "to resume from it, repeat the command without --overwrite_output_dir."
    )
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-3"]


def test_other_errors_are_not_taken_for_a_full_disk(tmp_path):
    with pytest.raises(RuntimeError, match="shapes differ"), trainer_errors(trainer(tmp_path)):
        raise RuntimeError("shapes differ")


@pytest.mark.parametrize("damage", ["none", "a flipped bit", "gone"])
def test_the_best_checkpoint_is_looked_for_in_the_folder_and_checked(callback, tmp_path, damage):
    """The folder was moved since, and what the Trainer wrote down is the old path."""
    best = tmp_path / "checkpoint-3"
    best.mkdir()
    (best / "model.safetensors").write_text("weights")
    seal(best, IDENTITY)
    if damage == "a flipped bit":
        (best / "model.safetensors").write_text("weightr")
    if damage == "gone":
        shutil.rmtree(best)
    args = TrainingArguments(output_dir=str(tmp_path), use_cpu=True)
    state = TrainerState(max_steps=9, best_model_checkpoint="/elsewhere/checkpoint-3")
    if damage == "none":
        callback.on_train_begin(args, state, TrainerControl())
        assert state.best_model_checkpoint == str(best)
        return
    with pytest.raises(ValueError, match="The run's best checkpoint, .*; pass --overwrite_output"):
        callback.on_train_begin(args, state, TrainerControl())
