"""Numbers that others have published, against the published weights, if they are here.

elmo-hf download original --output-dir FOLDER/original
ELMO_HF_PUBLISHED=FOLDER python -m pytest tests/conversion/test_published_numbers.py
"""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

from elmo_hf import ElmoEmbedder, ElmoModel, ElmoTokenizer
from elmo_hf.conversion.convert_allennlp_to_hf import write_converted
from elmo_hf.hub.download import download_model
from elmo_hf.hub.registry import TABLE, read_table

VARIABLE = "ELMO_HF_PUBLISHED"
CARROT = ["I", "ate", "a", "carrot", "for", "breakfast"]
APPLE = ["I", "ate", "an", "apple", "for", "breakfast"]


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """The converted folder of a published model; a test of one that is not here is skipped."""
    made = {}

    def find(name):
        folder = Path(os.environ.get(VARIABLE, "")) / name
        if VARIABLE not in os.environ or not folder.is_dir():
            pytest.skip(f"{VARIABLE} names no folder with the published model {name}")
        if name not in made:
            made[name] = tmp_path_factory.mktemp("published") / name
            origin = download_model(read_table(TABLE).find(name), folder, offline=True)
            write_converted(None, {}, made[name], origin=origin)
        return made[name]

    return find


def assert_ends(vector, first, last=()):
    """The numbers with which a vector begins and ends, as they were printed."""
    found = [*vector[: len(first)], *vector[len(vector) - len(last) :]]
    assert np.allclose(found, [*first, *last], rtol=1e-5, atol=2e-6), found


def test_original_as_in_a_thread_of_allennlp(converted):
    [layers] = ElmoEmbedder(converted("original")).embed([CARROT])
    first, last = (-3.263432, -0.9447762, -0.31986535), (-1.6759347, -0.11119218, 0.4732671)
    assert_ends(layers[2][0], first, last)


def test_original_as_in_the_tutorial_of_allennlp(converted):
    """Its embedder carried the state from the first sentence to the second."""
    folder = converted("original")
    tokenizer, model = ElmoTokenizer.from_pretrained(folder), ElmoModel.from_pretrained(folder)
    state, words = None, []
    for sentence in (APPLE, CARROT):
        batch = tokenizer([sentence], is_split_into_words=True, return_tensors="pt")
        with torch.inference_mode():
            output = model.eval()(**batch, state=state, output_hidden_states=True)
        state = output.state
        words.append(output.hidden_states[2][0, 3])
    distance = 1 - cosine_similarity(words[0], words[1], dim=0).item()
    assert distance == pytest.approx(0.18020617961883545, abs=1e-5)


def test_seqvec_as_in_the_tests_of_bio_embeddings(converted):
    """Only the token layer: its LSTMs were warmed up first."""
    [layers] = ElmoEmbedder(converted("seqvec")).embed([list("PROTEIN")])
    assert layers.shape == (3, 7, 1024)
    assert_ends(layers[0][0], (-0.03642704, 0.02504672, 0.01433664, -0.00364007))


def test_japanese_as_in_a_thread_of_elmoformanylangs(converted):
    embedder = ElmoEmbedder(converted("many-langs-ja"))
    [now] = embedder.embed([["今"]], layers="mean")
    first, last = (-0.23187001, -0.09699917, 0.46900252), (-0.33114347, 0.18502058, -0.27423012)
    assert_ends(now[0], first, last)
    [tide] = embedder.embed([["潮水", "退"]], layers="mean")
    assert_ends(tide[0], (-0.11759937, -0.04552874, 0.22546595))


def test_russian_news_as_in_the_documentation_of_deeppavlov(converted):
    folder = converted("deeppavlov-ru-news")
    tokenizer, model = ElmoTokenizer.from_pretrained(folder), ElmoModel.from_pretrained(folder)
    sentences = [["это", "предложение"], ["word"]]
    batch = tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")
    with torch.inference_mode():
        mix = model.eval()(**batch).last_hidden_state.numpy()
    first, last = (0.05817392, 0.22493343, -0.19202903), (-0.14448944, -0.12425567, 1.0148407)
    assert_ends(mix[0, 0], first, last)
    assert_ends(mix[0, 1], (0.53596294, 0.2868537, 0.28028542))
    assert_ends(mix[1, 0], (0.3433637, 1.0031182, -0.1597258))
