"""How a run begins and ends."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from accelerate.tracking import GeneralTracker
from transformers.utils import logging

from elmo_hf.training import option, training_run


@dataclass
class Settings:
    output_dir: Path
    overwrite_output_dir: bool = False
    model_name_or_path: str | None = None


@dataclass
class Names:
    split: str
    preset: str = option("small", help="", choices=["small"])


@dataclass
class Tracking:
    report_to: GeneralTracker
    size: int = 3


def test_a_name_is_no_path(tmp_path, monkeypatch):
    """A folder may be called like the splitter or the preset of its run."""
    monkeypatch.chdir(tmp_path)
    for name in ("small", "english", "small", "english"):
        with training_run("test", Settings(Path(name)), Names("english")):
            pass


def test_a_run_makes_its_folder_and_tells_its_tracker(tmp_path, monkeypatch):
    seen = []

    class Tracker(GeneralTracker):
        name = "ours"
        requires_logging_directory = False
        tracker = None

        def __init__(self) -> None:
            super().__init__()

        def store_init_configuration(self, values: dict) -> None:
            seen.append(values)

        def log(self, values: dict, step: int | None = None, **kwargs) -> None:
            seen.append((values, step))

        def finish(self) -> None:
            seen.append("finished")

    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    folder = tmp_path / "a" / "b"
    settings = Settings(folder), Tracking(Tracker())
    with training_run("test", *settings) as accelerator:
        assert folder.is_dir() and accelerator.mixed_precision == "no"
        accelerator.log({"loss": 1.0}, step=2)
    fields, *rest = seen
    assert fields["size"] == "3" and fields["output_dir"] == str(folder)
    assert rest == [({"loss": 1.0}, 2), "finished"]


def test_a_run_that_fails_waits_for_nobody(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    monkeypatch.setattr("elmo_hf.training.run.leave_together", lambda accelerator: pytest.fail())
    with pytest.raises(ValueError, match="broken"), training_run("test", Settings(tmp_path)):
        raise ValueError("broken")


def test_a_run_leaves_the_logging_of_transformers_as_it_was(tmp_path):
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    with training_run("quiet", Settings(tmp_path)):
        assert logging.get_verbosity() == logging.ERROR
        assert not logging.is_progress_bar_enabled()
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
