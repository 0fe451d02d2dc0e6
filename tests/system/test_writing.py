"""Files and folders are there whole or not at all, and nothing is replaced unasked."""

import errno
import os
import stat

import pytest
from safetensors import SafetensorError

from elmo_hf.system import writing
from elmo_hf.system.writing import (
    new_file,
    new_folder,
    refuse_existing_file,
    refuse_existing_folder,
)


def test_a_file_appears_at_the_end(tmp_path):
    final = tmp_path / "out.txt"
    with new_file(final) as building:
        building.write_text("new")
        assert building.parent == tmp_path and not final.exists()
    assert final.read_text() == "new" and os.listdir(tmp_path) == ["out.txt"]


def test_a_file_that_fails_leaves_the_old_one(tmp_path):
    final = tmp_path / "out.txt"
    final.write_text("old")
    with pytest.raises(KeyboardInterrupt), new_file(final) as building:
        building.write_text("half")
        raise KeyboardInterrupt
    assert final.read_text() == "old" and os.listdir(tmp_path) == ["out.txt"]


def test_a_file_that_appears_meanwhile_is_not_replaced_unasked(tmp_path):
    final = tmp_path / "out.txt"
    refused = pytest.raises(OSError, match="exists; pass --overwrite to replace it")
    with refused, new_file(final, overwrite=False) as building:
        building.write_text("ours")
        final.write_text("theirs")
    assert final.read_text() == "theirs" and os.listdir(tmp_path) == ["out.txt"]
    with new_file(final) as building:
        building.write_text("ours")
    assert final.read_text() == "ours" and os.listdir(tmp_path) == ["out.txt"]


def test_what_a_killed_run_left_of_a_file_is_used_again(tmp_path):
    final = tmp_path / "out.txt"
    (tmp_path / ".out.txt.part").write_text("half, and longer than what comes")
    with new_file(final) as building:
        # somebody else writes the same file at the same time
        with new_file(final) as other:
            assert other != building
            other.write_text("theirs")
        building.write_text("ours")
    assert final.read_text() == "ours" and os.listdir(tmp_path) == ["out.txt"]


def test_a_folder_that_appears_meanwhile_is_not_replaced_unasked(tmp_path, monkeypatch):
    """Not even after the last look at it."""
    final = tmp_path / "model"
    refuse, looks = writing.refuse_existing_folder, []

    def appears(path, overwrite) -> None:
        refuse(path, overwrite)
        looks.append(path)
        if len(looks) == 3:
            final.mkdir()
            (final / "config.json").write_text("theirs")

    monkeypatch.setattr(writing, "refuse_existing_folder", appears)
    with pytest.raises(OSError), new_folder(final, overwrite=False) as building:
        (building / "config.json").write_text("ours")
    assert (final / "config.json").read_text() == "theirs" and os.listdir(tmp_path) == ["model"]


def test_a_folder_appears_at_the_end(tmp_path):
    final = tmp_path / "deep" / "model"
    with new_folder(final, overwrite=False) as building:
        (building / "config.json").write_text("{}")
        assert not final.exists()
    assert os.listdir(final) == ["config.json"] and os.listdir(final.parent) == ["model"]
    assert stat.S_IMODE(final.stat().st_mode) == 0o755


def test_a_folder_is_replaced_only_when_it_may_be(tmp_path):
    final = tmp_path / "model"
    final.mkdir()
    (final / "old").write_text("old")
    refused = pytest.raises(FileExistsError, match="exists; pass --overwrite to replace it")
    with refused, new_folder(final, overwrite=False):
        raise AssertionError("nothing is written")
    with pytest.raises(KeyboardInterrupt), new_folder(final, overwrite=True) as building:
        (building / "half").write_text("half")
        raise KeyboardInterrupt
    assert os.listdir(final) == ["old"] and os.listdir(tmp_path) == ["model"]
    with new_folder(final, overwrite=True) as building:
        (building / "new").write_text("new")
    assert os.listdir(final) == ["new"] and os.listdir(tmp_path) == ["model"]


