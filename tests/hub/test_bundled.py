"""The model in the package: what it is, how it is reached, and that it has really read."""

import csv
import json
import logging
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.launch import EXAMPLES, load_script
from helpers.tiny import WIDTH, tiny_config
from safetensors import safe_open
from safetensors.torch import load_file
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    pipeline,
)
from typer.testing import CliRunner

from elmo_hf import (
    ElmoEmbedder,
    ElmoForPreTraining,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoTagger,
    ElmoTokenizer,
    bundled_model,
    bundled_tagger,
)
from elmo_hf.cli import app
from elmo_hf.hub import bundled, bundled_tasks, find_model, find_tagger
from elmo_hf.hub.bundled import FOLDER
from elmo_hf.pages import read_occurrences, study_words
from elmo_hf.tagging.spans import find_spans

SENTENCE = ["Will", "you", "book", "the", "book", "?"]
TAGS = ["AUX", "PRON", "VERB", "DET", "NOUN", "PUNCT"]


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """A cache folder of the test's own, which does not exist yet."""
    monkeypatch.setenv("ELMO_HF_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_weights_are_small_halves_that_load_as_floats():
    files = list(FOLDER.glob("*.safetensors"))
    names = {"model.safetensors", "ner.safetensors", "upos.safetensors"}
    assert {file.name for file in files} == names
    assert sum(file.stat().st_size for file in files) <= 16 * 2**20
    for file in files:
        with safe_open(file, "pt") as weights:
            names = weights.keys()
            assert {weights.get_tensor(name).dtype for name in names} == {torch.float16}
    for model_class, folder in (
        (ElmoModel, bundled_model()),
        (ElmoForTokenClassification, bundled_tagger()),
    ):
        model, report = model_class.from_pretrained(folder, output_loading_info=True)
        assert not any(report.values())
        assert {part.dtype for part in model.parameters()} == {torch.float32}


def test_every_command_knows_its_name(tmp_path):
    run = CliRunner().invoke
    text = tmp_path / "text.txt"
    text.write_text(" ".join(SENTENCE) + "\n")
    assert "biLSTM layer 2" in run(app, ["info", "--model", "bundled"]).output
    tagged = run(app, ["tag", "--model", "bundled", str(text)]).output
    assert [line.split("\t")[3] for line in tagged.splitlines() if "\t" in line] == TAGS
    output = tmp_path / "vectors.npy"
    command = ["embed", "--model", "bundled", "--input", str(text), "--output", str(output)]
    assert run(app, command).exit_code == 0
    [vectors] = ElmoEmbedder("bundled").embed([SENTENCE])
    assert np.load(output).shape[0] == len(SENTENCE) and vectors.shape[1] == len(SENTENCE)
    command = ["export", "--model", "bundled", "--output-dir", str(tmp_path / "hdf5")]
    assert run(app, command).exit_code == 0


def test_it_is_the_default():
    [mine], [named] = (made.embed([SENTENCE]) for made in (ElmoEmbedder(), ElmoEmbedder("bundled")))
    assert np.array_equal(mine, named)
    [tagged] = ElmoTagger().tag([SENTENCE])
    assert tagged.tags == TAGS


def test_tagger_is_on_the_same_bilm():
    tagger = ElmoForTokenClassification.from_pretrained(bundled_tagger())
    model = ElmoModel.from_pretrained(bundled_model())
    for part in ("token_encoder", "layers"):
        mine, shared = (getattr(of, part).state_dict() for of in (tagger.elmo, model))
        assert all(torch.equal(mine[name], shared[name]) for name in shared)


def test_bilm_and_taggers_share_one_folder_and_no_weight():
    assert not any(path.is_dir() for path in FOLDER.iterdir())
    with safe_open(FOLDER / "model.safetensors", "pt") as bilm:
        shared = set(bilm.keys())
    for task in bundled_tasks():
        with safe_open(FOLDER / f"{task}.safetensors", "pt") as head:
            names = set(head.keys())
        assert not names & shared
        model = ElmoForTokenClassification.from_pretrained(bundled_tagger(task))
        assert names | shared == model.state_dict().keys()


def test_tagger_is_an_ordinary_folder_for_all_auto_classes(cache):
    folder = bundled_tagger()
    assert {path.name for path in Path(folder).iterdir()} == {
        "README.md",
        "config.json",
        "model.safetensors",
        "tokenizer_config.json",
    }
    assert AutoConfig.from_pretrained(folder).architectures == ["ElmoForTokenClassification"]
    batch = AutoTokenizer.from_pretrained(folder)(" ".join(SENTENCE), return_tensors="pt")
    tagger = AutoModelForTokenClassification.from_pretrained(folder).eval()
    assert isinstance(tagger, ElmoForTokenClassification)
    with torch.inference_mode():
        numbers = tagger(**batch).logits[0].argmax(dim=-1).tolist()
        assert [tagger.config.id2label[number] for number in numbers] == TAGS
        vectors = AutoModel.from_pretrained(folder).eval()(**batch).last_hidden_state
        assert torch.equal(vectors, tagger.elmo(**batch).last_hidden_state)
    # a head for another task is new, and everything of the biLM is there
    _, report = AutoModelForSequenceClassification.from_pretrained(
        folder, output_loading_info=True, ignore_mismatched_sizes=True
    )
    assert not report["missing_keys"]
    assert all(name.startswith("classifier") for name, *_ in report["mismatched_keys"])
    found = pipeline("token-classification", model=folder)(" ".join(SENTENCE))
    assert [word["entity"] for word in found] == TAGS


def test_tagger_serves_the_commands_by_its_path(cache, tmp_path):
    (tmp_path / "text.txt").write_text(" ".join(SENTENCE) + "\n")
    command = ["tag", "--model", bundled_tagger(), str(tmp_path / "text.txt")]
    tagged = CliRunner().invoke(app, command).output
    assert [line.split("\t")[3] for line in tagged.splitlines() if "\t" in line] == TAGS


def test_names():
    assert find_model("bundled") == bundled_model() and find_tagger("bundled") == bundled_tagger()
    assert find_model("me/elmo") == find_tagger("me/elmo") == "me/elmo"
    assert "upos" in bundled_tasks() and bundled_tagger() == bundled_tagger("upos")
    with pytest.raises(ValueError, match="no bundled tagger for 'parsing'; the tasks are: .*upos"):
        bundled_tagger("parsing")
    # the biLM is not a task
    with pytest.raises(ValueError, match="no bundled tagger for 'model'"):
        bundled_tagger("model")


def test_cache_is_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("ELMO_HF_HOME", str(tmp_path / "ours"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert Path(bundled_tagger()).parent == tmp_path / "ours"
    monkeypatch.delenv("ELMO_HF_HOME")
    assert Path(bundled_tagger()).parent == tmp_path / "caches" / "elmo_hf"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert Path(bundled_tagger()).parent == tmp_path / "home" / ".cache" / "elmo_hf"


def test_cache_that_cannot_be_written_is_replaced_with_one_warning(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("ELMO_HF_HOME", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr("elmo_hf.system.cache.gettempdir", lambda: str(tmp_path / "temporary"))
    with caplog.at_level(logging.WARNING):
        folder = Path(bundled_tagger())
    assert folder.is_relative_to(tmp_path / "temporary")
    [record] = caplog.records
    assert "cannot be written" in record.getMessage() and "\n" not in record.getMessage()
    assert [sentence.tags for sentence in ElmoTagger(str(folder)).tag([SENTENCE])] == [TAGS]
    monkeypatch.setattr("elmo_hf.system.cache.gettempdir", lambda: str(tmp_path / "file"))
    with pytest.raises(OSError, match="set ELMO_HF_HOME to a folder"):
        bundled_tagger()


def test_complete_cache_need_not_be_writable(cache, monkeypatch, caplog):
    folder = bundled_tagger()
    monkeypatch.setattr("elmo_hf.system.cache.os.access", lambda *_: False)
    assert bundled_tagger() == folder and not caplog.records


def damage(kind: str, folder: Path) -> None:
    weights = folder / "model.safetensors"
    if kind == "missing":
        weights.unlink()
    elif kind == "cut":
        weights.write_bytes(weights.read_bytes()[:-1])
    elif kind == "changed":
        content = bytearray(weights.read_bytes())
        content[-1] ^= 1
        weights.write_bytes(content)
    elif kind == "empty":
        for path in folder.iterdir():
            path.unlink()
    else:
        (folder / "config.json").unlink()
        (folder / "config.json").mkdir()


@pytest.mark.parametrize("kind", ["missing", "cut", "changed", "empty", "folder"])
def test_damaged_tagger_is_rebuilt(cache, kind):
    folder = Path(bundled_tagger())
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    damage(kind, folder)
    assert bundled_tagger() == str(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in cache.iterdir()] == [folder.name]


def test_changed_weights_have_another_folder(cache, tmp_path, monkeypatch):
    first = bundled_tagger()
    copy = tmp_path / "bundled_model"
    copy.mkdir()
    for path in FOLDER.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    # a second task is two more files
    for suffix in ("json", "safetensors"):
        (copy / f"ner.{suffix}").write_bytes((copy / f"upos.{suffix}").read_bytes())
    content = bytearray((copy / "upos.safetensors").read_bytes())
    content[-1] ^= 1
    (copy / "upos.safetensors").write_bytes(content)
    monkeypatch.setattr("elmo_hf.hub.bundled.FOLDER", copy)
    assert bundled_tasks() == ["ner", "upos"]
    found = {bundled_tagger("ner"), bundled_tagger("upos"), first}
    assert len(found) == 3 == len(list(cache.iterdir()))


@pytest.mark.program
def test_several_processes_at_once(cache):
    # all wait for the same moment, so that all find nothing
    code = (
        "import sys, time\n"
        "from elmo_hf import ElmoTagger, bundled_tagger\n"
        "print(flush=True)\n"
        "sys.stdin.readline()\n"
        "[sentence] = ElmoTagger(bundled_tagger()).tag([['Go', '!']])\n"
        "print(*sentence.tags)\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    started = [
        subprocess.Popen([sys.executable, "-c", code], text=True, env=os.environ.copy(), **pipes)
        for _ in range(3)
    ]
    for process in started:
        process.stdout.readline()
    for process in started:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in started:
        printed, complained = process.communicate(timeout=120)
        assert process.returncode == 0, complained
        assert printed.split() == ["VERB", "PUNCT"]
    assert len(list(cache.iterdir())) == 1


def test_a_faster_process_is_no_error(cache, monkeypatch):
    """Another one finishes while this one writes, which chance alone would rarely show."""
    new_file, files = bundled.new_file, bundled.tagger_files("upos")

    def slow(file):
        monkeypatch.setattr("elmo_hf.hub.bundled.new_file", new_file)
        with new_file(file) as building:
            # temporary files are named after their process
            with monkeypatch.context() as other:
                other.setattr("os.getpid", lambda: -1)
                bundled.write_files(file.parent, files)
            yield building

    monkeypatch.setattr("elmo_hf.hub.bundled.new_file", contextmanager(slow))
    folder = Path(bundled_tagger())
    assert bundled.has_exactly(folder, files)
    assert [path.name for path in cache.iterdir()] == [folder.name]


def test_it_has_read():
    """Neighbours of ambiguous words: by chance, and by layer 0, 44 % have the same sense."""
    rows = read_occurrences(EXAMPLES / "senses" / "sentences.tsv")
    model = ElmoModel.from_pretrained(bundled_model()).eval()
    tokenizer = ElmoTokenizer.from_pretrained(bundled_model())
    shares = [study.shares for study in study_words(model, tokenizer, rows)]
    layer_0, *others = torch.tensor(shares).mean(dim=0).tolist()
    assert layer_0 == pytest.approx(4 / 9) and min(others) > 0.7


def read_card() -> str:
    return " ".join((FOLDER / "README.md").read_text(encoding="utf-8").split())


def test_card_names_licence_text_and_measures():
    for fact in ("cc-by-sa-4.0", "WikiText-2", "UD English-EWT", "Perplexity", "run_pretrain.py"):
        assert fact in read_card(), fact


def test_sizes_on_the_card_are_those_of_the_files():
    config, tagger = (
        json.loads((FOLDER / name).read_text()) for name in ("config.json", "upos.json")
    )
    numbers = ["no", "one", "two", "three"]
    widths = [width for width, _ in config["char_filters"]]
    weights = load_file(FOLDER / "model.safetensors")
    mebibytes = (FOLDER / "model.safetensors").stat().st_size / 2**20
    for fact in (
        f"{sum(count for _, count in config['char_filters'])} filters",
        f"(widths {min(widths)} to {max(widths)})",
        f"{numbers[config['num_highway_layers']]} highway",
        f"{numbers[config['num_hidden_layers']]} biLSTM layers",
        f"{config['cell_size']} cells, projected to {config['projection_size']}",
        f"{sum(part.numel() for part in weights.values()) / 1e6:.1f} million weights",
        f"({mebibytes:.1f} MiB)",
        f"BiLSTM of 2 x {tagger['task_lstm_size']}",
    ):
        assert fact in read_card(), fact
    # the tagger is on this biLM and says which tags it knows
    shape = ("char_filters", "cell_size", "projection_size", "num_hidden_layers")
    assert [tagger[name] for name in shape] == [config[name] for name in shape]
    tags = list(tagger["id2label"].values())
    card = " ".join(bundled.tagger_files("upos")["README.md"].decode().split())
    assert f"{len(tags)} tags ({', '.join(sorted(tags))})" in card


def test_words_on_the_card_are_those_of_its_sources():
    """Splitting makes more words of a text than it has between blanks: commas, clitics."""
    with (FOLDER / "sources.tsv").open(encoding="utf-8", newline="") as file:
        sources = list(csv.DictReader(file, delimiter="\t"))
    rows = re.findall(r"([\d,]+) \| (\d+) x \|", read_card())
    shown = sum(int(words.replace(",", "")) * int(times) for words, times in rows)
    assert len(rows) == 4
    assert shown == sum(int(source["words"]) * int(source["times"]) for source in sources)
    assert not any("in copyright" in source["licence"] for source in sources)
    textbooks = [source for source in sources if source["source"].startswith("openstax/")]
    credits = read_card().count("OpenStax, Rice University. CC BY 4.0.")
    assert credits == len(textbooks) > 20


def test_bilm_has_the_shape_that_the_recipe_trains():
    config = json.loads((FOLDER / "config.json").read_text())
    shape = json.loads((EXAMPLES / "bundled_model" / "bilm.json").read_text())
    assert shape.items() <= config.items()


@pytest.mark.parametrize(
    ("text", "names"),
    [("Barack Obama was born in Hawaii.", 2), ("It is late, and the dog sleeps.", 0)],
)
def test_the_tagger_of_names_finds_names(text, names):
    [sentence] = ElmoTagger(bundled_tagger("ner"))(text)
    assert len(list(find_spans(sentence.tags))) == names


@pytest.fixture
def packing(tmp_path, monkeypatch):
    """The script that packs, and a folder of the test's own as the bundled model's."""
    folder = tmp_path / "bundled_model"
    folder.mkdir()
    (folder / "README.md").write_text("---\nlicense: other\n---\n\n# A tiny model\n")
    monkeypatch.setattr(bundled, "FOLDER", folder)
    return load_script("bundled_model/pack.py"), folder


def test_a_bilm_and_a_tagger_are_packed_into_one_folder(packing, cache, tmp_path):
    pack, folder = packing
    source = ElmoForPreTraining(tiny_config(lm_vocab_size=7))
    source.save_pretrained(tmp_path / "bilm")
    tokenizer = ElmoTokenizer(max_characters_per_token=WIDTH, word_splitter="english")
    tokenizer.save_pretrained(tmp_path / "bilm")
    pack.pack_bilm(tmp_path / "bilm", folder)
    assert bundled_tasks() == []
    model, report = ElmoModel.from_pretrained(folder, output_loading_info=True)
    assert not any(report.values()) and model.config.lm_vocab_size is None
    packed = ElmoTokenizer.from_pretrained(folder)
    assert packed.max_characters_per_token == WIDTH and packed.word_splitter == "english"
    expected = source.elmo.state_dict()
    for name, part in model.state_dict().items():
        assert name.startswith("mixes") or torch.equal(part, expected[name].half().float())
    # a tagger on what was packed, so that the biLM is shared to the bit
    tagger = ElmoForTokenClassification.from_pretrained(
        folder, id2label={0: "A", 1: "B"}, label2id={"A": 0, "B": 1}, task_lstm_size=6
    )
    tagger.save_pretrained(tmp_path / "tagger")
    pack.pack_tagger(tmp_path / "tagger", "letters", folder)
    assert {path.name for path in folder.iterdir()} == {
        "README.md",
        "config.json",
        "letters.json",
        "letters.safetensors",
        "model.safetensors",
        "tokenizer_config.json",
    }
    assert bundled_tasks() == ["letters"]
    for path in folder.glob("*.safetensors"):
        assert path.stat().st_mode & 0o777 == 0o644
        assert {part.dtype for part in load_file(path).values()} == {torch.float16}
    again = ElmoForTokenClassification.from_pretrained(bundled_tagger("letters"))
    assert again.config.id2label == {0: "A", 1: "B"}
    assert {part.dtype for part in again.parameters()} == {torch.float32}
    for name, part in tagger.state_dict().items():
        assert torch.equal(again.state_dict()[name], part.half().float()), name


def test_a_tagger_on_another_bilm_is_not_packed(packing, tmp_path):
    pack, folder = packing
    ElmoModel(tiny_config()).save_pretrained(tmp_path / "bilm")
    ElmoTokenizer(max_characters_per_token=WIDTH).save_pretrained(tmp_path / "bilm")
    pack.pack_bilm(tmp_path / "bilm", folder)
    ElmoForTokenClassification(tiny_config()).save_pretrained(tmp_path / "tagger")
    before = {path.name for path in folder.iterdir()}
    with pytest.raises(ValueError, match="is not a tagger on the bundled biLM as it is: elmo"):
        pack.pack_tagger(tmp_path / "tagger", "letters", folder)
    assert {path.name for path in folder.iterdir()} == before
