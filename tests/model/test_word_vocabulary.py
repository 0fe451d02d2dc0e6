"""The vocabulary of the softmax: its order, its files, and files that lack the special words."""

import gzip
from collections import Counter

import pytest

from elmo_hf import WordVocabulary, word_vocabulary


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


def test_a_damaged_or_endless_vocabulary_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "vocab.txt.gz"
    whole = gzip.compress(b"<S>\n</S>\n<UNK>\n")
    for size in (5, len(whole) - 6):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="vocab.txt.gz' is damaged or truncated after line"):
            WordVocabulary.load(path)
    monkeypatch.setattr(word_vocabulary, "ALWAYS_ALLOWED", 1000)
    path.write_bytes(gzip.compress(b"<S>\n</S>\n<UNK>\n" + b"a\n" * 1_000_000))
    with pytest.raises(ValueError, match="unpacks to too much text for a vocabulary"):
        WordVocabulary.load(path)
