"""Dataclasses as options of a script."""

import sys
from dataclasses import dataclass

import pytest

from elmo_hf.training import option, parse_settings


@dataclass(kw_only=True)
class Settings:
    size: int = option(0, help="how large")
    name: str | None = option(None, help="how it is called")
    loud: bool = option(False, help="make noise")
    kind: str = option("a", help="which kind", choices=["a", "b"])
    folder: str = option(help="where it is")


@dataclass(kw_only=True)
class Size:
    _argument_group_name = "size"

    width: int = option(2, help="how wide")


@dataclass(kw_only=True)
class Place:
    _argument_group_name = "place"

    folder: str = option(help="where it is")


@dataclass(kw_only=True)
class Joined(Size, Place):
    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError("too narrow")


@dataclass
class Others:
    count: int = option(3, help="how many")


def parse(monkeypatch, kinds, *arguments: str):
    monkeypatch.setattr(sys, "argv", ["script.py", *arguments])
    return parse_settings(kinds, "What it does.\n\n    an example")


def test_one_class_gives_one_object_and_several_give_as_many(monkeypatch):
    one = parse(monkeypatch, Settings, "--folder", "x", "--loud", "--kind", "b")
    assert one == Settings(folder="x", loud=True, kind="b")
    both = parse(monkeypatch, (Settings, Others), "--folder", "x", "--count", "4")
    assert both == (Settings(folder="x"), Others(4))


def test_a_class_that_is_made_of_groups_has_their_headings(monkeypatch, capsys):
    assert parse(monkeypatch, Joined, "--folder", "x") == Joined(folder="x")
    with pytest.raises(ValueError, match="too narrow"):
        parse(monkeypatch, Joined, "--folder", "x", "--width", "0")
    with pytest.raises(SystemExit):
        parse(monkeypatch, Joined, "--help")
    text = capsys.readouterr().out
    assert text.index("size:") < text.index("how wide") < text.index("place:")


def test_help_is_the_description_and_every_option(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        parse(monkeypatch, (Settings, Others), "--help")
    text = capsys.readouterr().out
    assert "What it does.\n\n    an example" in text
    for line in ("how large (default: 0)", "how many (default: 3)", "which kind (default: a)"):
        assert line in text
    assert "make noise (default" not in text and "how it is called (default" not in text


def test_what_is_misspelt_or_missing_is_refused(monkeypatch, capsys):
    for arguments in (["--folder", "x", "--sise", "1"], ["--size", "1"]):
        with pytest.raises(SystemExit) as ended:
            parse(monkeypatch, Settings, *arguments)
        assert ended.value.code == 2
    errors = capsys.readouterr().err
    assert "unrecognized arguments: --sise 1" in errors and "required: --folder" in errors


def test_no_file_beside_the_script_is_read(monkeypatch, tmp_path):
    (tmp_path / "script.args").write_text("--count 9")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "script.py")])
    assert parse_settings(Others, None) == Others(3)
