"""The model in the package: what it is, how it is reached, and that it has really read."""

import json
import re

import numpy as np
import pytest
import torch
from helpers.launch import EXAMPLES
from safetensors import safe_open
from typer.testing import CliRunner

from elmo_hf import (
    ElmoEmbedder,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoTagger,
    ElmoTokenizer,
    bundled_model,
    bundled_tagger,
)
from elmo_hf.cli import app
from elmo_hf.hub.bundled import FOLDER
from elmo_hf.pages import read_occurrences, study_words

SENTENCE = ["Will", "you", "book", "the", "book", "?"]


def test_weights_are_small_halves_that_load_as_floats():
    files = [FOLDER / "model.safetensors", FOLDER / "tagger" / "head.safetensors"]
    assert sum(file.stat().st_size for file in files) <= 12 * 2**20
    for file in files:
        with safe_open(file, "pt") as weights:
            names = weights.keys()
            assert {weights.get_tensor(name).dtype for name in names} == {torch.float16}
    for model_class, folder in (
        (ElmoModel, bundled_model()),
        (ElmoForTokenClassification, bundled_tagger()),
    ):
        model, told = model_class.from_pretrained(folder, output_loading_info=True)
        assert not any(told.values())
        assert {part.dtype for part in model.parameters()} == {torch.float32}


def test_every_command_knows_its_name(tmp_path):
    run = CliRunner().invoke
    text = tmp_path / "text.txt"
    text.write_text(" ".join(SENTENCE) + "\n")
    assert "biLSTM layer 2" in run(app, ["info", "bundled"]).output
    tagged = run(app, ["tag", "--model", "bundled", str(text)]).output
    assert [line.split("\t")[3] for line in tagged.splitlines() if "\t" in line] == [
        "AUX",
        "PRON",
        "VERB",
        "DET",
        "NOUN",
        "PUNCT",
    ]
    output = tmp_path / "vectors.npy"
    command = ["embed", "--model", "bundled", "--input", str(text), "--output", str(output)]
    assert run(app, command).exit_code == 0
    [vectors] = ElmoEmbedder("bundled").embed([SENTENCE])
    assert np.load(output).shape[0] == len(SENTENCE) and vectors.shape[1] == len(SENTENCE)
    command = ["export", "bundled", "--output_dir", str(tmp_path / "hdf5")]
    assert run(app, command).exit_code == 0


def test_it_is_the_default():
    [mine], [named] = (made.embed([SENTENCE]) for made in (ElmoEmbedder(), ElmoEmbedder("bundled")))
    assert np.array_equal(mine, named)
    [tagged] = ElmoTagger().tag([SENTENCE])
    assert tagged.tags == ["AUX", "PRON", "VERB", "DET", "NOUN", "PUNCT"]


def test_tagger_is_on_the_same_bilm():
    tagger = ElmoForTokenClassification.from_pretrained(bundled_tagger())
    model = ElmoModel.from_pretrained(bundled_model())
    for part in ("token_encoder", "layers"):
        mine, shared = (getattr(of, part).state_dict() for of in (tagger.elmo, model))
        assert all(torch.equal(mine[name], shared[name]) for name in shared)


def test_it_has_read():
    """Neighbours of ambiguous words: by chance, and by layer 0, 44 % have the same sense."""
    rows = read_occurrences(EXAMPLES / "senses" / "sentences.tsv")
    model = ElmoModel.from_pretrained(bundled_model()).eval()
    tokenizer = ElmoTokenizer.from_pretrained(bundled_model())
    shares = [study.shares for study in study_words(model, tokenizer, rows)]
    layer_0, *others = torch.tensor(shares).mean(dim=0).tolist()
    assert layer_0 == pytest.approx(4 / 9) and min(others) > 0.7


def test_card_says_what_it_must():
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    facts = ("cc-by-sa", "WikiText-2", "EWT", "perplexity", "words", "hours", "run_pretrain.py")
    for fact in facts:
        assert fact.lower() in card.lower(), fact
    config = json.loads((FOLDER / "config.json").read_text())
    shape = re.search(r"(\d+) cells, projected to (\d+)", card)
    assert shape and [int(n) for n in shape.groups()] == [
        config["cell_size"],
        config["projection_size"],
    ]
