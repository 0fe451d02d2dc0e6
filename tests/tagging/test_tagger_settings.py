"""The settings of a tagger: defaults, options of the script, and combinations that are refused."""

import dataclasses
import re
import sys
from pathlib import Path

import pytest
from datasets import Dataset
from helpers.launch import run
from helpers.tiny import tiny_config

from elmo_hf import ElmoModel
from elmo_hf.pretraining import PretrainingSettings
from elmo_hf.tagging import DataSettings, HubSettings, ModelSettings, TrainingSettings, new_tagger
from elmo_hf.training import parse_settings
from elmo_hf.training.settings import BOUNDS

SCRIPT = "run_pos.py"
GROUPS = (DataSettings, ModelSettings, TrainingSettings, HubSettings)
DEFAULTS = {
    "train_file": None,
    "validation_file": None,
    "test_file": None,
    "dataset_name": None,
    "dataset_config_name": None,
    "token_column": None,
    "tag_column": None,
    "task": "pos",
    "max_train_samples": None,
    "cache_dir": None,
    "no_feature_cache": False,
    "model_name_or_path": "bundled",
    "split": None,
    "finetune_bilm": False,
    "layers": "mix",
    "num_mixes": 1,
    "mix_after_lstm": False,
    "crf": False,
    "crf_constraints": None,
    "task_lstm_size": 200,
    "word_vectors": None,
    "elmo_dropout": 0.0,
    "dropout": 0.5,
    "num_train_epochs": 40,
    "patience": 8,
    "words_per_batch": 300,
    "per_device_train_batch_size": None,
    "gradient_accumulation_steps": 1,
    "learning_rate": 3e-3,
    "bilm_learning_rate": 3e-4,
    "weight_decay": 0.01,
    "mix_l2": 0.001,
    "max_grad_norm": 1.0,
    "warmup_ratio": 0.05,
    "mixed_precision": None,
    "checkpointing_steps": None,
    "seed": 42,
    "report_to": None,
    "overwrite_output_dir": False,
    "output_dir": Path("out"),
    "push_to_hub": False,
    "hub_model_id": None,
    "license": "other",
}


def parse(monkeypatch, *arguments: str) -> dict:
    """All settings that a command line gives."""
    monkeypatch.setattr(sys, "argv", [SCRIPT, "--output_dir", "out", *arguments])
    groups = parse_settings(GROUPS, "Trains a tagger.")
    return {name: value for group in groups for name, value in vars(group).items()}


def test_defaults_are_the_same_in_python_and_on_the_command_line(monkeypatch):
    assert parse(monkeypatch) == DEFAULTS
    made = [
        DataSettings(),
        ModelSettings(),
        TrainingSettings(output_dir=Path("out")),
        HubSettings(),
    ]
    assert {name: value for group in made for name, value in vars(group).items()} == DEFAULTS


