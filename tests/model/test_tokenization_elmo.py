"""What goes into the tokenizer and what comes out: words, padding, windows, offsets, files."""

import json
import pickle
import sys

import datasets
import numpy as np
import pytest
import torch
from datasets.fingerprint import Hasher
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    AutoTokenizer,
    DataCollatorForTokenClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
)

from elmo_hf import ElmoConfig, ElmoTokenizer
from elmo_hf.characters import BEGIN_SENTENCE, END_SENTENCE, boundary_row, encode_word
from elmo_hf.text_splitting import moses_tokenizer

NOTHING = [0] * 50
TEXT = "Dogs  bark ."
WORDS = ["Dogs", "bark", "."]
SPANS = [(0, 4), (6, 10), (11, 12)]

words_with_bytes = st.text(
    st.characters(exclude_categories=["Cs"]), max_size=12
)  # no lone surrogates, 48 bytes
sentences = st.lists(words_with_bytes.filter(lambda word: word not in ("<S>", "</S>")), max_size=6)


@pytest.fixture
def tokenizer():
    return ElmoTokenizer()


def rows(*words):
    return [encode_word(word) for word in words]


def split(tokenizer, words, **options):
    return tokenizer(words, is_split_into_words=True, **options)


class TestShapes:
    def test_one_text(self, tokenizer):
        assert tokenizer(TEXT) == {"input_ids": rows(*WORDS), "attention_mask": [1, 1, 1]}

    def test_one_split_sentence(self, tokenizer):
        assert split(tokenizer, WORDS) == tokenizer(TEXT)

    def test_batch_of_texts(self, tokenizer):
        batch = tokenizer(["a b", "c"])
        assert batch == {"input_ids": [rows("a", "b"), rows("c")], "attention_mask": [[1, 1], [1]]}

    def test_batch_of_split_sentences(self, tokenizer):
        assert split(tokenizer, [["a", "b"], ["c"]]) == tokenizer(["a b", "c"])

    def test_tuples_are_sentences_not_pairs(self, tokenizer):
        assert split(tokenizer, [("a", "b"), ("c",)]) == tokenizer(["a b", "c"])

    @pytest.mark.parametrize("kind", ["pt", "np"])
    def test_tensors_have_a_batch_axis(self, tokenizer, kind):
        one = tokenizer(TEXT, return_tensors=kind)
        assert one["input_ids"].shape == (1, 3, 50)
        assert one["attention_mask"].shape == (1, 3)
        assert str(one["input_ids"].dtype).endswith("int64")
        assert one["input_ids"].tolist() == [rows(*WORDS)]

    @pytest.mark.parametrize("kind", ["pt", "np"])
    def test_padded_tensor_equals_padded_lists(self, tokenizer, kind):
        texts = ["a b <S>", "", "a"]
        options = {
            "padding": True,
            "return_offsets_mapping": True,
            "return_special_tokens_mask": True,
        }
        lists, tensors = (
            tokenizer(texts, **options),
            tokenizer(texts, return_tensors=kind, **options),
        )
        for key in lists:
            expected = [
                [list(item) if isinstance(item, tuple) else item for item in row]
                for row in lists[key]
            ]
            assert tensors[key].tolist() == expected, key

    def test_tensor_of_ragged_batch_asks_for_padding(self, tokenizer):
        with pytest.raises(ValueError, match="padding=True"):
            tokenizer(["a b", "c"], return_tensors="pt")

    def test_special_tokens_are_left_to_the_model(self, tokenizer):
        assert tokenizer(TEXT, add_special_tokens=True) == tokenizer(TEXT, add_special_tokens=False)
        assert tokenizer.num_special_tokens_to_add() == 0

    def test_datasets_column_is_a_batch(self, tokenizer):
        dataset = datasets.Dataset.from_dict({"tokens": [["a", "b"], ["c"]]})
        assert split(tokenizer, dataset["tokens"]) == tokenizer(["a b", "c"])

    def test_width_is_an_option(self):
        narrow = ElmoTokenizer(max_characters_per_token=5)
        assert narrow("<S> abcd")["input_ids"] == [
            [259, 257, 260, 261, 261],
            [259, 98, 99, 100, 260],
        ]


