"""The network that exporters trace, against the models whose weights it shares, in torch alone."""

import pytest
import torch
from helpers.tiny import random_arrays, tiny_config, tokenize

from elmo_hf import (
    ElmoForPreTraining,
    ElmoForSequenceClassification,
    ElmoForTokenClassification,
    ElmoModel,
)
from elmo_hf.conversion.building import load_model
from elmo_hf.export import PaddedElmo
from elmo_hf.export.onnx import example

MODELS = {
    "bare": (ElmoModel, {}),
    "tagger": (ElmoForTokenClassification, {"task_lstm_size": 6}),
    "two-mixes": (
        ElmoForTokenClassification,
        {"task_lstm_size": 6, "num_output_representations": 2, "mix_after_task_lstm": True},
    ),
    "all-layers": (
        ElmoForTokenClassification,
        {"task_lstm_size": 6, "concatenate_layers": True},
    ),
    "classes-by-mean": (ElmoForSequenceClassification, {"classifier_pooling": "mean"}),
    "classes-by-max": (ElmoForSequenceClassification, {"classifier_pooling": "max"}),
}
BATCHES = {
    "one-word": [["Hi"]],
    "equal-lengths": [["a", "b"], ["c", "d"]],
    "mixed": [["Dogs", "bark", "."], ["Hi"], ["They", "bark", "at", "night", "at", "dogs", "."]],
}


def make_model(name: str):
    """Weights that bend the gates under a random head."""
    model_class, settings = MODELS[name]
    model = model_class(tiny_config(**settings)).eval()
    strong = load_model(tiny_config(), random_arrays(tiny_config())).state_dict()
    bilm = {part: weight for part, weight in strong.items() if "mixes" not in part}
    model.base_model.load_state_dict(bilm, strict=False)
    with torch.no_grad():
        for mix in model.base_model.mixes:
            for weight in mix.parameters():
                weight.copy_(torch.rand_like(weight))
    return model


@torch.no_grad()
@pytest.mark.parametrize("sentences", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("name", MODELS)
def test_values_are_the_models(name, sentences):
    model, batch = make_model(name), tokenize(sentences)
    expected = model(**batch, output_hidden_states=True)
    found = PaddedElmo(model)(batch["input_ids"], batch["attention_mask"])
    live = batch["attention_mask"].bool()
    near = {"rtol": 1e-5, "atol": 1e-6}
    if isinstance(model, ElmoModel):
        vectors, layers = found
        torch.testing.assert_close(vectors, expected.last_hidden_state, **near)
        torch.testing.assert_close(layers, torch.stack(expected.hidden_states, dim=1), **near)
    elif isinstance(model, ElmoForTokenClassification):
        # what a head says of padding does not matter
        torch.testing.assert_close(found[live], expected.logits[live], **near)
    else:
        torch.testing.assert_close(found, expected.logits, **near)


@torch.no_grad()
def test_a_sentence_does_not_depend_on_its_neighbours():
    padded = PaddedElmo(make_model("tagger"))
    sentences = BATCHES["mixed"]
    together = tokenize(sentences)
    found = padded(together["input_ids"], together["attention_mask"])
    for sentence, logits in zip(sentences, found, strict=True):
        batch = tokenize([sentence])
        [expected] = padded(batch["input_ids"], batch["attention_mask"])
        torch.testing.assert_close(logits[: len(sentence)], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("model_class", "settings", "sentence"),
    [
        (ElmoForPreTraining, {"lm_vocab_size": 5}, "ElmoForPreTraining cannot be exported"),
        (ElmoModel, {"mix_layer_norm": True}, "`mix_layer_norm` cannot be exported"),
        (
            ElmoForTokenClassification,
            {"num_word_vectors": 3, "word_vector_size": 2},
            "its own word vectors cannot be exported",
        ),
    ],
)
def test_what_cannot_be_exported_is_reported(model_class, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        PaddedElmo(model_class(tiny_config(**settings)))


@pytest.mark.parametrize("settings", [{"task_lstm_size": 6}, {"concatenate_layers": True}], ids=str)
def test_torch_export_takes_any_shape(settings):
    torch.manual_seed(0)
    model = ElmoForTokenClassification(tiny_config(**settings)).eval()
    padded = PaddedElmo(model)
    batch, words = (torch.export.Dim(name, min=1) for name in ("batch", "words"))
    shape = {0: batch, 1: words}
    shapes = {"input_ids": shape, "attention_mask": shape}
    ids, mask = example(padded, 6, 11)
    with torch.no_grad():
        program = torch.export.export(padded, example(padded, 3, 5), dynamic_shapes=shapes)
        expected = model(input_ids=ids, attention_mask=mask).logits
        found = program.module()(ids, mask)
    live = mask.bool()
    torch.testing.assert_close(found[live], expected[live], rtol=1e-5, atol=1e-6)
