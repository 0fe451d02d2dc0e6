"""ONNX files in onnxruntime, for batches of any shape."""

import numpy as np
import onnxruntime
import pytest
import torch
from helpers.many_langs import write_many_langs
from helpers.tiny import WIDTH, tiny_config
from helpers.word_level import write_word_level
from typer.testing import CliRunner

from elmo_hf import (
    ElmoForSequenceClassification,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoTokenizer,
    bundled_tagger,
)
from elmo_hf.cli import app
from elmo_hf.conversion.convert_allennlp_to_hf import convert
from elmo_hf.export import PaddedElmo
from elmo_hf.export.onnx import example

MODELS = {
    "bare": (ElmoModel, {}),
    "tagger": (ElmoForTokenClassification, {"task_lstm_size": 6}),
    "mixes": (
        ElmoForTokenClassification,
        {"task_lstm_size": 6, "num_output_representations": 2, "mix_after_task_lstm": True},
    ),
    "layers": (ElmoForTokenClassification, {"concatenate_layers": True}),
    "classes": (ElmoForSequenceClassification, {"classifier_pooling": "max"}),
}


def export(model: str, file) -> onnxruntime.InferenceSession:
    result = CliRunner().invoke(app, ["export-onnx", "--model", model, "--output", str(file)])
    assert result.exit_code == 0, result.output
    return onnxruntime.InferenceSession(file)


@torch.no_grad()
def largest_difference(model, session, batch: int, words: int) -> float:
    ids, mask = example(PaddedElmo(model), batch, words)
    output = model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
    wanted = [output.logits] if "logits" in output else [output.last_hidden_state]
    if "logits" not in output:
        wanted.append(torch.stack(output.hidden_states, dim=1))
    found = session.run(None, {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})
    live = mask.numpy()[..., None]
    if isinstance(model, ElmoForSequenceClassification):
        live = 1
    return max(
        float(np.abs((one - other.numpy()) * (live if one.ndim == 3 else 1)).max())
        for one, other in zip(found, wanted, strict=True)
    )


@pytest.mark.parametrize("name", MODELS)
def test_kinds_of_models(name, tmp_path):
    model_class, settings = MODELS[name]
    torch.manual_seed(0)
    model = model_class(tiny_config(**settings)).eval()
    model.save_pretrained(tmp_path / "model")
    session = export(str(tmp_path / "model"), tmp_path / "model.onnx")
    for batch, words in ((1, 1), (2, 7), (5, 3)):
        assert largest_difference(model, session, batch, words) < 1e-5


@pytest.mark.parametrize("kind", ["words and characters", "characters", "words", "word level"])
def test_models_with_dictionaries(kind, tmp_path):
    """Their rows of ids are another size, and a word's own id comes first."""
    if kind == "word level":
        write_word_level(tmp_path / "source")
    else:
        sizes = {"characters": {"word_dim": 0}, "words": {"char_dim": 0}}.get(kind, {})
        write_many_langs(tmp_path / "source", **sizes)
    convert(str(tmp_path / "source"), output_dir=tmp_path / "model")
    model = ElmoModel.from_pretrained(tmp_path / "model").eval()
    session = export(str(tmp_path / "model"), tmp_path / "model.onnx")
    for batch, words in ((1, 1), (2, 7), (5, 3)):
        assert largest_difference(model, session, batch, words) < 1e-5


def test_bundled_tagger_in_fifty_random_shapes(tmp_path):
    session = export(bundled_tagger(), tmp_path / "tagger.onnx")
    model = ElmoForTokenClassification.from_pretrained(bundled_tagger()).eval()
    draw = np.random.default_rng(0)
    shapes = [(int(draw.integers(1, 17)), int(draw.integers(1, 41))) for _ in range(50)]
    assert max(largest_difference(model, session, *shape) for shape in shapes) < 1e-5


def test_what_cannot_be_exported_is_reported(tmp_path):
    ElmoModel(tiny_config(mix_layer_norm=True)).save_pretrained(tmp_path / "model")
    ElmoTokenizer(max_characters_per_token=WIDTH).save_pretrained(tmp_path / "model")
    files = ["--model", str(tmp_path / "model"), "--output", str(tmp_path / "x.onnx")]
    arguments = ["export-onnx", *files]
    result = CliRunner().invoke(app, arguments)
    assert "mix_layer_norm" in str(result.exception) and not (tmp_path / "x.onnx").exists()
    (tmp_path / "x.onnx").write_text("mine")
    result = CliRunner().invoke(app, arguments)
    assert "--overwrite" in str(result.exception)
    assert (tmp_path / "x.onnx").read_text() == "mine"
