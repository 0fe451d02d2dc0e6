"""What a run saves is there whole or not at all, and a failure is one sentence."""

import contextlib
import os
import pickle
import shutil
from collections import namedtuple

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from helpers.tiny import tiny_config
from safetensors import SafetensorError

from elmo_hf import ElmoModel, ElmoTokenizer
from elmo_hf.system.checksums import find_damage, write_checksums
from elmo_hf.training import Checkpoints, save_model
from elmo_hf.training.checkpoints import newest_whole, seal
from elmo_hf.training.identity import describe_run

IDENTITY = describe_run(
    "test", ElmoModel(tiny_config()), {"learning_rate": 0.1}, {"training text": "abc"}, 1
)


class Counter:
    """Something with a state."""

    def __init__(self) -> None:
        self.count = 0

    def state_dict(self) -> dict:
        return dict(vars(self))

    def load_state_dict(self, state: dict) -> None:
        vars(self).update(state)


@pytest.fixture
def run(tmp_path):
    """Checkpoints of a counter, and the counter."""
    accelerator = Accelerator(cpu=True, project_dir=tmp_path)
    counter = Counter()
    yield Checkpoints(accelerator, tmp_path, IDENTITY, counter), counter
    accelerator.free_memory()


def test_the_last_two_are_kept_in_the_order_of_their_steps(run, tmp_path):
    checkpoints, counter = run
    assert not checkpoints.resume()
    for step in (8, 9, 10):
        counter.count = step
        checkpoints.save(step)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["checkpoint-10", "checkpoint-9", "run.json"]
    # unfinished, from a run that was killed
    (tmp_path / ".checkpoint-11.part").mkdir()
    counter.count = 0
    assert checkpoints.resume() and counter.count == 10


@pytest.mark.parametrize("kind", [OSError, RuntimeError, SafetensorError])
@pytest.mark.parametrize("free, reason", [(0, "the disk is full"), (1 << 40, "it broke")])
def test_a_failed_write_is_one_sentence(kind, free, reason, run, tmp_path, monkeypatch):
    checkpoints, _ = run
    checkpoints.save(1)

    def fail(folder: str) -> None:
        (tmp_path / ".checkpoint-2.part").mkdir()
        raise kind("it broke\nsomewhere deep inside")

    monkeypatch.setattr(checkpoints.accelerator, "save_state", fail)
    usage = namedtuple("usage", "total used free")(1 << 40, 0, free)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(OSError) as raised:
        checkpoints.save(2)
    assert str(raised.value) == (
        f"The checkpoint of step 2 could not be written ({reason}). The last good checkpoint is "
        "checkpoint-1; to resume from it, repeat the command without --overwrite_output_dir."
    )
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-1"]


def test_a_mistake_of_ours_is_not_taken_for_a_full_disk(run, tmp_path, monkeypatch):
    def fail(folder: str) -> None:
        raise TypeError("a mistake")

    monkeypatch.setattr(run[0].accelerator, "save_state", fail)
    with pytest.raises(TypeError, match="a mistake"):
        run[0].save(1)


def test_a_model_is_saved_beside_what_is_there(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".model.part").mkdir()
    (tmp_path / ".model.part" / "half").write_text("of a killed run")
    model = ElmoModel(tiny_config())
    save_model(model, tmp_path)
    loaded = ElmoModel.from_pretrained(tmp_path)
    for name, weight in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], weight)
    width = model.config.max_characters_per_token
    assert ElmoTokenizer.from_pretrained(tmp_path).max_characters_per_token == width
    assert (tmp_path / "notes.txt").read_text() == "mine" and not list(tmp_path.glob(".*"))
    assert not (tmp_path / "half").exists()


@pytest.mark.parametrize("damage", ["none", "changed", "gone"])
def test_the_kept_model_is_loaded_only_as_it_was_saved(run, tmp_path, damage):
    checkpoints, _ = run
    saved = save_model(ElmoModel(tiny_config()), tmp_path)
    weights = tmp_path / "model.safetensors"
    if damage == "none":
        assert isinstance(checkpoints.load_model(ElmoModel, saved), ElmoModel)
        return
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.unlink()
    if damage == "changed":
        weights.write_bytes(content)
    with pytest.raises(ValueError, match="is missing, or has changed since the run saved it; pass"):
        checkpoints.load_model(ElmoModel, saved)


