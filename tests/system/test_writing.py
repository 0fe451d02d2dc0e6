"""Files and folders are there whole or not at all, and nothing is replaced unasked."""

import errno
import os
import shutil
import stat

import pytest

from elmo_hf.system import writing
from elmo_hf.system.writing import new_file, new_folder, refuse_existing, write_failure


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


def test_only_an_empty_folder_is_no_obstacle(tmp_path):
    refuse_existing(tmp_path / "nothing", overwrite=False)
    (tmp_path / "folder").mkdir()
    refuse_existing(tmp_path / "folder", overwrite=False)
    (tmp_path / "folder" / "file").write_text("")
    for path in (tmp_path / "folder", tmp_path / "folder" / "file"):
        with pytest.raises(FileExistsError, match="pass --overwrite"):
            refuse_existing(path, overwrite=False)
        refuse_existing(path, overwrite=True)


def test_why_a_write_failed(tmp_path, monkeypatch):
    denied = PermissionError(errno.EACCES, "Permission denied", "file")
    assert write_failure(denied, tmp_path) == "Permission denied"
    assert write_failure(RuntimeError("first line\nsecond"), tmp_path) == "first line"
    assert write_failure(RuntimeError(), tmp_path) == "RuntimeError"
    usage = shutil.disk_usage(tmp_path)._replace(free=writing.ROOM - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    assert write_failure(RuntimeError("libraries say anything"), tmp_path) == "the disk is full"