class TestWords:
    @pytest.mark.parametrize(
        "word",
        ["x y", "", " ", "a<S>b", "a<pad>b", "<pad>", "a\ud800b", "\x00", "語" * 30, "x" * 10_000],
        ids=[
            "space",
            "empty",
            "blank",
            "inner-S",
            "inner-pad",
            "pad",
            "surrogate",
            "nul",
            "cut",
            "10000",
        ],
    )
    def test_a_given_word_stays_one_word(self, tokenizer, word):
        assert split(tokenizer, [word])["input_ids"] == rows(word)
        assert split(tokenizer, ["a", word, "b"])["input_ids"] == rows("a", word, "b")
        assert split(tokenizer, [["a"], [word]], return_tensors="np")["input_ids"][
            1
        ].tolist() == rows(word)

    def test_words_in_texts_may_hold_special_tokens(self, tokenizer):
        assert tokenizer("a<S>b <pad>")["input_ids"] == rows("a<S>b", "<pad>")

    @pytest.mark.parametrize("kind", [None, "np"], ids=["lists", "array"])
    def test_boundary_words(self, kind):
        boundaries = [boundary_row(BEGIN_SENTENCE), boundary_row(END_SENTENCE)]
        for on, expected in [(True, boundaries), (False, rows("<S>", "</S>"))]:
            tokenizer = ElmoTokenizer(boundary_words=on)
            assert np.array_equal(
                tokenizer(["<S> </S>"], return_tensors=kind)["input_ids"], [expected]
            )

    def test_equal_words_of_a_call_have_equal_rows(self, tokenizer):
        assert tokenizer(["a b a", "b"])["input_ids"] == [rows("a", "b", "a"), rows("b")]

    def test_tensors_do_not_share_memory_between_equal_words(self, tokenizer):
        ids = tokenizer("a a", return_tensors="pt")["input_ids"]
        ids[0, 0, 1] = 5
        assert ids[0, 1].tolist() == encode_word("a")

    @settings(deadline=None)
    @given(words=sentences)
    def test_words_come_back(self, words):
        tokenizer = ElmoTokenizer()
        ids = split(tokenizer, words)["input_ids"]
        assert tokenizer.convert_ids_to_tokens(ids) == words
        assert tokenizer.decode(ids) == " ".join(words)

    @settings(deadline=None)
    @given(batch=st.lists(st.lists(st.text(max_size=60), max_size=4), min_size=1, max_size=4))
    def test_batch_equals_singles_and_ids_are_in_range(self, batch):
        tokenizer = ElmoTokenizer()
        together = split(tokenizer, batch, return_offsets_mapping=True)
        singles = [split(tokenizer, words, return_offsets_mapping=True) for words in batch]
        assert {key: [single[key] for single in singles] for key in singles[0]} == together
        assert all(
            0 < index < 262
            for sentence in together["input_ids"]
            for row in sentence
            for index in row
        )

    @settings(deadline=None)
    @given(
        batch=st.lists(sentences, min_size=1, max_size=4), side=st.sampled_from(["left", "right"])
    )
    def test_padding_side_does_not_change_the_live_rows(self, batch, side):
        tokenizer = ElmoTokenizer()
        padded = split(tokenizer, batch, padding=True, padding_side=side, return_tensors="np")
        for words, ids, mask in zip(
            batch, padded["input_ids"], padded["attention_mask"], strict=True
        ):
            assert ids[mask == 1].tolist() == rows(*words)
            assert not ids[mask == 0].any()