def test_options_have_their_types(monkeypatch):
    flags = ["--finetune_bilm", "--no_feature_cache", "--num_mixes", "2", "--mix_after_lstm"]
    others = ["--task", "ner", "--train_file", "a", "--max_train_samples", "3"]
    more = ["--elmo_dropout", "0.5", "--mixed_precision", "bf16", "--per_device_train_batch_size=4"]
    changed = {
        "finetune_bilm": True,
        "no_feature_cache": True,
        "num_mixes": 2,
        "mix_after_lstm": True,
        "task": "ner",
        "train_file": Path("a"),
        "max_train_samples": 3,
        "elmo_dropout": 0.5,
        "mixed_precision": "bf16",
        "per_device_train_batch_size": 4,
    }
    assert parse(monkeypatch, *flags, *others, *more) == DEFAULTS | changed
    assert parse(monkeypatch, "--layers", "1") == DEFAULTS | {"layers": "1"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--finetune_bilmm"], "unrecognized arguments: --finetune_bilmm"),
        (["--task", "chunks"], "invalid choice: 'chunks'"),
        (["--mixed_precision", "int8"], "invalid choice: 'int8'"),
        (["--seed", "x"], "invalid int value: 'x'"),
    ],
)
def test_what_the_command_line_refuses(arguments, sentence, monkeypatch, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(monkeypatch, *arguments)
    assert ended.value.code == 2 and sentence in capsys.readouterr().err


def test_output_dir_is_required(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [SCRIPT])
    with pytest.raises(SystemExit):
        parse_settings(TrainingSettings, None)
    assert "required: --output_dir" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "values", "sentence"),
    [
        (DataSettings, {"dataset_name": "a", "test_file": Path("b")}, "files or --dataset_name"),
        (ModelSettings, {"crf_constraints": "BIO"}, "--crf_constraints BIO requires --crf"),
        (ModelSettings, {"crf_constraints": "BMES", "crf": True}, "one of BIO, IOB1, BIOUL"),
        (ModelSettings, {"mix_after_lstm": True}, "--mix_after_lstm requires --num_mixes 2"),
        (
            ModelSettings,
            {"mix_after_lstm": True, "num_mixes": 2, "task_lstm_size": 0},
            "--mix_after_lstm requires --layers mix and a --task_lstm_size",
        ),
        (ModelSettings, {"num_mixes": 2, "layers": "top"}, "--num_mixes 2 requires --layers mix"),
        (ModelSettings, {"layers": "foo"}, "`layers` is 'foo' but must be one of mix, top, mean"),
        (ModelSettings, {"layers": "-1"}, "`layers` is '-1' but must be"),
        (DataSettings, {"task": "chunks"}, "`task` is 'chunks' but must be one of"),
        (HubSettings, {"push_to_hub": True}, "--push_to_hub requires --hub_model_id"),
    ],
)
def test_combinations_that_make_no_sense(kind, values, sentence):
    with pytest.raises(ValueError, match=sentence):
        kind(**values)


BAD_NUMBERS = {
    DataSettings: {"max_train_samples": 0},
    ModelSettings: {
        "num_mixes": 0, "task_lstm_size": -1, "elmo_dropout": 1, "dropout": 1.0,
    },
    TrainingSettings: {
        "num_train_epochs": 0, "patience": 0, "words_per_batch": 0,
        "per_device_train_batch_size": 0, "gradient_accumulation_steps": 0, "learning_rate": 0,
        "bilm_learning_rate": float("nan"), "weight_decay": -0.1, "mix_l2": float("inf"),
        "max_grad_norm": -1, "warmup_ratio": 1.5, "checkpointing_steps": 0, "seed": -1,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [(kind, *bad) for kind, some in BAD_NUMBERS.items() for bad in some.items()],
)
def test_numbers_without_a_meaning(kind, name, value):
    required = {"output_dir": Path("out")} if kind is TrainingSettings else {}
    with pytest.raises(ValueError, match=f"^`{name}` is {value} but must be "):
        kind(**required, **{name: value})


def test_every_number_has_bounds():
    """So that a new setting cannot be forgotten."""
    for group in (*GROUPS, PretrainingSettings):
        for field in dataclasses.fields(group):
            # a command line that was parsed leaves `int` of `int | None`
            if field.type in (int, float, int | None, float | None):
                assert BOUNDS.keys() & field.metadata.keys(), field.name


def test_a_layer_that_the_model_lacks_is_refused(tmp_path):
    ElmoModel(tiny_config()).save_pretrained(tmp_path)
    train = Dataset.from_dict({"tokens": [["a"]]})
    settings = ModelSettings(model_name_or_path=str(tmp_path), layers="7")
    with pytest.raises(ValueError, match="`layers` is 7 but must be at most 2, the model's top"):
        new_tagger(settings, ["X"], train)
    settings.layers = "2"
    assert new_tagger(settings, ["X"], train).config.output_layer == 2


@pytest.mark.program
def test_script_shows_every_option_and_ends_with_one_sentence(tmp_path):
    text = " ".join(run(SCRIPT, ["--help"]).split())
    shown = set(re.findall(r"--([a-z0-9_]+)", text))
    for field in (field for group in GROUPS for field in dataclasses.fields(group)):
        assert field.name in shown and " ".join(field.metadata["help"].split()) in text
    assert "(default: 0.0)" in text and "data: --train_file" in text
    printed = run(SCRIPT, ["--output_dir", tmp_path, "--push_to_hub"], code=1)
    assert printed.strip() == "Error: --push_to_hub requires --hub_model_id."
    assert "unrecognized arguments" in run(SCRIPT, ["--output_dir", tmp_path, "--sed", 1], code=2)
