"""The vocabulary of the softmax: its order, its files, and files that lack the special words."""

import gzip
from collections import Counter

import pytest

from elmo_hf import WordVocabulary


def test_vocabulary_is_sorted_by_frequency():
    counts = Counter({"b": 3, "a": 3, "rare": 1, "top": 9, "<S>": 50})
    assert WordVocabulary.of_counts(counts).words[3:] == ["top", "a", "b", "rare"]
    assert WordVocabulary.of_counts(counts, min_count=2).words[3:] == ["top", "a", "b"]
    small = WordVocabulary.of_counts(counts, max_size=4)
    assert small.words == ["<S>", "</S>", "<UNK>", "top"]
    assert small.number("top") == 3 and small.number("rare") == small.unknown == 2


@pytest.mark.parametrize("name", ["vocab.txt", "vocab.txt.gz"])
def test_vocabulary_files(tmp_path, name):
    """Like the published ones: the special words in another order, and a last line that is none."""
    text = "</S>\n<S>\n<UNK>\nthe\n\xa0odd\n!!!MAXTERMID\n".encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    vocabulary = WordVocabulary.load(path)
    assert (vocabulary.begin, vocabulary.end, vocabulary.unknown) == (1, 0, 2)
    assert vocabulary.words[3:] == ["the", "\xa0odd"]
    vocabulary.save(tmp_path / "again.txt")
    assert WordVocabulary.load(tmp_path / "again.txt").words == vocabulary.words


def test_vocabulary_without_the_special_words(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("<S>\nthe\n")
    with pytest.raises(ValueError, match="vocab.txt': The vocabulary has no line </S>, <UNK>"):
        WordVocabulary.load(path)
    path.write_bytes(b"<S>\n\xff\n")
    with pytest.raises(ValueError, match="is not UTF-8"):
        WordVocabulary.load(path)