class TestEmptySentences:
    @pytest.mark.parametrize(
        ("text", "is_split"),
        [("", False), (" \n", False), ([], True)],
        ids=["text", "blank", "words"],
    )
    def test_alone(self, tokenizer, text, is_split):
        assert tokenizer(text, is_split_into_words=is_split) == {
            "input_ids": [],
            "attention_mask": [],
        }
        assert tokenizer(text, is_split_into_words=is_split, return_tensors="pt")[
            "input_ids"
        ].shape == (1, 0, 50)
        padded = tokenizer(text, is_split_into_words=is_split, padding="max_length", max_length=2)
        assert padded == {"input_ids": [NOTHING, NOTHING], "attention_mask": [0, 0]}

    def test_in_a_batch(self, tokenizer):
        batch = split(tokenizer, [[], ["a"]], padding=True)
        assert batch == {"input_ids": [[NOTHING], rows("a")], "attention_mask": [[0], [1]]}

    def test_all_of_a_batch(self, tokenizer):
        assert tokenizer(["", ""]) == {"input_ids": [[], []], "attention_mask": [[], []]}
        assert tokenizer(["", ""], padding=True, return_tensors="np")["input_ids"].shape == (
            2,
            0,
            50,
        )

    def test_no_sentence(self, tokenizer):
        assert tokenizer([]) == {"input_ids": [], "attention_mask": []}


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "is_split", "message"),
        [
            (
                [["a", "b"]],
                False,
                r"Sentence 0 of the batch is \['a', 'b'\]; pass `is_split_into_words=True`\.",
            ),
            (["a", None], False, r"Sentence 1 of the batch is None; give a string\."),
            (["a", None], True, r"Word 1 of sentence 0 is None; give a string\."),
            ([["a"], ["b", 7]], True, r"Word 1 of sentence 1 is 7; give a string\."),
            ([["a"], "bc"], True, r"Sentence 1 of the batch is 'bc'; give a list of words\."),
            ("a b", True, r"Got 'a b'; pass a list of words, or of such lists\."),
            (7, False, r"Got 7; pass a string, or a list of strings\."),
        ],
        ids=[
            "lists-without-flag",
            "none-text",
            "none-word",
            "int-word",
            "mixed",
            "text-with-flag",
            "int",
        ],
    )
    def test_wrong_input(self, tokenizer, text, is_split, message):
        with pytest.raises(ValueError, match=f"^{message}$"):
            tokenizer(text, is_split_into_words=is_split)

    def test_pairs(self, tokenizer):
        with pytest.raises(ValueError, match="ELMo reads single sentences"):
            tokenizer("a", "b")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"max_characters_per_token": 2}, "is 2; a row needs at least 3"),
            ({"word_splitter": "bert"}, "is 'bert'; choose"),
        ],
        ids=["narrow", "splitter"],
    )
    def test_wrong_options(self, options, message):
        with pytest.raises(ValueError, match=message):
            ElmoTokenizer(**options)

    @pytest.mark.parametrize(
        ("name", "value"), [("stride", -2), ("max_length", -1), ("pad_to_multiple_of", -8)]
    )
    def test_a_number_below_its_range_drops_no_word(self, tokenizer, name, value):
        options = {"padding": True} if name == "pad_to_multiple_of" else {"truncation": True}
        with pytest.raises(ValueError, match=f"`{name}` is {value} but must be at least"):
            tokenizer("a b c d e", return_overflowing_tokens=True, **options, **{name: value})

    def test_stride_that_never_moves(self, tokenizer):
        with pytest.raises(
            ValueError, match="`stride` is 2; choose it smaller than `max_length`, which is 2"
        ):
            tokenizer(
                "a b c", truncation=True, max_length=2, stride=2, return_overflowing_tokens=True
            )

    def test_padding_side(self, tokenizer):
        with pytest.raises(ValueError, match="`padding_side` is 'middle'"):
            tokenizer("a", padding=True, padding_side="middle")


class TestPadding:
    def test_longest(self, tokenizer):
        batch = tokenizer(["a b", "c"], padding="longest", return_special_tokens_mask=True)
        assert batch["input_ids"] == [rows("a", "b"), [*rows("c"), NOTHING]]
        assert batch["attention_mask"] == [[1, 1], [1, 0]]
        assert batch["special_tokens_mask"] == [[0, 0], [0, 1]]

    @pytest.mark.parametrize("as_argument", [True, False], ids=["argument", "attribute"])
    def test_left(self, as_argument):
        tokenizer = ElmoTokenizer() if as_argument else ElmoTokenizer(padding_side="left")
        batch = tokenizer(
            ["a b", "c"], padding=True, **({"padding_side": "left"} if as_argument else {})
        )
        assert batch["input_ids"] == [rows("a", "b"), [NOTHING, *rows("c")]]
        assert batch["attention_mask"] == [[1, 1], [0, 1]]
        assert batch.word_ids(1) == [None, 0]

    def test_max_length(self, tokenizer):
        assert tokenizer("a", padding="max_length", max_length=3)["input_ids"] == [
            *rows("a"),
            NOTHING,
            NOTHING,
        ]
        assert ElmoTokenizer(model_max_length=2)("a", padding="max_length")["input_ids"] == [
            *rows("a"),
            NOTHING,
        ]

    def test_multiple(self, tokenizer):
        assert len(tokenizer("a b c", padding=True, pad_to_multiple_of=4)["input_ids"]) == 4

    def test_length_counts_padding(self, tokenizer):
        assert tokenizer(["a b", "c"], padding=True, return_length=True)["length"] == [2, 2]
        assert tokenizer("a b", return_length=True)["length"] == 2

    def test_mask_on_request_only(self, tokenizer):
        assert "attention_mask" not in tokenizer("a", return_attention_mask=False)
        assert tokenizer("a", return_token_type_ids=True)["token_type_ids"] == [0]


