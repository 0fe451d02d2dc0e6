"""The settings of pretraining as Python objects and as the options of the script."""

import dataclasses
import gzip
import json
import os
import re
from pathlib import Path

import pytest
from datasets import Dataset, DatasetDict
from helpers.launch import run
from helpers.tiny import tiny_config

from elmo_hf import ElmoModel
from elmo_hf.pretraining import (
    PretrainingSettings,
    make_model,
    make_vocabulary,
    read_splits,
)
from elmo_hf.pretraining.settings import PRESETS, RECIPES
from elmo_hf.pretraining.training import learning_rate
from elmo_hf.training import parse_settings

SCRIPT = "run_pretrain.py"
DEFAULTS = {
    "train_file": None,
    "validation_file": None,
    "test_file": None,
    "dataset_name": None,
    "dataset_config_name": None,
    "text_column": "text",
    "split": "none",
    "paragraphs": "line",
    "vocab_file": None,
    "preset": "small",
    "config_overrides": None,
    "model_name_or_path": None,
    "recipe": "adamw",
    "learning_rate": None,
    "num_train_epochs": 10,
    "max_train_steps": None,
    "per_device_train_batch_size": 32,
    "window_size": 20,
    "gradient_accumulation_steps": 1,
    "warmup_steps": 200,
    "weight_decay": 0.01,
    "mixed_precision": None,
    "checkpointing_steps": 500,
    "seed": 42,
    "report_to": None,
    "overwrite_output_dir": False,
}


def parse(monkeypatch, *arguments: str) -> PretrainingSettings:
    monkeypatch.setattr("sys.argv", [SCRIPT, *arguments])
    return parse_settings(PretrainingSettings, None)


def test_defaults_on_the_command_line_and_in_python(monkeypatch):
    expected = DEFAULTS | {"train_file": "text.txt", "output_dir": Path("out")}
    parsed = parse(monkeypatch, "--train_file", "text.txt", "--output_dir", "out")
    made = PretrainingSettings(train_file="text.txt", output_dir=Path("out"))
    assert dataclasses.asdict(parsed) == dataclasses.asdict(made) == expected


def test_options_have_their_types(monkeypatch):
    arguments = "--dataset_name d --output_dir o --vocab_file v --learning_rate 1e-3 --seed 7"
    settings = parse(monkeypatch, *arguments.split(), "--recipe", "bilm", "--max_train_steps", "9")
    assert settings.vocab_file == Path("v") and settings.output_dir == Path("o")
    assert (settings.learning_rate, settings.seed, settings.max_train_steps) == (1e-3, 7, 9)


def test_a_recipe_brings_its_learning_rate():
    for name, recipe in RECIPES.items():
        settings = PretrainingSettings(train_file="t", output_dir=Path("o"), recipe=name)
        assert settings.highest_learning_rate == recipe.learning_rate
        settings.learning_rate = 0.5
        assert settings.highest_learning_rate == 0.5
    assert {name: recipe.learning_rate for name, recipe in RECIPES.items()} == {
        "adamw": 5e-3,
        "bilm": 0.2,
    }


