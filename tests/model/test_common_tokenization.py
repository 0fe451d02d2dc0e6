"""transformers' own tokenizer suite, on `ElmoTokenizer`.

It comes out of the sdist of the installed transformers (`references.py`). A test is overridden for
one of four reasons, named above it, and the override checks the same thing for our tokenizer:

- ROWS: the suite takes a token's id for a number, and ours is a row of numbers;
- PAIRS: the suite encodes pairs of sentences, and ours refuses them;
- OVERFLOW: the suite expects a Python tokenizer to return overflow as a list of left-over ids, and
  ours returns windows like a Rust tokenizer;
- SKIP: the suite skips all Python tokenizers, and ours can do it.
"""

import sys
import tempfile
import unittest

import pytest
from helpers.references import transformers_suites
from parameterized import parameterized

sys.path.insert(0, str(transformers_suites()))

import tests.test_tokenization_common as suite

from elmo_hf import ElmoConfig, ElmoTokenizer
from elmo_hf.characters import encode_word

NOTHING = [0] * 50
TEXT = "The bank of the river was green ."


# the suite's tests of chat templates leave files open
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
class ElmoTokenizationTest(suite.TokenizerTesterMixin, unittest.TestCase):
    tokenizer_class = ElmoTokenizer
    test_tokenizer_from_extractor = False  # it reads the vocabulary of a tokenizer.json

    integration_expected_tokens = suite.input_string.split()
    integration_expected_token_ids = [encode_word(word) for word in integration_expected_tokens]
    integration_expected_decoded_text = " ".join(integration_expected_tokens)

    @classmethod
    def setUpClass(cls):
        # the suite loads a published tokenizer; a folder takes its place
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        ElmoTokenizer().save_pretrained(folder.name)
        ElmoConfig().save_pretrained(folder.name)
        cls.from_pretrained_id = folder.name
        super().setUpClass()

    # ROWS: it searches the vocabulary for tokens that are letters
    def get_clean_sequence(self, tokenizer, with_prefix_space=False, max_length=20, min_length=5):
        text = " " * with_prefix_space + TEXT
        return text, tokenizer.encode(text)

    def assert_refuses_pairs(self, tokenizer):
        words = TEXT.split()
        for calls in [
            lambda: tokenizer(TEXT, TEXT),
            lambda: tokenizer([TEXT], [TEXT]),
            lambda: tokenizer([(TEXT, TEXT)]),
            lambda: tokenizer.encode(TEXT, TEXT),
            lambda: tokenizer(words, words, is_split_into_words=True),
        ]:
            self.assertRaises(ValueError, calls)

    # ROWS
    @parameterized.expand([(True,), (False,)])
    def test_encode_plus_with_padding(self, use_padding_as_call_kwarg):
        tokenizer = self.get_tokenizer()
        options = {"return_special_tokens_mask": True}
        plain = tokenizer("Sequence", **options)
        for padding in (True, False):
            self.assertEqual(tokenizer("Sequence", padding=padding, **options), plain)
        for side in ("right", "left"):
            call = {"padding": "max_length", "max_length": 11, **options}
            if use_padding_as_call_kwarg:
                call["padding_side"] = side
            else:
                tokenizer.padding_side = side
            padded = tokenizer("Sequence", **call)
            for key, fill in [
                ("input_ids", NOTHING),
                ("attention_mask", 0),
                ("special_tokens_mask", 1),
            ]:
                padding = [fill] * 10
                expected = plain[key] + padding if side == "right" else padding + plain[key]
                self.assertEqual(padded[key], expected)

    # ROWS
    def test_encode_basic_padding(self):
        tokenizer = self.get_tokenizer()
        ids = tokenizer.encode("Sequence")
        for side, expected in [("right", [*ids, NOTHING]), ("left", [NOTHING, *ids])]:
            tokenizer.padding_side = side
            padded = tokenizer.encode("Sequence", max_length=2, padding="max_length")
            self.assertEqual(padded, expected)

    # ROWS
    def test_padding_with_attention_mask(self):
        tokenizer = self.get_tokenizer()
        row = encode_word("a")
        features = [
            {"input_ids": [row] * 6, "attention_mask": [1, 1, 1, 1, 1, 0]},
            {"input_ids": [row] * 3, "attention_mask": [1, 1, 0]},
        ]
        expected = {"right": [1, 1, 0, 0, 0, 0], "left": [0, 0, 0, 1, 1, 0]}
        for side, mask in expected.items():
            padded = tokenizer.pad(features, padding_side=side)
            self.assertEqual(padded["attention_mask"], [[1, 1, 1, 1, 1, 0], mask])

    # ROWS: it wants two axes of every tensor
    def test_batch_encode_dynamic_overflowing(self):
        tokenizer = self.get_tokenizer()
        options = {"max_length": 6, "padding": True, "return_overflowing_tokens": True}
        long, short = "HuggingFace is solving NLP one commit at a time", "Very tiny input"
        for text, windows in [(long, 2), ([long], 2), ([long, short], 3)]:
            found = tokenizer(text, truncation="only_first", return_tensors="pt", **options)
            self.assertEqual(found["input_ids"].shape, (windows, 6, 50))
            self.assertEqual(found["attention_mask"].shape, (windows, 6))
            self.assertEqual(found["overflow_to_sample_mapping"].shape, (windows,))

    # OVERFLOW; and no warning of long sentences, which do an LSTM no harm
    def test_maximum_encoding_length_single_input(self):
        tokenizer = self.get_tokenizer(model_max_length=100)
        words = TEXT.split()
        long = " ".join(words * 20)
        for padding in (False, True, "longest"):
            for truncation in (True, "longest_first", "only_first"):
                one = tokenizer(long, padding=padding, truncation=truncation)
                self.assertEqual(len(one["input_ids"]), 100)
                batch = tokenizer([long], padding=padding, truncation=truncation)
                self.assertEqual(len(batch["input_ids"][0]), 100)
            with self.assertNoLogs("transformers", level="WARNING"):
                whole = tokenizer(long, padding=padding, truncation=False)
            self.assertEqual(len(whole["input_ids"]), 160)
        ids = tokenizer.encode(TEXT)
        found = tokenizer(
            TEXT,
            max_length=len(ids) - 2,
            stride=2,
            truncation="longest_first",
            return_overflowing_tokens=True,
        )
        self.assertEqual(found["input_ids"], [ids[:-2], ids[-4:]])

    # PAIRS
    def test_maximum_encoding_length_pair_input(self):
        self.assert_refuses_pairs(self.get_tokenizer(model_max_length=100))

    # PAIRS
    def test_special_tokens_mask_input_pairs(self):
        tokenizer = self.get_tokenizer()
        self.assert_refuses_pairs(tokenizer)
        found = tokenizer([TEXT, "One"], padding=True, return_special_tokens_mask=True)
        for mask, special in zip(
            found["attention_mask"], found["special_tokens_mask"], strict=True
        ):
            self.assertEqual([1 - value for value in mask], special)

    # PAIRS
    def test_number_of_added_tokens(self):
        tokenizer = self.get_tokenizer()
        self.assert_refuses_pairs(tokenizer)
        added = len(tokenizer.encode(TEXT)) - len(tokenizer.encode(TEXT, add_special_tokens=False))
        self.assertEqual(tokenizer.num_special_tokens_to_add(), added)

    # PAIRS
    def test_mask_output(self):
        tokenizer = self.get_tokenizer()
        self.assert_refuses_pairs(tokenizer)
        found = tokenizer(TEXT, add_special_tokens=True, return_token_type_ids=True)
        self.assertEqual(len(found["input_ids"]), len(found["token_type_ids"]))

    # PAIRS
    def test_call(self):
        tokenizer = self.get_tokenizer()
        self.assert_refuses_pairs(tokenizer)
        for text in (TEXT, [TEXT, "One", ""]):
            self.assertEqual(tokenizer(text), tokenizer(text))

    # PAIRS
    def test_pretokenized_inputs(self):
        tokenizer = self.get_tokenizer()
        self.assert_refuses_pairs(tokenizer)
        batch = [TEXT, TEXT, f"{TEXT} {TEXT}"]
        for special in (True, False):
            for text, words in [(TEXT, TEXT.split()), (batch, [text.split() for text in batch])]:
                given = tokenizer(words, is_split_into_words=True, add_special_tokens=special)
                self.assertEqual(given, tokenizer(text, add_special_tokens=special))

    # SKIP
    def test_sequence_ids(self):
        found = self.get_tokenizer()([TEXT, "One"], padding=True)
        self.assertEqual(found.sequence_ids(0), [0] * 8)
        self.assertEqual(found.sequence_ids(1), [0] + [None] * 7)
