"""simple_elmo's class: the results that its documentation describes."""

import shutil

import numpy as np
import pytest
import torch
from helpers.many_langs import write_many_langs
from helpers.tiny import random_arrays, tiny_config, write_model

from elmo_hf.conversion.options_map import options_from_config
from elmo_hf.conversion.reference_elmo import run
from elmo_hf.standin.simple_elmo import ElmoModel

CONFIG = tiny_config(max_characters_per_token=50)
SENTENCES = [["The", "bank", "of"], ["Banks"], ["x", "y"]]
WORDS = ["<S>", "</S>", "<UNK>", "bank", "river", "lend"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simple")
    random = np.random.default_rng(5)
    softmax = random.standard_normal((len(WORDS), CONFIG.projection_size)).astype(np.float32)
    bias = np.zeros(len(WORDS), dtype=np.float32)
    write_model(folder, CONFIG, **{"softmax/W": softmax, "softmax/b": bias})
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    return folder


@pytest.fixture
def model(folder):
    model = ElmoModel()
    assert model.load(folder, max_batch_size=2) == "The model is now loaded."
    return model


def reference(sentences, rounds=1):
    """Top layers of one row of batches after each other, the first one read so many times more."""
    state, read = None, []
    for words in [sentences[0]] * (rounds - 1) + sentences:
        layers, state = run(random_arrays(CONFIG), options_from_config(CONFIG), words, state)
        read.append(layers)
    return read[rounds - 1 :]


def test_vectors_go_on_from_batch_to_batch_after_a_warm_up(model):
    assert (model.batch_size, model.vector_size, model.n_layers) == (2, CONFIG.hidden_size, 3)
    found = model.get_elmo_vectors(SENTENCES, layers="all")
    assert found.shape == (3, 3, 3, CONFIG.hidden_size) and found.dtype == np.float64
    # two batches: the third sentence follows the first one
    first, third = reference([SENTENCES[0], SENTENCES[2]], rounds=2)
    np.testing.assert_allclose(found[0], first, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[2, :, :2], third, rtol=1e-4, atol=1e-5)
    assert not found[2, :, 2:].any() and not found[1, :, 1:].any()
    cold = model.get_elmo_vectors(SENTENCES, warmup=False, layers="top")
    np.testing.assert_allclose(cold[0], reference(SENTENCES[:1])[0][-1], rtol=1e-4, atol=1e-5)


def test_layers_are_chosen(model):
    layers = {name: model.get_elmo_vectors(SENTENCES, layers=name) for name in ("all", "top")}
    np.testing.assert_allclose(layers["top"], layers["all"][:, -1])
    mean = model.get_elmo_vectors(SENTENCES)
    np.testing.assert_allclose(mean, layers["all"].mean(axis=1), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="`layers` is 'none'"):
        model.get_elmo_vectors(SENTENCES, layers="none")


def test_averages_are_of_words_only_and_have_length_one(model):
    """Padding does not count, and layers stay apart: neither is so in simple_elmo 0.9.2."""
    for layers in ("average", "all"):
        vectors = model.get_elmo_vectors(SENTENCES, layers=layers)
        found = model.get_elmo_vector_average(SENTENCES, layers=layers)
        for words, sentence, average in zip(SENTENCES, vectors, found, strict=True):
            mean = sentence[..., : len(words), :].mean(axis=-2)
            expected = mean / np.linalg.norm(mean)
            np.testing.assert_allclose(average, expected, rtol=1e-5, atol=1e-6)
    assert not model.get_elmo_vector_average([["a"], []])[1].any()


def test_a_session_goes_on(model):
    session = object()
    first = model.get_elmo_vectors(SENTENCES[:1], warmup=False, session=session)
    second = model.get_elmo_vectors(SENTENCES[:2], warmup=False, session=session)
    assert not np.allclose(first[0], second[0])
    again = model.get_elmo_vectors(SENTENCES[:1], warmup=False)
    np.testing.assert_allclose(again, first)


def test_state_fresh(model, monkeypatch):
    monkeypatch.setenv("ELMO_HF_STANDIN_STATE", "fresh")
    found = model.get_elmo_vectors(SENTENCES, layers="top")
    for words, vectors in zip(SENTENCES, found, strict=True):
        expected = reference([words])[0][-1]
        np.testing.assert_allclose(vectors[: len(words)], expected, rtol=1e-4, atol=1e-5)


def test_substitutes_see_the_whole_sentence(folder, model):
    with pytest.raises(ValueError, match="loaded with `full=True`"):
        model.get_elmo_substitutes(["The bank"])
    full = ElmoModel()
    full.load(folder, full=True)
    (found,) = full.get_elmo_substitutes(["The bank of"], topn=2)
    assert [place["word"] for place in found] == SENTENCES[0]
    top = torch.from_numpy(reference(SENTENCES[:1])[0][-1])
    size = CONFIG.projection_size
    # the last word from the one before it, the first one from the one after it
    for place, direction, hidden in ((2, "forward", top[1, :size]), (0, "backward", top[1, size:])):
        logits = full.model.softmax.weight.detach().double() @ hidden.double()
        # without the two boundaries
        logits[:2] = -torch.inf
        values, numbers = logits.topk(2)
        assert found[place][direction]["candidates"] == numbers.tolist()
        assert found[place][direction]["logp"] == pytest.approx(values.tolist(), abs=1e-3)
        assert found[place][direction]["candidate_words"] == [WORDS[n] for n in numbers]


def test_mistakes_are_those_of_simple_elmo(tmp_path):
    with pytest.raises(SystemExit, match="there is no folder"):
        ElmoModel().load(tmp_path / "none")
    with pytest.raises(ValueError, match="call `load` first"):
        ElmoModel().get_elmo_vectors(SENTENCES)
    write_model(tmp_path, CONFIG)
    with pytest.raises(SystemExit, match="holds no softmax"):
        ElmoModel().load(tmp_path, full=True)


def test_model_hdf5_is_the_model(tmp_path):
    write_model(tmp_path, CONFIG)
    weights = tmp_path / "weights.hdf5"
    shutil.copy(weights, tmp_path / "model.hdf5")
    weights.write_bytes(b"of another model")
    assert ElmoModel().load(tmp_path)


def test_models_of_dictionaries_are_refused(tmp_path):
    write_many_langs(tmp_path)
    with pytest.raises(ValueError, match="models of characters only"):
        ElmoModel().load(tmp_path)