def test_too_little_memory_is_no_reason_to_remove_a_checkpoint(run, monkeypatch):
    checkpoints, _ = run
    checkpoints.save(1)

    def fail(path: str) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(checkpoints.accelerator, "load_state", fail)
    with pytest.raises(torch.OutOfMemoryError):
        checkpoints.resume()


@pytest.mark.parametrize("text", ["[1]", '["states.pt"]', "[" * 100_000, '{"states.pt": "1"}'])
def test_checksums_that_are_none_are_damage(tmp_path, text):
    (tmp_path / "states.pt").touch()
    (tmp_path / "checksums.json").write_text(text)
    assert find_damage(tmp_path) == "checksums.json is missing or damaged"


def test_a_link_in_a_checkpoint_is_not_followed(tmp_path):
    (tmp_path / "states.pt").write_text("state")
    write_checksums(tmp_path)
    (tmp_path / "states.pt").unlink()
    (tmp_path / "states.pt").symlink_to("/dev/zero")
    assert find_damage(tmp_path) == "states.pt is a link"


def test_a_checkpoint_without_checksums_was_not_finished(tmp_path):
    assert newest_whole(tmp_path) is None
    for step in (9, 10, 11):
        (tmp_path / f"checkpoint-{step}").mkdir()
    for step in (9, 10):
        seal(tmp_path / f"checkpoint-{step}", IDENTITY)
    assert newest_whole(tmp_path) == tmp_path / "checkpoint-10"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-10", "checkpoint-9"]


class Exploit:
    """Runs code when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize("name", ["states.pt", "custom_checkpoint_0.pkl", "random_states_0.pkl"])
@pytest.mark.parametrize("how", ["pickle", "torch"])
def test_a_strangers_checkpoint_runs_no_code(run, tmp_path, name, how):
    checkpoints, _ = run
    checkpoints.save(1)
    folder, mark = tmp_path / "checkpoint-1", tmp_path / "executed"
    with (folder / name).open("wb") as file:
        (pickle.dump if how == "pickle" else torch.save)(Exploit(mark), file)
    # whoever can put a file there can put its checksum there, too
    write_checksums(folder)
    with contextlib.suppress(ValueError):
        checkpoints.resume()
    assert not mark.exists()


@pytest.mark.parametrize("damage", ["truncated", "flipped", "deleted", "added"])
@pytest.mark.parametrize("name", ["states.pt", "random_states_0.pkl", "checksums.json"])
def test_a_damaged_checkpoint_gives_way_to_the_older_one(run, tmp_path, capsys, name, damage):
    checkpoints, counter = run
    for step in (1, 2):
        counter.count = step
        checkpoints.save(step)
    file = tmp_path / "checkpoint-2" / name
    content = file.read_bytes()
    if damage == "truncated":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        place = len(content) // 2
        file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    elif damage == "deleted":
        file.unlink()
    else:
        (tmp_path / "checkpoint-2" / "more").write_text("from elsewhere")
    assert checkpoints.resume() and counter.count == 1
    assert "checkpoint-2 cannot be used" in capsys.readouterr().err
    # the step is saved anew, and what was damaged can still be looked at
    counter.count = 2
    checkpoints.save(2)
    counter.count = 0
    assert checkpoints.resume() and counter.count == 2
    assert (tmp_path / "damaged-checkpoint-2").is_dir()


def test_numbers_of_numpy_are_saved_as_numbers(run):
    checkpoints, counter = run
    counter.figures = {"f1": np.float64(0.5), "list": [np.int64(3), (1, 2)]}
    checkpoints.save(1)
    counter.figures = None
    assert checkpoints.resume() and counter.figures == {"f1": 0.5, "list": [3, [1, 2]]}