class TestWindows:
    @pytest.mark.parametrize(("side", "kept"), [("right", ["a", "b"]), ("left", ["c", "d"])])
    def test_truncation_counts_words(self, side, kept):
        tokenizer = ElmoTokenizer(truncation_side=side)
        batch = tokenizer("a b c d", truncation=True, max_length=2, return_offsets_mapping=True)
        assert batch["input_ids"] == rows(*kept)
        assert batch.tokens() == kept
        assert batch.word_ids() == ["abcd".index(word) for word in kept]
        assert batch["offset_mapping"] == [(2 * place, 2 * place + 1) for place in batch.word_ids()]

    def test_to_nothing(self, tokenizer):
        assert tokenizer("a b", truncation=True, max_length=0)["input_ids"] == []

    def test_model_max_length_is_used_without_a_warning_when_not_cutting(self, caplog):
        tokenizer = ElmoTokenizer(model_max_length=2)
        assert len(tokenizer("a b c", truncation=True)["input_ids"]) == 2
        assert len(tokenizer("a b c")["input_ids"]) == 3
        assert not caplog.records

    @pytest.mark.parametrize("side", ["right", "left"])
    @pytest.mark.parametrize(
        ("limit", "stride"), [(2, 0), (3, 0), (3, 1), (3, 2), (5, 1), (9, 0)], ids=str
    )
    def test_overflow_agrees_with_a_rust_tokenizer(self, rust_tokenizer, side, limit, stride):
        texts = ["a b  c d e", "b", "", "a b c"]
        ours = ElmoTokenizer(truncation_side=side)
        rust_tokenizer.truncation_side = side
        options = {
            "truncation": True,
            "max_length": limit,
            "stride": stride,
            "padding": True,
            "return_overflowing_tokens": True,
            "return_offsets_mapping": True,
            "return_special_tokens_mask": True,
            "return_length": True,
        }
        found, expected = ours(texts, **options), rust_tokenizer(texts, **options)
        assert list(found) == list(expected)
        assert [ours.convert_ids_to_tokens(sentence) for sentence in found["input_ids"]] == [
            rust_tokenizer.convert_ids_to_tokens(sentence) for sentence in expected["input_ids"]
        ]
        for key in expected.keys() - {"input_ids"}:
            assert found[key] == expected[key], key
        for number in range(len(expected["input_ids"])):
            assert found.tokens(number) == expected.tokens(number)
            assert found.word_ids(number) == expected.word_ids(number)
            assert found.sequence_ids(number) == expected.sequence_ids(number)

    def test_overflow_of_one_sentence_is_a_batch(self, tokenizer):
        found = tokenizer("a b c", truncation=True, max_length=2, return_overflowing_tokens=True)
        assert found["input_ids"] == [rows("a", "b"), rows("c")]
        assert found["overflow_to_sample_mapping"] == [0, 0]


@pytest.fixture
def rust_tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: number for number, word in enumerate(["<pad>", "a", "b", "c", "d", "e"])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>")


