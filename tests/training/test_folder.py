"""An output folder serves one run at a time, and never loses a model unasked."""

import subprocess
import sys

import pytest

from elmo_hf.training import claimed_folder
from elmo_hf.training.folder import clear


def test_a_new_folder_and_one_with_other_files_are_fine(tmp_path):
    with claimed_folder(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "notes.txt").touch()
    with claimed_folder(tmp_path):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "notes.txt"]


@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "checkpoint-3", "a.hdf5", "README.md"]
)
def test_a_folder_with_files_of_somebody_else_is_refused(tmp_path, name):
    (tmp_path / name).touch()
    message = rf"not of a run in it, '{name}'; pass --overwrite_output_dir"
    with pytest.raises(FileExistsError, match=message), claimed_folder(tmp_path):
        pytest.fail("It may not be used.")
    with claimed_folder(tmp_path, overwrite=True):
        pass
    # nothing is removed before the run knows that it can begin
    assert (tmp_path / name).exists()
    (tmp_path / "run.json").touch()
    with claimed_folder(tmp_path):
        pass


@pytest.mark.parametrize(
    "place", [".", "checkpoint-1", "predictions-test.conllu", "split-text/*.txt"]
)
def test_what_a_training_starts_from_is_never_overwritten(tmp_path, place):
    (tmp_path / "checkpoint-1").mkdir()
    (tmp_path / "split-text").mkdir()
    (tmp_path / "split-text" / "train.txt").touch()
    (tmp_path / "predictions-test.conllu").touch()
    inputs = ["pos", None, 3, str(tmp_path / place)]
    with (
        pytest.raises(ValueError, match="is what the training starts from, and would be lost"),
        claimed_folder(tmp_path / "x" / "..", inputs, overwrite=True),
    ):
        pytest.fail("It may not be used.")


def test_a_cache_in_the_folder_is_no_obstacle(tmp_path):
    (tmp_path / "features").mkdir()
    (tmp_path / "split-text").mkdir()
    with claimed_folder(tmp_path):
        pass
    with claimed_folder(tmp_path, [tmp_path / "features"], overwrite=True):
        pass


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(NotADirectoryError, match="is a file; choose another"),
        claimed_folder(tmp_path / "file"),
    ):
        pytest.fail("It may not be used.")


def test_only_files_of_a_run_are_cleared(tmp_path):
    for name in ("run.json", "model.safetensors", "report.html", "notes.txt", "checkpoints"):
        (tmp_path / name).touch()
    (tmp_path / "checkpoint-3").mkdir()
    (tmp_path / "checkpoint-3" / "states.pt").touch()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (tmp_path / "checkpoint-4").symlink_to(outside)
    (tmp_path / "split-text").mkdir()
    clear(tmp_path, keep=["split-text"])
    assert (tmp_path / "split-text").exists() and not (tmp_path / "run.json").exists()
    clear(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoints",
        "notes.txt",
        "outside",
    ]
    assert (outside / "kept").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot lock a folder")
def test_one_run_at_a_time_and_a_killed_run_gives_the_folder_back(tmp_path):
    program = (
        "import sys, time; from pathlib import Path; from elmo_hf.training import claimed_folder\n"
        "with claimed_folder(Path(sys.argv[1])):\n"
        "    print('claimed', flush=True); time.sleep(600)"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None and other.stdout.readline() == "claimed\n"
    with (
        pytest.raises(BlockingIOError, match="Another run is training in"),
        claimed_folder(tmp_path),
    ):
        pytest.fail("It may not be used.")
    other.kill()
    other.communicate()
    with claimed_folder(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []
