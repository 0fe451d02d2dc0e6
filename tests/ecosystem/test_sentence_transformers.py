"""SentenceTransformer on a plain ELMo folder."""

import numpy as np
from helpers.launch import run
from sentence_transformers import SentenceTransformer

from elmo_hf import ElmoEmbedder, bundled_model

SENTENCES = ["Stocks fell sharply .", "A bat flew out of the cave ."]


def test_a_folder_encodes_as_the_embedder_does(tmp_path):
    model = SentenceTransformer(bundled_model())
    vectors = model.encode(SENTENCES)
    words = [sentence.split() for sentence in SENTENCES]
    expected = ElmoEmbedder().embed(words, layers="mix", pooling="mean")
    np.testing.assert_allclose(vectors, expected, rtol=1e-4, atol=1e-5)
    model.save(str(tmp_path / "saved"))
    again = SentenceTransformer(str(tmp_path / "saved")).encode(SENTENCES)
    np.testing.assert_allclose(again, vectors, rtol=1e-5, atol=1e-6)


def test_example_finds_the_sentences_that_belong_together():
    printed = run("sentence_vectors.py", []).splitlines()
    lines = [line for line in printed if "." in line and "Loading" not in line]
    nearest = dict(zip(lines[::2], (line.split("  ")[-1] for line in lines[1::2]), strict=True))
    assert "bird" in nearest["A small bird sang in the tree."]
    assert "sold" in nearest["The company sold its shares."]