class TestAlignment:
    def test_offsets_of_a_text(self, tokenizer):
        batch = tokenizer(TEXT, return_offsets_mapping=True)
        assert batch["offset_mapping"] == SPANS
        assert [TEXT[start:end] for start, end in SPANS] == batch.tokens() == WORDS

    def test_offsets_of_given_words_count_inside_each_word(self, tokenizer):
        batch = split(tokenizer, [["ab", "c d"], ["e"]], padding=True, return_offsets_mapping=True)
        assert batch["offset_mapping"] == [[(0, 2), (0, 3)], [(0, 1), (0, 0)]]

    def test_questions_agree_with_a_rust_tokenizer(self, tokenizer, rust_tokenizer):
        texts = ["a b  c", "d"]
        ours, theirs = tokenizer(texts, padding=True), rust_tokenizer(texts, padding=True)
        assert ours.is_fast
        for sentence in range(2):
            for place in range(7):
                for question in (
                    "token_to_word",
                    "token_to_sequence",
                    "token_to_chars",
                    "word_to_tokens",
                ):
                    expected = getattr(theirs, question)(sentence, place)
                    assert getattr(ours, question)(sentence, place) == expected, (
                        question,
                        sentence,
                        place,
                    )
                for question in ("char_to_token", "char_to_word"):
                    for sequence in range(2):
                        expected = getattr(theirs, question)(sentence, place, sequence)
                        assert getattr(ours, question)(sentence, place, sequence) == expected, (
                            question,
                            place,
                        )
        assert ours.word_to_chars(0, 2) == theirs.word_to_chars(0, 2) == (5, 6)
        assert ours.n_sequences == theirs.n_sequences == 1

    @settings(deadline=None)
    @given(text=st.text(st.sampled_from("ab \t\n\x1c\x85\xa0\u2003\u3000\u200b\ufeff")))
    def test_texts_are_split_like_str_split(self, text):
        batch = ElmoTokenizer()(text, return_offsets_mapping=True)
        assert (
            batch.tokens()
            == text.split()
            == [text[start:end] for start, end in batch["offset_mapping"]]
        )

    def test_tokenize_is_the_splitter(self, tokenizer):
        assert tokenizer.tokenize("a<S>b  c") == ["a<S>b", "c"]


class TestMoses:
    def test_punctuation_is_split_and_not_escaped(self):
        batch = ElmoTokenizer(word_splitter="moses")(
            "Mr. Smith's <dog> & cat.", return_offsets_mapping=True
        )
        assert batch.tokens() == ["Mr.", "Smith", "'s", "<", "dog", ">", "&", "cat", "."]
        assert batch["offset_mapping"][:4] == [(0, 3), (4, 9), (9, 11), (12, 13)]

    def test_language(self):
        text = "l'amour"
        assert ElmoTokenizer(word_splitter="moses").tokenize(text) == ["l", "'amour"]
        assert ElmoTokenizer(word_splitter="moses", language="fr").tokenize(text) == ["l'", "amour"]

    @settings(deadline=None)
    @given(text=st.text(st.sampled_from("aA1 .,'\"-…$%&<>\t\x00\x1f\xa0é語")))
    def test_spans_hold_the_words(self, text):
        batch = ElmoTokenizer(word_splitter="moses")(text, return_offsets_mapping=True)
        spans = batch["offset_mapping"]
        assert [text[start:end] for start, end in spans] == batch.tokens()
        assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))

    def test_a_word_that_is_not_in_the_text(self):
        # sacremoses hides dots behind this marker and cannot tell its own from ours
        with pytest.raises(
            ValueError, match=r"made the word '\.\.', which is not in 'DOTDOTMULTI'"
        ):
            ElmoTokenizer(word_splitter="moses")("DOTDOTMULTI")

    def test_given_words_are_not_split(self):
        assert split(ElmoTokenizer(word_splitter="moses"), ["it's"]).tokens() == ["it's"]

    def test_without_sacremoses(self, monkeypatch):
        moses_tokenizer.cache_clear()
        monkeypatch.setitem(sys.modules, "sacremoses", None)
        with pytest.raises(ImportError, match=r"pip install .elmo_hf\[moses\]"):
            ElmoTokenizer(word_splitter="moses")("a")


