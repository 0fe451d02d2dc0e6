"""Errors of the system and of libraries in one sentence."""

import errno
import shutil

import pytest

from elmo_hf.system import failures
from elmo_hf.system.failures import describe, explain_failure, first_line, write_failure


def test_the_first_line_of_an_error():
    assert first_line(ValueError("\nit broke.\nsomewhere deep inside")) == "it broke"
    assert first_line(RuntimeError()) == "RuntimeError"


def test_why_a_write_failed(tmp_path, monkeypatch):
    denied = PermissionError(errno.EACCES, "Permission denied", "file")
    assert write_failure(denied, tmp_path) == "Permission denied"
    assert write_failure(RuntimeError("first line\nsecond"), tmp_path) == "first line"
    assert write_failure(RuntimeError(), tmp_path) == "RuntimeError"
    usage = shutil.disk_usage(tmp_path)._replace(free=failures.ROOM - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    assert write_failure(RuntimeError("libraries say anything"), tmp_path) == "the disk is full"


def test_a_failed_write_is_cleaned_up_and_explained(tmp_path):
    half = tmp_path / "half"

    def explain(reason: str) -> str:
        return f"{reason}, {half.exists()}"

    with (
        pytest.raises(OSError, match="^it broke, False$"),
        explain_failure(tmp_path, explain, half.unlink),
    ):
        half.touch()
        raise RuntimeError("it broke")
    with pytest.raises(TypeError, match="a mistake"), explain_failure(tmp_path, explain):
        raise TypeError("a mistake")


def test_every_error_has_a_message():
    assert describe(ValueError("Name a file.")) == "Name a file."
    assert "not enough memory" in describe(MemoryError())
    assert describe(ImportError()) == "ImportError."
    denied = PermissionError(errno.EACCES, "Permission denied", "some/file")
    assert describe(denied) == "'some/file' cannot be used: Permission denied."
