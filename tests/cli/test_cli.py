"""The command `elmo-hf` and the script, as a user calls them."""

import gzip
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from helpers.tiny import WIDTH, tiny_config, write_model

from elmo_hf import (
    ElmoForTokenClassification,
    ElmoModel,
    ElmoTagger,
    ElmoTokenizer,
    __version__,
)
from elmo_hf.cli import app, main
from elmo_hf.hub import bundled
from elmo_hf.tagging import tagger
from elmo_hf.tagging.tasks import TASKS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def elmo_hf(monkeypatch, capsys):
    """Runs `elmo-hf` with arguments; gives what it printed and what it complained."""

    def call(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["elmo-hf", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
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


def test_a_folder_of_another_model_is_reported(elmo_hf, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert", "hidden_size": 8}')
    _, complained = elmo_hf("info", "--model", tmp_path, code=1)
    assert "bert" in complained and "Traceback" not in complained


def test_convert_info_export(elmo_hf, source, tmp_path):
    printed, _ = elmo_hf("convert", source, "--output-dir", tmp_path / "elmo")
    assert "parameters, largest relative error" in printed
    printed, _ = elmo_hf("info", "--model", tmp_path / "elmo")
    for fact in ("16 (2 x 8)", "4 of 1, 6 of 2, 8 of 3 (18 in all)", "biLSTM layer 2"):
        assert fact in printed
    assert "weights.hdf5" in printed
    elmo_hf("export", "--model", tmp_path / "elmo", "--output-dir", tmp_path / "back")
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
        (["convert", "nowhere", "--output-dir", "x"], "no folder, archive or Hub repository"),
        (
            ["convert", "--output-dir", "x"],
            "Give a folder, an archive or a Hub repository, or both",
        ),
        (["convert", "no/where", "--output-dir", "x"], "no local file 'no/where'"),
        (["info", "--model", "nowhere"], "'nowhere' is not an ELMo folder"),
        (["export", "--model", "nowhere", "--output-dir", "x"], "'nowhere' is not an ELMo folder"),
        (["tag", "text", "--input", "text"], "Give one text, either 'text' or --input 'text'."),
        (["embed", "nowhere", "--output", "x.npy"], "There is no file 'nowhere'."),
        (["embed", "--output", "x.npy", "--on-error", "x"], "must be one of stop, skip"),
        (["tag", "--device", "gpu"], "The device 'gpu' cannot be used"),
        (["vocab"], "Name at least one text"),
        (["vocab", "text", "--split", "finnish"], "`split` is 'finnish' but must be one of none,"),
        (["vocab", "text", "--paragraphs", "blank"], "name a splitter for raw text, as in --split"),
    ],
    ids=["nothing-there", "nothing-given", "not-on-the-hub", "info", "export"]
    + ["two-texts", "no-text", "on-error", "device", "vocab", "splitter", "paragraphs"],
)
def test_mistakes_are_one_sentence(elmo_hf, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    _, complained = elmo_hf(*arguments, code=1)
    assert complained.startswith("Error: ") and sentence in complained
    assert not list(tmp_path.iterdir())


def test_conversion_without_h5py_says_what_to_install(elmo_hf, source, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    _, complained = elmo_hf("convert", source, "--output-dir", tmp_path / "elmo", code=1)
    assert "requires h5py: pip install 'elmo_hf[conversion]'" in complained


COMMANDS = typer.main.get_command(app).commands


def options_of(command) -> list[str]:
    """As they are declared, without `--help`."""
    return [
        name for part in command.params if part.param_type_name == "option" for name in part.opts
    ]


def test_every_command_is_listed_with_its_first_sentence(elmo_hf, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    printed, _ = elmo_hf("--help")
    assert set(COMMANDS) == {
        *("convert", "download", "embed", "evaluate", "export", "export-onnx", "info", "models"),
        *("push", "tag", "vocab"),
    }
    for name, command in COMMANDS.items():
        first_line = command.help.strip().splitlines()[0]
        assert re.search(rf"\b{name} +{re.escape(first_line)}", printed), name
    assert "--version" in printed and "bundled" in printed


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches_every_option(elmo_hf, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "300")
    printed, _ = elmo_hf(name, "--help")
    for part in COMMANDS[name].params:
        assert part.help and part.help.strip()[-1] in ".)", part.name
        assert part.help in printed, part.name
    for option in options_of(COMMANDS[name]):
        assert re.search(rf"(?<!\S){option}\b", printed) and "_" not in option
    assert not re.search(r"--[a-z-]*_", printed)


def test_one_word_means_the_same_in_every_command():
    declared = {name: set(options_of(command)) for name, command in COMMANDS.items()}
    having = {
        "--model": {"embed", "evaluate", "export", "export-onnx", "info", "push", "tag"},
        "--input": {"embed", "tag", "vocab"},
        "--output": {"embed", "evaluate", "export-onnx", "vocab"},
        "--output-dir": {"convert", "download", "export"},
        "--offline": {"convert", "download"},
        "--overwrite": {"convert", "embed", "evaluate", "export", "export-onnx", "vocab"},
        "--device": {"embed", "evaluate", "tag"},
        "--batch-size": {"embed", "evaluate", "tag"},
        "--split": {"convert", "embed", "evaluate", "tag", "vocab"},
        "--paragraphs": {"embed", "tag", "vocab"},
        "--task": {"evaluate", "tag"},
    }
    for option, commands in having.items():
        assert {name for name, options in declared.items() if option in options} == commands
    for name in having["--model"] - {"push"}:
        [model] = [part for part in COMMANDS[name].params if "--model" in part.opts]
        assert model.default == "bundled" and not model.required


SPELLINGS = [
    (name, option)
    for name in COMMANDS
    for option in options_of(COMMANDS[name])
    if "-" in option[2:]
]


@pytest.mark.parametrize(("name", "option"), SPELLINGS)
def test_underscores_are_accepted(name, option):
    """The parser reads both spellings, apart from its value or joined to it, as one option."""
    command = COMMANDS[name]
    [part] = [part for part in command.params if option in part.opts]
    spelt = "--" + option[2:].replace("-", "_")
    found = []
    program = typer.main.get_command(app).make_context("elmo-hf", [name])
    spellings = [[option], [spelt]]
    if not part.is_flag:
        spellings = [[option, "7"], [spelt, "7"], [f"{spelt}=7"]]
    for arguments in spellings:
        with command.context_class(command, parent=program) as context:
            values, rest, _ = command.make_parser(context).parse_args(arguments)
        found.append(values[part.name])
        assert not rest
    assert all(value == found[0] for value in found)
    assert found[0] is True if part.is_flag else "7" in found[0]


def test_an_underscore_works_in_a_whole_command(elmo_hf, source, tmp_path):
    elmo_hf("convert", source, "--output_dir", tmp_path / "apart")
    elmo_hf("convert", source, f"--output_dir={tmp_path / 'joined'}")
    for name in ("apart", "joined"):
        assert (tmp_path / name / "model.safetensors").exists()


def test_vocab_counts_several_texts(elmo_hf, tmp_path):
    for name, text in (("a", "the dog the"), ("b", "the cat")):
        (tmp_path / f"{name}.txt").write_text(text + "\n")
    output = tmp_path / "vocab.txt"
    both = [tmp_path / "a.txt", tmp_path / "b.txt"]
    printed, _ = elmo_hf("vocab", *both, "--output", output)
    assert output.read_text().split() == ["<S>", "</S>", "<UNK>", "the", "cat", "dog"]
    assert f"6 words, 100.00% of the text's 5, saved in {output}" in printed
    first = output.read_text()
    _, complained = elmo_hf("vocab", *both, "--output", output, code=1)
    assert "exists; pass --overwrite to replace it" in complained
    again = ["vocab", both[0], "--input", both[1], "--output", output, "--overwrite"]
    elmo_hf(*again)
    assert output.read_text() == first
    elmo_hf(*again, "--min_count=3")
    assert output.read_text().split() == ["<S>", "</S>", "<UNK>", "the"]


def test_vocab_counts_raw_text(elmo_hf, tmp_path):
    """The words of the sentences, as pretraining splits them."""
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"It's the\ndog. The dog isn't here"))
    (tmp_path / "b.txt").write_text("It is.\n\nHere!\n")
    output = tmp_path / "vocab.txt"
    raw = ["vocab", tmp_path / "[ab].txt*", "--output", output, "--overwrite"]
    for paragraphs in ("line", "blank"):
        printed, _ = elmo_hf(*raw, "--split", "english", "--paragraphs", paragraphs)
        assert "14 words, 100.00% of the text's 15" in printed
        found = output.read_text().split()
        assert found[:6] == ["<S>", "</S>", "<UNK>", ".", "It", "dog"] and "n't" in found
    (tmp_path / "empty.txt").write_text("\n\n")
    _, complained = elmo_hf("vocab", tmp_path / "empty.txt", "--split", "english", code=1)
    assert "There is no sentence in" in complained


def test_push_needs_a_model(elmo_hf):
    _, complained = elmo_hf("push", "me/elmo", code=2)
    assert "--model" in complained
    _, complained = elmo_hf("push", "me/elmo", "--model", "nowhere", code=1)
    assert "nowhere" in complained and "config.json" in complained


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
    text = ["--input", tmp_path / "text", "--device", "cpu"]
    assert elmo_hf("tag", "--model", tagger_folder, *text)[0] == printed
    sentences = [
        [line for line in block.splitlines() if not line.startswith("#")]
        for block in printed.strip().split("\n\n")
    ]
    words = [[line.split("\t")[1] for line in block] for block in sentences]
    assert words == [line.split() for line in TEXT.splitlines() if line]
    assert all(len(line.split("\t")) == 10 for block in sentences for line in block)
    found = [[line.split("\t")[3] for line in block] for block in sentences]
    alone = [next(ElmoTagger(str(tagger_folder)).tag([row])).tags for row in words]
    assert found == alone


TREEBANK = """# sent_id = x\r
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\r
1\tdo\tdo\tOLD\tVB\t_\t0\troot\t_\t_\r
2\tn't\tnot\tOLD\tRB\t_\t1\tadvmod\t_\t_\r
2.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_\r
\r
1\tHi\t_\tOLD\t_\t_\t_\t_\t_\t_"""


def test_tag_fills_the_tags_of_a_treebank(elmo_hf, tagger_folder, tmp_path):
    file = tmp_path / "gold.conllu"
    file.write_bytes(TREEBANK.encode())
    printed, _ = elmo_hf("tag", file, "--model", tagger_folder)
    tags = [
        tag for s in ElmoTagger(str(tagger_folder)).tag([["do", "n't"], ["Hi"]]) for tag in s.tags
    ]
    expected = TREEBANK
    for tag in tags:
        expected = expected.replace("OLD", tag, 1)
    assert printed == expected
    _, complained = elmo_hf("tag", file, "--model", tagger_folder, "--split", "english", code=1)
    assert "has its words already" in complained
    file.write_text("1\tonly\tthree\n")
    _, complained = elmo_hf("tag", file, "--model", tagger_folder, code=1)
    assert "gold.conllu', line 1: 3 tab-separated columns, but CoNLL-U has 10" in complained


def test_tag_takes_columns_and_headers_for_what_they_are(elmo_hf, tagger_folder, tmp_path):
    (tmp_path / "a.conllu").write_text(TREEBANK)
    printed, _ = elmo_hf("tag", tmp_path / "*.conllu", "--model", tagger_folder)
    assert printed.count("\n") == TREEBANK.count("\n")
    (tmp_path / "b.txt").write_text(TREEBANK)
    tag = ["tag", "--model", tagger_folder]
    _, complained = elmo_hf(*tag, tmp_path / "?.*", code=1)
    assert "names CoNLL-U files and" in complained
    _, complained = elmo_hf(*tag, tmp_path / "b.txt", code=1)
    assert "b.txt', line 2: this is a row of CoNLL-U, not text" in complained
    (tmp_path / "c.txt").write_text(">P1 human\nMKV\n")
    for command in (tag, ["vocab", "--output", tmp_path / "vocab.txt"]):
        _, complained = elmo_hf(*command, tmp_path / "c.txt", "--split", "characters", code=1)
        assert "c.txt', line 1: this is the header of a FASTA file" in complained
    _, complained = elmo_hf(*tag, tmp_path / "c.txt", "--paragraphs", "page", code=1)
    assert "`paragraphs` is 'page' but must be line or blank" in complained
    _, complained = elmo_hf(*tag, "--split", "none", "--paragraphs", "blank", code=1)
    assert "in tokenised text every line is a sentence" in complained


def test_tag_splits_raw_text_as_it_is_told(elmo_hf, tagger_folder, tmp_path):
    (tmp_path / "in.txt").write_text("It's\nlate. Go!\n")

    def words(*options):
        options = ["--model", tagger_folder, "--format", "jsonl", *options]
        printed, _ = elmo_hf("tag", tmp_path / "in.txt", *options)
        found = [json.loads(line)["sentences"] for line in printed.splitlines()]
        return [sentence["words"] for paragraph in found for sentence in paragraph]

    assert words() == words("--split", "none") == [["It's"], ["late.", "Go!"]]
    assert words("--split", "english", "--paragraphs", "blank", "--batch-size", "1") == [
        ["It", "'s", "late", "."],
        ["Go", "!"],
    ]
    _, complained = elmo_hf("tag", "--model", tagger_folder, "--split", "klingon", code=1)
    assert "`split` is 'klingon' but must be one of none, whitespace" in complained


def test_tag_reads_standard_input_and_paints(elmo_hf, tagger_folder, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    printed, _ = elmo_hf("tag", "--model", tagger_folder, "--format", "colour")
    assert printed.count("\n") == 3 and "\033[38;5;" in printed


def test_coloured_text_has_no_commands_for_a_terminal(elmo_hf, tagger_folder, tmp_path):
    (tmp_path / "in.txt").write_text("Dogs \033]0;title\a bark\n")
    printed, _ = elmo_hf("tag", tmp_path / "in.txt", "--model", tagger_folder, "--format", "colour")
    assert "\\x1b]0;title\\x07" in printed and "\a" not in printed


def test_typed_text_has_no_bar(elmo_hf, tagger_folder, monkeypatch):
    bars = []
    for typed in (True, False):
        given = io.TextIOWrapper(io.BytesIO(TEXT.encode()))
        monkeypatch.setattr(given, "isatty", lambda typed=typed: typed)
        monkeypatch.setattr(sys, "stdin", given)
        bars.append("B/s" in elmo_hf("tag", "--model", tagger_folder)[1])
    assert bars == [False, True]


def test_tag_names_a_line_that_is_no_text(elmo_hf, tagger_folder, tmp_path):
    (tmp_path / "text").write_bytes(b"fine\ncaf\xe9\n")
    _, complained = elmo_hf("tag", "--model", tagger_folder, tmp_path / "text", code=1)
    sentence = "line 2: the byte 0xe9 is not UTF-8; convert the file to UTF-8 first."
    assert complained.strip().endswith(sentence)
    # `tag` has no such option
    assert "--on-error" not in complained


@pytest.mark.program
def test_tag_without_an_output(tagger_folder, tmp_path):
    (tmp_path / "text").write_text(TEXT)
    command = f"{sys.executable} -m elmo_hf tag --model {tagger_folder} {tmp_path / 'text'} >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: Standard output is closed; write to a file")


def test_empty_sentences_keep_their_place(tagger_folder):
    found = list(ElmoTagger(str(tagger_folder)).tag([[], ["a", "b"], []]))
    assert [len(sentence.tags) for sentence in found] == [0, 2, 0]
    assert all(0 < score <= 1 for score in found[1].scores)


def test_tag_needs_a_tagger(elmo_hf, tmp_path):
    ElmoModel(tiny_config()).save_pretrained(tmp_path / "bilm")
    _, complained = elmo_hf("tag", "--model", tmp_path / "bilm", code=1)
    assert "holds an ElmoModel, not a tagger; train one with" in complained
    _, complained = elmo_hf("tag", "--model", tmp_path / "bilm", "--format", "xml", code=1)
    assert "must be one of conllu, tsv, jsonl, spans, colour" in complained


def test_task_chooses_a_bundled_tagger(elmo_hf, tagger_folder, tmp_path, monkeypatch):
    assert bundled.TAGGERS.keys() == TASKS.keys()
    # a tagger of names in the place of the bundled one
    labels = {0: "O", 1: "B-name"}
    options = {"id2label": labels, "label2id": {name: n for n, name in labels.items()}}
    model = ElmoForTokenClassification(tiny_config(**options))
    torch.nn.init.constant_(model.classifier.bias, 0)
    model.classifier.bias.data[1] = 1000
    model.save_pretrained(tmp_path / "names")
    ElmoTokenizer(max_characters_per_token=WIDTH, word_splitter="english").save_pretrained(
        tmp_path / "names"
    )
    monkeypatch.setattr(
        bundled, "bundled_tagger", lambda task: str(tmp_path / {"ner": "names"}[task])
    )
    (tmp_path / "text").write_text("Ann\n")
    printed, _ = elmo_hf("tag", tmp_path / "text", "--task", "ner")
    assert printed == "0\t3\tname\t1.0000\tAnn\n"
    (tmp_path / "gold.conllu").write_text("1\tAnn" + "\t_" * 8 + "\n\n")
    _, complained = elmo_hf("tag", tmp_path / "gold.conllu", "--task", "ner", code=1)
    assert "has parts of speech, and this tagger finds names" in complained
    (tmp_path / "gold.conll").write_text("Ann B-name\n\n")
    printed, _ = elmo_hf("evaluate", tmp_path / "gold.conll", "--task", "ner")
    assert "F1" in printed and "100.00 %" in printed
    _, complained = elmo_hf("tag", tmp_path / "text", "--task", "chunk", code=1)
    assert "--task is 'chunk' but must be pos or ner." in complained
    with_model = ("--task", "ner", "--model", tagger_folder)
    _, complained = elmo_hf("tag", tmp_path / "text", *with_model, code=1)
    assert "--task ner chooses one of the bundled taggers; leave it out" in complained


def test_embed_takes_its_text_in_three_ways(elmo_hf, tagger_folder, tmp_path, monkeypatch):
    (tmp_path / "text").write_text(TEXT)
    made = []
    for number, text in enumerate([[tmp_path / "text"], ["--input", tmp_path / "text"], []]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
        output = tmp_path / f"{number}.npy"
        command = ["embed", "--model", tagger_folder, "--output", output, "--device", "cpu"]
        printed, _ = elmo_hf(*command, *text)
        assert printed == f"saved in {output}\n"
        made.append(output.read_bytes())
    assert made[0] == made[1] == made[2]


def test_embed_splits_raw_text_and_reads_fasta(elmo_hf, tagger_folder, tmp_path):
    (tmp_path / "raw.txt").write_text("Dogs don't bark. Cats sleep.\n")
    (tmp_path / "proteins.fasta").write_text(">a\nMK\nV\n>b\nMKL*\n")
    texts = [("raw.txt", "english", [5, 3]), ("proteins.fasta", "characters", [3, 3])]
    for text, split, lengths in texts:
        command = ["embed", "--model", tagger_folder, "--input", tmp_path / text]
        output = tmp_path / f"{split}.npy"
        elmo_hf(*command, "--split", split, "--output", output, "--batch-size", 1)
        assert np.diff(np.load(tmp_path / f"{split}.offsets.npy")).tolist() == lengths
    _, complained = elmo_hf(*command, "--output", tmp_path / "none.npy", code=1)
    assert complained.startswith("Error: ") and "pass --split characters." in complained