class TestDecoding:
    def test_row_sentence_and_batch(self, tokenizer):
        ids = tokenizer(["Dogs bark", "語"], padding=True, return_tensors="pt")["input_ids"]
        assert tokenizer.decode(ids[0, 1]) == "bark"
        assert tokenizer.decode(ids[1]) == "語"
        assert tokenizer.decode(ids) == tokenizer.batch_decode(ids.numpy()) == ["Dogs bark", "語"]
        assert tokenizer.batch_decode([ids[0].tolist(), []]) == ["Dogs bark", ""]

    def test_absent_words_are_left_out(self, tokenizer):
        assert (
            tokenizer.decode(NOTHING)
            == tokenizer.decode([NOTHING, NOTHING])
            == tokenizer.decode([])
            == ""
        )
        assert tokenizer.decode([[], []]) == ["", ""]

    def test_boundary_words_are_special(self, tokenizer):
        ids = tokenizer("<S> a")["input_ids"]
        assert tokenizer.decode(ids) == "<S> a"
        assert tokenizer.decode(ids, skip_special_tokens=True) == "a"

    def test_spelled_out_boundaries_are_words(self):
        tokenizer = ElmoTokenizer(boundary_words=False)
        assert (
            tokenizer.decode(tokenizer("<S> a")["input_ids"], skip_special_tokens=True) == "<S> a"
        )

    def test_ids_to_tokens(self, tokenizer):
        assert tokenizer.convert_ids_to_tokens(encode_word("a")) == "a"
        assert tokenizer.convert_ids_to_tokens([*rows("a"), NOTHING]) == ["a", "<pad>"]
        assert tokenizer.convert_ids_to_tokens([*rows("a"), NOTHING], skip_special_tokens=True) == [
            "a"
        ]
        assert tokenizer.convert_ids_to_tokens(98) == "<0x61>"

    def test_tokens_to_ids(self, tokenizer):
        assert tokenizer.convert_tokens_to_ids("<0x61>") == 98
        assert tokenizer.convert_tokens_to_ids(["a", "b"]) == rows("a", "b")


class TestPad:
    @pytest.mark.parametrize(
        "convert", [list, np.array, torch.tensor], ids=["lists", "numpy", "torch"]
    )
    def test_list_of_examples(self, tokenizer, convert):
        examples = [
            {key: convert(value) for key, value in tokenizer(text).items()} for text in ("a b", "c")
        ]
        found = tokenizer.pad(examples, return_tensors="np")
        assert found["input_ids"].tolist() == [rows("a", "b"), [*rows("c"), NOTHING]]
        assert found["attention_mask"].tolist() == [[1, 1], [1, 0]]

    @pytest.mark.parametrize(
        "convert", [list, np.array, torch.tensor], ids=["lists", "numpy", "torch"]
    )
    def test_one_example_and_its_type(self, tokenizer, convert):
        example = {key: convert(value) for key, value in tokenizer("a b").items()}
        found = tokenizer.pad(example, padding="max_length", max_length=3)
        assert type(found["input_ids"]) is type(example["input_ids"])
        assert np.array_equal(found["input_ids"], [*rows("a", "b"), NOTHING])
        assert np.array_equal(found["attention_mask"], [1, 1, 0])

    def test_batch_as_one_dictionary(self, tokenizer):
        texts = ["a b", "", "c"]
        options = {"return_special_tokens_mask": True, "return_token_type_ids": True}
        assert tokenizer.pad(tokenizer(texts, **options)) == tokenizer(
            texts, padding=True, **options
        )

    @pytest.mark.parametrize("texts", [[""], ["", ""], ["", "a"]], ids=["one", "two", "first"])
    def test_empty_sentences(self, tokenizer, texts):
        assert tokenizer.pad([tokenizer(text) for text in texts]) == tokenizer(texts, padding=True)
        assert tokenizer.pad(tokenizer(""), padding="max_length", max_length=1)["input_ids"] == [
            NOTHING
        ]

    def test_left_multiple_and_missing_mask(self, tokenizer):
        found = tokenizer.pad({"input_ids": rows("a")}, pad_to_multiple_of=2, padding_side="left")
        assert found == {"input_ids": [NOTHING, *rows("a")], "attention_mask": [0, 1]}

    def test_input_is_left_alone(self, tokenizer):
        examples = [dict(tokenizer("a b")), dict(tokenizer("c"))]
        tokenizer.pad(examples)
        assert examples == [tokenizer("a b"), tokenizer("c")]

    @pytest.mark.parametrize(
        ("features", "message"),
        [
            ({"labels": [1]}, r"Got \['labels'\] to pad"),
            ([], r"Got \[\] to pad"),
            ({"input_ids": [[1, 2]]}, r"shape \(1, 2\).*rows of 50 ids"),
            ({"input_ids": [1, 2]}, r"shape \(2,\).*rows of 50 ids"),
            ([{"input_ids": [1]}, {"input_ids": [1, 2]}], r"shape \(1,\).*rows of 50 ids"),
        ],
        ids=["no-ids", "nothing", "narrow", "one-row", "no-rows"],
    )
    def test_refusals(self, tokenizer, features, message):
        with pytest.raises(ValueError, match=message):
            tokenizer.pad(features)

    @pytest.mark.parametrize("side", ["right", "left"])
    def test_token_classification_collator(self, side):
        tokenizer = ElmoTokenizer(padding_side=side)
        examples = [{**tokenizer("a b c"), "labels": [1, 2, 3]}, {**tokenizer("d"), "labels": [4]}]
        batch = DataCollatorForTokenClassification(tokenizer)(examples)
        assert batch["input_ids"].shape == (2, 3, 50)
        live = batch["attention_mask"].bool()
        assert batch["labels"][live].tolist() == [1, 2, 3, 4]
        assert (batch["labels"][~live] == -100).all()

    def test_padding_collator(self, tokenizer):
        batch = DataCollatorWithPadding(tokenizer)(
            [{**tokenizer("a b"), "label": 0}, {**tokenizer(""), "label": 1}]
        )
        assert batch["input_ids"].shape == (2, 2, 50)
        assert batch["labels"].tolist() == [0, 1]


