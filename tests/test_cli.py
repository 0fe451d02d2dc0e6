"""The command `elmo-hf` and the script, as a user calls them."""

import subprocess
import sys
from pathlib import Path

import pytest
from tiny import tiny_config, write_model

from elmo_hf import cli

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def elmo_hf(monkeypatch, capsys):
    """Runs `elmo-hf` with arguments; gives what it printed and what it complained."""

    def call(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["elmo-hf", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            cli.main()
        printed, complained = capsys.readouterr()
        assert stop.value.code == code, complained
        return printed, complained

    return call


@pytest.fixture
def source(tmp_path):
    write_model(tmp_path / "source", tiny_config())
    return tmp_path / "source"


def test_convert_info_export(elmo_hf, source, tmp_path):
    printed, _ = elmo_hf("convert", source, "--output_dir", tmp_path / "elmo")
    assert "parameters, largest relative error" in printed
    printed, _ = elmo_hf("info", tmp_path / "elmo")
    for fact in ("16 (2 x 8)", "4 of 1, 6 of 2, 8 of 3 (18 in all)", "biLSTM layer 2"):
        assert fact in printed
    assert "weights.hdf5" in printed
    elmo_hf("export", tmp_path / "elmo", "--output_dir", tmp_path / "back")
    assert {path.name for path in (tmp_path / "back").iterdir()} == {"model.hdf5", "options.json"}


def test_script_does_what_the_command_does(elmo_hf, source, tmp_path):
    files = ["--options_file", source / "options.json", "--weight_file", source / "weights.hdf5"]
    elmo_hf("convert", *files, "--output_dir", tmp_path / "elmo")
    script = [sys.executable, ROOT / "conversion" / "convert_allennlp_to_hf.py"]
    subprocess.run([*script, *files, "--output_dir", tmp_path / "by-script"], check=True)
    names = {path.name for path in (tmp_path / "elmo").iterdir()}
    for name in names | {path.name for path in (tmp_path / "by-script").iterdir()}:
        made = [(tmp_path / folder / name).read_bytes() for folder in ("elmo", "by-script")]
        assert made[0] == made[1], name


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["convert", "nowhere", "--output_dir", "x"], "no folder, zip file or Hub repository"),
        (["convert", "--output_dir", "x"], "Give a folder, zip or Hub repository, or both"),
        (["convert", "no/where", "--output_dir", "x"], "no local file 'no/where'"),
        (["info", "nowhere"], "'nowhere' is no ELMo folder"),
        (["export", "nowhere", "--output_dir", "x"], "'nowhere' is no ELMo folder"),
    ],
    ids=["nothing-there", "nothing-given", "not-on-the-hub", "info", "export"],
)
def test_mistakes_are_one_sentence(elmo_hf, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    _, complained = elmo_hf(*arguments, code=1)
    assert complained.startswith("Error: ") and sentence in complained
    assert not list(tmp_path.iterdir())


def test_conversion_without_h5py_says_what_to_install(elmo_hf, source, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    _, complained = elmo_hf("convert", source, "--output_dir", tmp_path / "elmo", code=1)
    assert "pip install 'elmo_hf[conversion]'" in complained


def test_help_teaches(elmo_hf):
    printed, _ = elmo_hf("--help")
    assert all(command in printed for command in ("convert", "export", "info"))
    printed, _ = elmo_hf("convert", "--help")
    assert "--options_file" in printed and "--overwrite" in printed
