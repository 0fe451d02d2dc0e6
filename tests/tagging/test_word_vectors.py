"""Static word vectors: what is read of a file, and what is refused."""

import pytest
import torch
from datasets import Dataset
from helpers.many_langs import write_many_langs
from helpers.word_level import write_word_level

from elmo_hf.conversion.convert_allennlp_to_hf import convert
from elmo_hf.hub.loading import make_tokenizer
from elmo_hf.tagging import ModelSettings, new_tagger
from elmo_hf.tagging.word_vectors import read_word_vectors


def test_vectors_of_the_words_that_are_asked_for(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("3 2\na 1 2\nb 3 4 \nc x y\na 5 6\n")
    words, vectors = read_word_vectors(path, {"a", "b", "z"})
    assert words == ["a", "b"] and torch.equal(vectors, torch.tensor([[1.0, 2.0], [3.0, 4.0]]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1 2\nb 1\n", "line 2: 'b' has 1 numbers where the words before it have 2"),
        ("a 1 x\n", "line 1: 'a' is not followed by numbers alone; correct the line"),
        ("a 1 nan\n", "line 1: 'a' is not followed by finite numbers; correct the line"),
        ("a 1 1e39\n", "line 1: 'a' is not followed by finite numbers; correct the line"),
        ("a\n", "line 1: 'a' is not followed by finite numbers; correct the line"),
        ("c 1 2\n", "has no vector for any of the training words"),
        ("", "has no vector for any of the training words"),
    ],
)
def test_a_bad_line_is_reported(text, message, tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_word_vectors(path, {"a", "b"})


@pytest.mark.parametrize(
    ("write", "known"),
    [
        # of a word-level model, and of code points: "bänk" and "bönk" are the same, and so are two
        # words of 50 characters
        (write_word_level, {"the": 1, "bank": 2}),
        (write_many_langs, {"the": 1, "bank": 2, "rut": 3}),
    ],
)
def test_words_that_look_alike_share_a_vector(tmp_path, write, known):
    write(tmp_path / "source")
    convert(str(tmp_path / "source"), output_dir=tmp_path / "elmo")
    words = ["the", "bank", "rut", "bänk", "bönk", "c" * 60, "c" * 61]
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{word} {number} 0\n" for number, word in enumerate(words, start=1)))
    settings = ModelSettings(model_name_or_path=str(tmp_path / "elmo"), word_vectors=path)
    tagger = new_tagger(settings, ["X"], Dataset.from_dict({"tokens": [words]}))
    assert tagger.config.num_word_vectors == len(known)
    batch = make_tokenizer(tagger)([words], is_split_into_words=True, return_tensors="pt")
    shared = sum(known.values()) / len(known)
    expected = [known.get(word, shared) for word in words]
    assert tagger.word_vectors(batch["input_ids"])[0, :, 0].tolist() == expected