class TestVocabulary:
    def test_numbers(self, tokenizer):
        assert len(tokenizer) == tokenizer.vocab_size == len(tokenizer.get_vocab()) == 262
        assert sorted(tokenizer.get_vocab().values()) == list(range(262))
        assert (tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id) == (
            0,
            257,
            258,
        )
        assert tokenizer.all_special_ids == [257, 258, 0]

    def test_names_and_ids_are_one_to_one(self, tokenizer):
        for name, index in tokenizer.get_vocab().items():
            assert tokenizer.convert_tokens_to_ids(name) == index
            assert tokenizer.convert_ids_to_tokens(index) == name

    def test_is_fast(self, tokenizer):
        assert tokenizer.is_fast


OPTIONS = {
    "max_characters_per_token": 20,
    "boundary_words": False,
    "word_splitter": "moses",
    "language": "fr",
    "model_max_length": 7,
    "padding_side": "left",
}


class TestKeeping:
    @pytest.mark.parametrize("loader", [ElmoTokenizer, AutoTokenizer], ids=["class", "auto"])
    def test_save_and_load(self, tmp_path, loader):
        tokenizer = ElmoTokenizer(**OPTIONS)
        tokenizer.save_pretrained(tmp_path)
        ElmoConfig().save_pretrained(tmp_path)
        again = loader.from_pretrained(tmp_path)
        assert type(again) is ElmoTokenizer
        assert {name: getattr(again, name) for name in OPTIONS} == OPTIONS
        assert again.get_vocab() == tokenizer.get_vocab()
        assert again("<S> l'amour") == tokenizer("<S> l'amour")

    def test_options_are_in_the_file(self, tmp_path):
        ElmoTokenizer(**OPTIONS).save_pretrained(tmp_path)
        assert (
            OPTIONS.items() <= json.loads((tmp_path / "tokenizer_config.json").read_text()).items()
        )

    @pytest.mark.parametrize("splitter", ["whitespace", "moses"])
    def test_pickle(self, splitter):
        tokenizer = ElmoTokenizer(word_splitter=splitter)
        batch = tokenizer(["a b", "c"], padding=True)
        again = pickle.loads(pickle.dumps(tokenizer))
        assert again(["a b", "c"], padding=True) == batch
        assert pickle.loads(pickle.dumps(batch)).word_ids(1) == [0, None]

    @pytest.mark.parametrize("splitter", ["whitespace", "moses"])
    def test_fingerprint_does_not_change_with_use(self, splitter):
        tokenizer = ElmoTokenizer(word_splitter=splitter)
        before = Hasher.hash(tokenizer)
        tokenizer(["a b", "c"], padding=True, truncation=True, max_length=1, return_tensors="pt")
        DataCollatorWithPadding(tokenizer)([tokenizer("a b"), tokenizer("c")])
        assert (
            Hasher.hash(tokenizer) == before == Hasher.hash(ElmoTokenizer(word_splitter=splitter))
        )

    def test_datasets_map(self, tokenizer):
        dataset = datasets.Dataset.from_dict({"tokens": [["a", "b c"], [], ["<S>"]]})
        mapped = dataset.map(
            lambda batch: tokenizer(batch["tokens"], is_split_into_words=True), batched=True
        )
        assert mapped["input_ids"][:] == split(tokenizer, dataset["tokens"][:])["input_ids"]
        assert mapped["attention_mask"][:] == [[1, 1], [], [1]]
