"""Static word vectors: what is read of a file, and what is refused."""

import pytest
import torch

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
