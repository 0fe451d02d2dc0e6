"""AllenNLP's own fixture: TensorFlow's embeddings of 30 sentences, at its tests' tolerance."""

import json

import h5py
import numpy as np
import pytest
import torch
from helpers.references import allennlp_fixtures
from helpers.tiny import tokenize

from elmo_hf.conversion.building import load_converted
from elmo_hf.conversion.formats.bilm_hdf5 import Source, open_files

ATOL = 1e-6  # with numpy's default rtol of 1e-5, as in AllenNLP's and bilm-tf's tests


@pytest.fixture(scope="module")
def fixtures():
    return allennlp_fixtures()


@pytest.fixture(scope="module", params=["plain", "prepared"])
def golden_model(request, fixtures):
    with open_files(Source(fixtures / "options.json", fixtures / "lm_weights.hdf5")) as weights:
        model, _ = load_converted(weights)
    return model.prepare_for_inference() if request.param == "prepared" else model


def sentences(fixtures):
    texts = json.loads((fixtures / "sentences.json").read_text())
    return [[sentence.split() for sentence in row] for row in texts]


def test_carried_state_gives_the_embeddings_of_tensorflow(fixtures, golden_model):
    """Three rows, ten batches, the state carried from batch to batch."""
    rows = sentences(fixtures)
    expected = [h5py.File(fixtures / f"lm_embeddings_{row}.hdf5") for row in range(3)]
    state, largest, compared = None, 0.0, 0
    for number in range(10):
        words = [row[number] for row in rows]
        with torch.inference_mode():
            output = golden_model(
                **tokenize(words, width=50), state=state, output_hidden_states=True
            )
        state = output.state
        for row, file in enumerate(expected):
            truth = np.concatenate(list(file[str(number)][...]), axis=-1)
            ours = output.hidden_states[-1][row, : len(words[row])].numpy()
            np.testing.assert_allclose(ours, truth, atol=ATOL, rtol=1e-5)
            largest = max(largest, np.abs(ours - truth).max())
            compared += len(truth)
    print(f"\nlargest difference over {compared} words: {largest:.1e}")
    assert compared == sum(len(sentence) for row in rows for sentence in row)


def test_token_layer_gives_the_embeddings_of_tensorflow(fixtures, golden_model):
    words = (fixtures / "vocab_test.txt").read_text(encoding="utf-8").split()
    with h5py.File(fixtures / "elmo_token_embeddings.hdf5") as file:
        truth = file["embedding"][...]
    batch = tokenize([[word] for word in words], width=50)
    with torch.inference_mode():
        layer = golden_model(**batch, output_hidden_states=True).hidden_states[0]
    assert len(truth) == len(words) == 458
    np.testing.assert_allclose(layer[:, 0, :16].numpy(), truth, atol=ATOL, rtol=1e-5)
    assert torch.equal(layer[..., :16], layer[..., 16:])


def relative_error(ours, truth):
    return float((ours - truth).abs().max() / truth.abs().max())


def test_vectors_do_not_depend_on_batch_order_or_padding(fixtures, golden_model):
    words = [sentence for row in sentences(fixtures) for sentence in row]
    words = (words * 3)[:64]

    def layers(**batch):
        with torch.inference_mode():
            return torch.stack(golden_model(**batch, output_hidden_states=True).hidden_states)

    together = layers(**tokenize(words, width=50))
    reversed_order = layers(**tokenize(words[::-1], width=50)).flip(1)
    left = layers(
        **tokenize(words, width=50, padding="max_length", max_length=90, padding_side="left")
    )
    for number, sentence in enumerate(words):
        alone = layers(**tokenize([sentence], width=50))[:, 0]
        size = len(sentence)
        for other in (
            together[:, number, :size],
            reversed_order[:, number, :size],
            left[:, number, -size:],
        ):
            assert relative_error(other, alone) <= 1e-6