def test_learning_rate_warms_up_and_falls_to_a_half():
    settings = PretrainingSettings(train_file="t", output_dir=Path("o"), learning_rate=1.0)
    rates = [learning_rate(settings, step, 4000) for step in range(4001)]
    assert rates[0] == pytest.approx(1 / 200) and rates[200] == max(rates) == 1.0
    assert rates[200:] == sorted(rates[200:], reverse=True) and rates[-1] == pytest.approx(0.5)
    # a short run warms up for a tenth of its steps
    assert learning_rate(settings, 2, 30) == 1.0
    settings.recipe = "bilm"
    assert learning_rate(settings, 0, 4000) == learning_rate(settings, 3999, 4000) == 1.0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"train_file": None}, "Pass either train_file or dataset_name"),
        ({"dataset_name": "d"}, "Pass either train_file or dataset_name"),
        ({"train_file": None, "dataset_name": "d", "test_file": "t"}, "leave validation_file and"),
        ({"preset": "huge"}, "`preset` is 'huge' but must be one of paper, small, tiny."),
        ({"recipe": "sgd"}, "`recipe` is 'sgd' but must be one of adamw, bilm."),
        ({"split": "finnish"}, "`split` is 'finnish' but must be one of none, whitespace, english"),
        ({"split": "english", "paragraphs": "page"}, "`paragraphs` is 'page' but must be one of"),
        ({"paragraphs": "blank"}, "every line is a sentence; name a splitter"),
        ({"window_size": 0}, "`window_size` is 0 but must be at least 1."),
        ({"max_train_steps": -1}, "`max_train_steps` is -1 but must be at least 1."),
        ({"max_train_steps": 0}, "`max_train_steps` is 0 but must be at least 1."),
        ({"checkpointing_steps": 0}, "`checkpointing_steps` is 0 but must be at least 1."),
        ({"per_device_train_batch_size": -1}, "is -1 but must be at least 1."),
        ({"num_train_epochs": 0}, "`num_train_epochs` is 0 but must be at least 1."),
        (
            {"learning_rate": 0.0},
            "`learning_rate` is 0.0 but must be greater than 0 and at most",
        ),
        ({"warmup_steps": -1}, "`warmup_steps` is -1 but must be at least 0."),
        ({"seed": -1}, "`seed` is -1 but must be at least 0"),
    ],
)
def test_bad_settings_are_one_sentence(change, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        PretrainingSettings(**{"train_file": "t", "output_dir": Path("o")} | change)


@pytest.mark.program
def test_a_misspelt_option_is_refused(tmp_path):
    arguments = ["--train_file", "text.txt", "--output_dir", str(tmp_path / "out")]
    printed = run(SCRIPT, [*arguments, "--windowsize", "20"], code=2)
    assert "--windowsize" in printed and "Traceback" not in printed
    assert not (tmp_path / "out").exists()


@pytest.mark.program
def test_help_lists_every_option_and_its_default_under_headings():
    shown = run(SCRIPT, ["--help"])
    headings = ["text:", "model:", "training:"]
    assert [line for line in shown.splitlines() if line in headings] == headings
    printed = " ".join(shown.split())
    for field in dataclasses.fields(PretrainingSettings):
        assert f"--{field.name} " in printed
        default = DEFAULTS.get(field.name)
        assert default in (None, False) or f"(default: {default})" in printed, field.name
    assert "{paper,small,tiny}" in printed and "{adamw,bilm}" in printed
    assert "one tokenised sentence per line" in printed


def test_a_dataset_gives_its_splits(tmp_path):
    rows = {"train": ["a dog", "a cat"], "validation": ["a bird"]}
    splits = {name: Dataset.from_dict({"line": lines}) for name, lines in rows.items()}
    DatasetDict(splits).save_to_disk(tmp_path / "data")
    settings = PretrainingSettings(
        dataset_name=str(tmp_path / "data"), text_column="line", output_dir=tmp_path
    )
    found = read_splits(settings, quiet=True)
    assert found.train.num_sentences == 2 and found.validation.num_words == 2
    assert found.test is None
    assert found.word_counts == {"a": 2, "dog": 1, "cat": 1}
    del splits["train"]
    DatasetDict(splits).save_to_disk(tmp_path / "less")
    settings.dataset_name = str(tmp_path / "less")
    with pytest.raises(ValueError, match="has no split named train"):
        read_splits(settings, quiet=True)


def test_where_the_vocabulary_comes_from(tmp_path, tiny_model):
    (tmp_path / "text.txt").write_text("a dog\na cat\n")
    settings = PretrainingSettings(
        train_file=str(tmp_path / "text.txt"), preset="tiny", output_dir=tmp_path
    )
    # of the text, for a new model
    vocabulary = make_vocabulary(settings, read_splits(settings, quiet=True).word_counts)
    assert vocabulary.words == ["<S>", "</S>", "<UNK>", "a", "cat", "dog"]
    model = make_model(settings, vocabulary)
    assert model.softmax.out_features == 6 and model.config.cell_size == 256
    with pytest.raises(ValueError, match="A new model needs a vocabulary"):
        make_model(settings, None)
    # of the model to continue from, if that is a language model
    model.save_pretrained(tmp_path / "language-model")
    settings.model_name_or_path = str(tmp_path / "language-model")
    splits = read_splits(settings, quiet=True)
    assert splits.word_counts is None
    again = make_model(settings, make_vocabulary(settings, splits.word_counts))
    assert again.vocabulary.words == vocabulary.words
    # of a file, or again of the text for a biLM without a softmax
    words = tmp_path / "words.txt"
    words.write_text("<S>\n</S>\n<UNK>\na\n")
    settings.vocab_file = words
    assert read_splits(settings, quiet=True).word_counts is None
    assert make_vocabulary(settings, None).words[3:] == ["a"]
    tiny_model.save_pretrained(tmp_path / "bilm")
    settings.vocab_file, settings.model_name_or_path = None, str(tmp_path / "bilm")
    assert read_splits(settings, quiet=True).word_counts == {"a": 2, "dog": 1, "cat": 1}


def test_overrides_replace_fields_of_the_preset(tmp_path):
    (tmp_path / "shape.json").write_text(json.dumps({"cell_size": 24}))
    (tmp_path / "words.txt").write_text("<S>\n</S>\n<UNK>\n")
    settings = PretrainingSettings(
        train_file="t",
        preset="tiny",
        vocab_file=tmp_path / "words.txt",
        config_overrides=tmp_path / "shape.json",
        output_dir=tmp_path,
    )
    config = make_model(settings, make_vocabulary(settings, None)).config
    assert config.cell_size == 24
    assert config.projection_size == PRESETS["tiny"]["projection_size"]
    assert PRESETS["tiny"]["cell_size"] == 256


BAD_OVERRIDES = {
    "unknown-field": ('{"cell_sise": 24}', "ElmoConfig has no field 'cell_sise'"),
    "a-list": ("[1]", "holds no JSON object"),
    "cut-off": ('{"cell_size": 2', "is not valid JSON"),
    "deep": ("[" * 100_000, "is nested too deeply"),
    "nothing": ("", "is not valid JSON"),
    "a-size-of-0": ('{"cell_size": 0}', "`cell_size` is 0 but must be at least 1"),
    "a-text": ('{"cell_size": "24"}', "cell_size"),
    "filters": ('{"char_filters": [1, 2]}', "shape.json"),
    "no-filters": ('{"char_filters": null}', "shape.json"),
    "another-model": ('{"model_type": "bert"}', "no field 'model_type'"),
}


@pytest.mark.parametrize(("text", "sentence"), BAD_OVERRIDES.values(), ids=BAD_OVERRIDES)
def test_bad_overrides_are_refused_before_any_text_is_read(text, sentence, tmp_path):
    path = tmp_path / "shape.json"
    path.write_text(text)
    with pytest.raises(ValueError) as raised:
        PretrainingSettings(train_file="t", output_dir=tmp_path, config_overrides=path)
    assert sentence in str(raised.value) and "shape.json" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_truncated_vocabulary_is_one_sentence(tmp_path):
    words = tmp_path / "words.txt.gz"
    words.write_bytes(gzip.compress(b"<S>\n</S>\n<UNK>\n" + os.urandom(999).hex().encode())[:200])
    settings = PretrainingSettings(train_file="t", vocab_file=words, output_dir=tmp_path)
    with pytest.raises(ValueError, match="words.txt.gz' is damaged or truncated after line"):
        make_vocabulary(settings, None)


def test_a_bilm_with_mixes_continues_under_a_new_softmax(tmp_path):
    model = ElmoModel(tiny_config())
    model.save_pretrained(tmp_path)
    (tmp_path / "words.txt").write_text("<S>\n</S>\n<UNK>\na\n")
    settings = PretrainingSettings(
        train_file="t",
        model_name_or_path=str(tmp_path),
        vocab_file=tmp_path / "words.txt",
        output_dir=tmp_path,
    )
    found = make_model(settings, make_vocabulary(settings, None))
    expected = {k: v for k, v in model.state_dict().items() if not k.startswith("mixes.")}
    assert found.elmo.state_dict().keys() == expected.keys()
    assert all(found.elmo.state_dict()[k].equal(v) for k, v in expected.items())
