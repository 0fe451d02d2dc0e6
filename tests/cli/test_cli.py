"""The command `elmo-hf` and the script, as a user calls them."""

import io
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.tiny import WIDTH, tiny_config, write_model

from elmo_hf import (
    ElmoForTokenClassification,
    ElmoModel,
    ElmoTagger,
    ElmoTokenizer,
    __version__,
    cli,
)
from elmo_hf.tagging import tagger

ROOT = Path(__file__).resolve().parents[2]


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


def test_version(elmo_hf):
    assert elmo_hf("--version")[0].strip() == __version__


def test_a_folder_of_another_model_is_told(elmo_hf, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert", "hidden_size": 8}')
    _, complained = elmo_hf("info", tmp_path, code=1)
    assert "bert" in complained and "Traceback" not in complained


def test_convert_info_export(elmo_hf, source, tmp_path):
    printed, _ = elmo_hf("convert", source, "--output_dir", tmp_path / "elmo")
    assert "parameters, largest relative error" in printed
    printed, _ = elmo_hf("info", tmp_path / "elmo")
    for fact in ("16 (2 x 8)", "4 of 1, 6 of 2, 8 of 3 (18 in all)", "biLSTM layer 2"):
        assert fact in printed
    assert "weights.hdf5" in printed
    elmo_hf("export", tmp_path / "elmo", "--output_dir", tmp_path / "back")
    assert {path.name for path in (tmp_path / "back").iterdir()} == {"model.hdf5", "options.json"}


@pytest.mark.program
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
    assert "pip install h5py" in complained


def test_help_teaches(elmo_hf):
    printed, _ = elmo_hf("--help")
    assert all(command in printed for command in ("convert", "export", "info"))
    printed, _ = elmo_hf("convert", "--help")
    assert "--options_file" in printed and "--overwrite" in printed


@pytest.fixture
def tagger_folder(tmp_path):
    labels = ["ADJ", "NOUN", "VERB"]
    config = tiny_config(
        id2label=dict(enumerate(labels)), label2id={tag: n for n, tag in enumerate(labels)}
    )
    ElmoForTokenClassification(config).save_pretrained(tmp_path / "tagger")
    ElmoTokenizer(max_characters_per_token=WIDTH).save_pretrained(tmp_path / "tagger")
    return tmp_path / "tagger"


TEXT = "Dogs bark .\n\nHi\nthe old dog barks and barks and barks\n"


def test_tag_prints_conllu_in_order(elmo_hf, tagger_folder, tmp_path, monkeypatch):
    # several windows and batches even of four lines
    monkeypatch.setattr(tagger, "WINDOW", 2)
    monkeypatch.setattr(tagger, "WORDS_AT_ONCE", 5)
    (tmp_path / "text").write_text(TEXT)
    printed, _ = elmo_hf("tag", "--model", tagger_folder, tmp_path / "text")
    sentences = [block.splitlines() for block in printed.strip().split("\n\n")]
    words = [[line.split("\t")[1] for line in block] for block in sentences]
    assert words == [line.split() for line in TEXT.splitlines() if line]
    assert all(len(line.split("\t")) == 10 for block in sentences for line in block)
    found = [[line.split("\t")[3] for line in block] for block in sentences]
    alone = [next(ElmoTagger(str(tagger_folder)).tag([row])).tags for row in words]
    assert found == alone


def test_tag_reads_standard_input_and_paints(elmo_hf, tagger_folder, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    printed, _ = elmo_hf("tag", "--model", tagger_folder, "--format", "colour")
    assert printed.count("\n") == 3 and "\033[38;5;" in printed


def test_empty_sentences_keep_their_place(tagger_folder):
    found = list(ElmoTagger(str(tagger_folder)).tag([[], ["a", "b"], []]))
    assert [len(sentence.tags) for sentence in found] == [0, 2, 0]
    assert all(0 < score <= 1 for score in found[1].scores)


def test_tag_needs_a_tagger(elmo_hf, tmp_path):
    ElmoModel(tiny_config()).save_pretrained(tmp_path / "bilm")
    _, complained = elmo_hf("tag", "--model", tmp_path / "bilm", code=1)
    assert "holds an ElmoModel, not a tagger; train one with" in complained
    _, complained = elmo_hf("tag", "--model", tmp_path / "bilm", "--format", "xml", code=1)
    assert "must be conllu or colour" in complained