def test_what_exists_is_replaced_only_on_request(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("kept")
    (tmp_path / "file").write_text("kept")
    for refuse in (refuse_existing_folder, refuse_existing_file):
        refuse(tmp_path / "nothing", overwrite=False)
        with pytest.raises(FileExistsError, match="pass --overwrite"):
            refuse(tmp_path / "file", overwrite=False)
        refuse(tmp_path / "file", overwrite=True)
    refuse_existing_folder(tmp_path / "folder", overwrite=False)
    with pytest.raises(FileExistsError, match="pass --overwrite"):
        refuse_existing_folder(tmp_path / "full", overwrite=False)
    refuse_existing_folder(tmp_path / "full", overwrite=True)
    for name in ("folder", "full"):
        for overwrite in (False, True):
            with pytest.raises(IsADirectoryError, match="name a file"):
                refuse_existing_file(tmp_path / name, overwrite)


def test_a_file_gets_its_folder(tmp_path):
    with new_file(tmp_path / "new" / "folder" / "file") as building:
        building.write_text("there")
    assert (tmp_path / "new" / "folder" / "file").read_text() == "there"


def test_a_folder_that_cannot_be_swapped_in_leaves_the_old_one(tmp_path, monkeypatch):
    final = tmp_path / "final"
    final.mkdir()
    (final / "file").write_text("old")
    rename = writing.Path.rename

    def fail(self, target):
        if target == final and self.parent == tmp_path:
            raise OSError(errno.EIO, "broken")
        return rename(self, target)

    monkeypatch.setattr(writing.Path, "rename", fail)
    with pytest.raises(OSError, match="broken"), new_folder(final, overwrite=True) as building:
        (building / "file").write_text("new")
    assert (final / "file").read_text() == "old" and os.listdir(tmp_path) == ["final"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize(("mask", "folder", "file"), [(0o022, 0o755, 0o644), (0o077, 0o700, 0o600)])
def test_a_folder_has_the_permissions_of_any_other(tmp_path, mask, folder, file):
    before = os.umask(mask)
    try:
        with new_folder(tmp_path / "new", overwrite=False) as building:
            (building / "private").write_text("")
            (building / "private").chmod(0o600)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == folder
    assert stat.S_IMODE((tmp_path / "new" / "private").stat().st_mode) == file


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path):
    """But nothing that a living run uses, and nothing that only looks similar."""
    final = tmp_path / "m"
    dead = tmp_path / ".m-building-abcd1234"
    dead.mkdir()
    (dead / "half").write_text("half")
    others = [".m-building-backup", ".m-settings", ".mm-building-abcd1234", "m-building-abcd1234"]
    for name in others:
        (tmp_path / name).mkdir()
    with new_folder(final, overwrite=False) as building:
        assert not dead.exists()
        # a second run at the same time
        with new_folder(final, overwrite=False) as other:
            assert building.exists() and other != building
            (other / "file").write_text("first")
        with pytest.raises(FileExistsError), new_folder(final, overwrite=False):
            raise AssertionError("nothing is written")
        (final / "file").unlink()
        (building / "file").write_text("second")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "m"])
    assert (final / "file").read_text() == "second"


def test_a_folder_comes_back_whose_successor_never_came(tmp_path):
    """Killed between the two renames that replace a folder."""
    kept = tmp_path / ".m-old-abcd1234" / "m"
    kept.mkdir(parents=True)
    (kept / "file").write_text("old")
    refused = pytest.raises(FileExistsError, match="exists; pass --overwrite")
    with refused, new_folder(tmp_path / "m", overwrite=False):
        raise AssertionError("nothing is written")
    assert (tmp_path / "m" / "file").read_text() == "old" and os.listdir(tmp_path) == ["m"]


def test_without_locks_nothing_is_taken_for_a_leftover(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "lock_file", lambda file: True)
    (tmp_path / ".m-building-abcd1234").mkdir()
    with new_folder(tmp_path / "m", overwrite=False) as building:
        (building / "file").touch()
    assert sorted(os.listdir(tmp_path)) == [".m-building-abcd1234", "m"]


def test_the_root_is_no_name_for_a_folder(tmp_path, monkeypatch):
    before = os.listdir("/")
    refused = pytest.raises(ValueError, match="'/' is the root of the file system; name a folder")
    with refused, new_folder(writing.Path("/"), overwrite=True):
        raise AssertionError("nothing is written")
    assert os.listdir("/") == before
    (tmp_path / "m" / "below").mkdir(parents=True)
    with new_folder(tmp_path / "m" / "below" / "..", overwrite=True) as building:
        (building / "file").touch()
    assert os.listdir(tmp_path) == ["m"] and os.listdir(tmp_path / "m") == ["file"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), SafetensorError("I/O")])
def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path, error):
    with (
        pytest.raises(OSError, match="m' could not be written: (No space left|I/O)\\.$"),
        new_folder(tmp_path / "m", overwrite=False) as building,
    ):
        (building / "half").touch()
        raise error
    assert not os.listdir(tmp_path)
