"""`elmo-hf evaluate` as a user calls it."""

import json
import sys

import pytest
from helpers.tiny import WIDTH, tiny_config

from elmo_hf import ElmoForTokenClassification, ElmoTokenizer
from elmo_hf.cli import main

GOLD = "\n".join(
    [
        "# newpar",
        "1\tDogs\t_\tNOUN\t_\t_\t_\t_\t_\t_",
        "2\tbark\t_\tVERB\t_\t_\t_\t_\t_\tSpaceAfter=No",
        "3\t.\t_\tADJ\t_\t_\t_\t_\t_\t_",
        "",
        "",
    ]
)


@pytest.fixture
def evaluate(monkeypatch, capsys, tmp_path):
    """Runs `elmo-hf evaluate` on a tiny tagger; gives what it printed and what it complained."""
    labels = ["ADJ", "NOUN", "VERB"]
    config = tiny_config(id2label=dict(enumerate(labels)))
    ElmoForTokenClassification(config).save_pretrained(tmp_path / "tagger")
    tokenizer = ElmoTokenizer(max_characters_per_token=WIDTH, word_splitter="english")
    tokenizer.save_pretrained(tmp_path / "tagger")
    (tmp_path / "gold").write_text(GOLD)
    monkeypatch.chdir(tmp_path)

    def call(*arguments, code=0):
        command = ["elmo-hf", "evaluate", *map(str, arguments), "--model", "tagger"]
        monkeypatch.setattr(sys, "argv", command)
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        printed, complained = capsys.readouterr()
        assert stop.value.code == code, complained
        return printed, complained

    return call


def test_figures_are_printed_and_saved(evaluate, tmp_path):
    output = tmp_path / "results.json"
    printed, complained = evaluate("gold", "--output", output, "--batch-size", 1, "--device", "cpu")
    figures = json.loads(output.read_text())
    assert figures["words"] == 3 and f"accuracy  {100 * figures['accuracy']:.2f} %" in printed
    assert "unknown" not in printed and "1/1" in complained
    lines = printed.splitlines()
    [head] = [place for place, line in enumerate(lines) if "precision" in line]
    assert lines[head].split() == ["F1", "precision", "recall", "number"]
    assert [line.split()[0] for line in lines[head + 1 : head + 4]] == ["ADJ", "NOUN", "VERB"]
    assert printed.endswith(f"\nsaved in {output}\n")
    _, complained = evaluate("gold", "--output", output, code=1)
    assert "exists; pass --overwrite to replace it" in complained
    evaluate("gold", "--output", output, "--overwrite", "--train-file", "gold")
    assert json.loads(output.read_text())["unknown_words"] == 0


def test_raw_text(evaluate, tmp_path):
    printed, _ = evaluate("gold", "--raw", "--output", "results.json")
    rows = {line.split()[0]: line.split()[1:] for line in printed.splitlines()[1:5]}
    assert rows.keys() == {"tokens", "sentences", "words", "UPOS"}
    assert rows["tokens"] == ["100.00", "%", "100.00", "%", "100.00", "%", "3"]
    assert json.loads((tmp_path / "results.json").read_text())["words"]["f1"] == 1
    printed, _ = evaluate("gold", "--raw", "--split", "none")
    # found: Dogs bark.
    assert "tokens      40.00 %    50.00 %   33.33 %       3" in printed


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "There is no file 'nowhere'."),
        (["nowhere", "--raw"], "There is no file 'nowhere'."),
        (["tagger", "--raw"], "'tagger' is a folder; name a file in it."),
        (["gold", "--task", "x"], "--task is 'x' but must be pos or ner."),
        (["gold", "--split", "none"], "--split is for --raw only"),
        (["gold", "--raw", "--split", "x"], "must be one of none, whitespace, english"),
        (["gold", "--raw", "--tag-column", "xpos"], "leave out --train-file, --task"),
        (["joined", "--raw"], "line 1: 1 tab-separated column, but CoNLL-U has 10"),
    ],
)
def test_mistakes_are_one_sentence(evaluate, tmp_path, arguments, sentence):
    (tmp_path / "joined").write_text("Dogs/NOUN bark/VERB\n")
    _, complained = evaluate(*arguments, "--output", "results.json", code=1)
    error = complained.strip().splitlines()[-1]
    assert error.startswith("Error: ") and sentence in error
    assert not (tmp_path / "results.json").exists()


def test_given_words_need_an_extra_and_raw_text_needs_none(evaluate, monkeypatch):
    for name in ("evaluate", "elmo_hf.tagging.gold", "elmo_hf.tagging.figures"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "evaluate", None)
    _, complained = evaluate("gold", code=1)
    assert "Evaluating a tagger requires evaluate: pip install 'elmo_hf[train]'" in complained
    evaluate("gold", "--raw")
