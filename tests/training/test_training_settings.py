"""Dataclasses as options of a script."""

import math
import re
import sys
from dataclasses import dataclass

import pytest

from elmo_hf.training import option, parse_settings
from elmo_hf.training.settings import SEEDS, check_values


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


@dataclass(kw_only=True)
class Bounded:
    steps: int | None = option(None, help="how many", at_least=1)
    share: float = option(0.5, help="how much", at_least=0, below=1)
    rate: float = option(1e-3, help="how fast", above=0)
    seed: int = option(42, help="where it starts", **SEEDS)
    kind: str = option("a", help="which kind", choices=["a", "b"])

    def __post_init__(self) -> None:
        check_values(self)


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


OUTSIDE = [
    ("steps", 0, "`steps` is 0 but must be at least 1."),
    ("steps", -1, "`steps` is -1 but must be at least 1."),
    ("share", 1.0, "`share` is 1.0 but must be at least 0 and less than 1."),
    ("share", -0.1, "`share` is -0.1 but must be at least 0 and less than 1."),
    ("share", math.nan, "`share` is nan but must be at least 0 and less than 1, and finite."),
    ("rate", 0.0, "`rate` is 0.0 but must be greater than 0."),
    ("rate", math.inf, "`rate` is inf but must be greater than 0, and finite."),
    ("seed", -1, "`seed` is -1 but must be at least 0 and at most 4294967295."),
    ("seed", 2**32, "`seed` is 4294967296 but must be at least 0 and at most 4294967295."),
]


@pytest.mark.parametrize(("name", "value", "sentence"), OUTSIDE)
def test_a_number_outside_of_its_bounds_is_refused(name, value, sentence, monkeypatch):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        Bounded(**{name: value})
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        parse(monkeypatch, Bounded, f"--{name}={value}")


def test_bounds_are_reached_and_choices_are_checked_in_python_as_well(monkeypatch, capsys):
    limits = {"steps": 1, "share": 0.0, "rate": 1e-30, "seed": 2**32 - 1}
    assert vars(Bounded(**limits)) == limits | {"kind": "a"}
    with pytest.raises(ValueError, match="`kind` is 'c' but must be one of a, b."):
        Bounded(kind="c")
    with pytest.raises(SystemExit):
        parse(monkeypatch, Bounded, "--help")
    assert "how much (default: 0.5)" in capsys.readouterr().out
