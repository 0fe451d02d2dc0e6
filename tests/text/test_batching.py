"""Batches of sentences of about one length."""

import pytest

from elmo_hf.text.batching import batches_by_length, map_by_length


@pytest.mark.parametrize("budget", [1, 6, 100])
def test_every_sentence_is_in_one_batch_within_the_budget(budget):
    lengths = [3, 0, 7, 3, 1, 2, 3, 9]
    batches = list(batches_by_length(lengths, budget))
    assert sorted(number for batch in batches for number in batch) == list(range(8))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[n] for n in batch) <= budget


def test_longest_first_and_ties_in_order():
    assert list(batches_by_length([2, 5, 2, 2], 4, [3, 0, 1])) == [[1], [3, 0]]
    assert list(batches_by_length([], 4)) == []


def test_results_come_in_the_sentences_order():
    sentences = [["w"] * length for length in (3, 0, 5, 1, 2, 9, 0)]
    batches = []

    def work(batch):
        batches.append([len(words) for words in batch])
        return batches[-1]

    assert list(map_by_length(work, iter(sentences), window=4, budget=6)) == [3, 0, 5, 1, 2, 9, 0]
    assert batches == [[5], [3, 1], [0], [9], [2, 0]]


def test_a_string_is_no_sentence():
    with pytest.raises(ValueError, match="a list of words, not a string; split 'The bank .' first"):
        list(map_by_length(lambda batch: batch, [["fine"], "The bank ."], window=4, budget=6))


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        (None, "A sentence is a list of words, not None"),
        (["a", None], "A word is a string, not None"),
        ([["a"]], r"A word is a string, not \['a'\]"),
    ],
)
def test_a_word_is_a_string(sentence, message):
    with pytest.raises(ValueError, match=message):
        list(map_by_length(lambda batch: batch, [["fine"], sentence], window=4, budget=6))


@pytest.mark.parametrize("number", [0, -1])
def test_a_batch_has_room_for_a_word(number):
    with pytest.raises(ValueError, match=f"`budget` is {number} but must be at least 1"):
        list(batches_by_length([1, 2], number))
    with pytest.raises(ValueError, match=f"`window` is {number} but must be at least 1"):
        list(map_by_length(lambda batch: batch, [["a"]], window=number, budget=6))


def test_a_batch_has_a_most_number_of_sentences():
    sizes = []

    def work(batch):
        sizes.append(len(batch))
        return batch

    sentences = [["w"]] * 5
    assert list(map_by_length(work, sentences, window=9, budget=99, most=2)) == sentences
    assert sizes == [2, 2, 1]
    with pytest.raises(ValueError, match="`batch_size` is 0 but must be at least 1"):
        list(map_by_length(work, sentences, window=9, budget=99, most=0))
