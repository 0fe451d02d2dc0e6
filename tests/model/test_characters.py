"""The ids of one word, written out by hand and as properties of any word."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_hf.characters import (
    BEGIN_SENTENCE,
    BEGIN_WORD,
    DEFAULT_WIDTH,
    END_SENTENCE,
    END_WORD,
    PADDING,
    VOCAB_SIZE,
    boundary_row,
    decode_row,
    encode_word,
)

characters_with_bytes = st.characters(exclude_categories=["Cs"])  # all but lone surrogates


def test_a_row_is_written_as_bilm_tf_numbers_it():
    assert encode_word("cat", width=7) == [259, 100, 98, 117, 260, 261, 261]


def test_default_width_is_fifty():
    assert len(encode_word("cat")) == len(boundary_row(BEGIN_SENTENCE)) == DEFAULT_WIDTH == 50


def test_empty_word_has_both_markers():
    assert encode_word("", width=4) == [BEGIN_WORD, END_WORD, PADDING, PADDING]


@pytest.mark.parametrize(
    ("marker", "number"), [(BEGIN_SENTENCE, 257), (END_SENTENCE, 258)], ids=["begin", "end"]
)
def test_boundary_row(marker, number):
    assert boundary_row(marker, width=5) == [259, number, 260, 261, 261]


@pytest.mark.parametrize(
    ("word", "kept"),
    [
        ("x" * 47, "x" * 47),
        ("x" * 48, "x" * 48),
        ("x" * 49, "x" * 48),
        ("x" * 10_000, "x" * 48),
        ("é" * 24, "é" * 24),
        ("x" + "é" * 24, "x" + "é" * 23),
    ],
    ids=["47", "48", "49", "10000", "two-byte-48", "cut-inside-a-character"],
)
def test_forty_eight_bytes_are_kept(word, kept):
    row = encode_word(word)
    assert len(row) == 50
    assert END_WORD in row
    assert decode_row(row) == kept


def test_lone_surrogates_have_no_bytes():
    assert encode_word("a\ud800b") == encode_word("ab")


def test_every_byte_of_utf8_has_an_id_of_its_own():
    assert encode_word("\x00\x7f\u00ff", width=6)[1:5] == [1, 0x80, 0xC3 + 1, 0xBF + 1]


@settings(deadline=None)
@given(st.text(), st.integers(min_value=3, max_value=60))
def test_ids_are_in_range_and_never_say_no_word(word, width):
    row = encode_word(word, width)
    assert len(row) == width
    assert all(0 < index < VOCAB_SIZE for index in row)


@settings(deadline=None)
@given(st.text(characters_with_bytes, max_size=12))
def test_short_words_come_back(word):
    assert decode_row(encode_word(word)) == word


@settings(deadline=None)
@given(st.text(characters_with_bytes))
def test_long_words_come_back_as_a_prefix(word):
    assert word.startswith(decode_row(encode_word(word)))


@pytest.mark.parametrize(
    "row", [[0] * 50, boundary_row(BEGIN_SENTENCE)], ids=["no-word", "boundary"]
)
def test_rows_without_bytes_decode_to_nothing(row):
    assert decode_row(row) == ""
