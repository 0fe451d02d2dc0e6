"""Raw text to sentences and words."""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_hf import ElmoTokenizer
from elmo_hf.english_splitting import LONGEST_SENTENCE
from elmo_hf.text_splitting import SPLITTERS, find_splitter

TEXT = "I can't believe it's working. Mr. Smith's dog barked at 3:30pm!"
# blanks of all kinds, characters without width, marks, right to left, emoji, signs of our rules
ALPHABET = (
    "aAbZ.!?,'’`\"-:;()[]/*@#&_ \t\n\r\v\f\x00\x1c\x85\xa0\xad\u200b\u200d\u2028\u2029\u2060\ufeff"
    "é\u0301שלוםم\u202e語ん😀👩\u200d🚀\ufe0f1234…。«»“”‘"
)


def words_of(text: str, splitter: str = "english") -> list[str]:
    return [" ".join(sentence.words) for sentence in find_splitter(splitter)(text)]


class TestEnglish:
    def test_two_sentences(self):
        assert words_of(TEXT) == [
            "I ca n't believe it 's working .",
            "Mr. Smith 's dog barked at 3:30 pm !",
        ]

    def test_moses(self):
        assert words_of(TEXT, "moses") == [
            "I can 't believe it 's working .",
            "Mr. Smith 's dog barked at 3 : 30pm !",
        ]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            # contractions
            (
                "Don't! I'd've gone, they'll see; you cannot.",
                "Do n't ! I 'd 've gone , they 'll see ; you can not .",
            ),
            ("dont wanna, I’m sure it’s John’s", "do nt wan na , I ’m sure it ’s John ’s"),
            # addresses, emoticons, signs
            (
                "See http://a.org/x_(y)?z=1, or mail me@a-b.co.uk.",
                "See http://a.org/x_(y)?z=1 , or mail me@a-b.co.uk .",
            ),
            ("yahoo.com :-) <3 ... ==== 24/7!!", "yahoo.com :-) <3 ... ==== 24/7 !!"),
            # hyphens, numbers, money, units
            ("a well-known e-mail, 15-year-old", "a well - known e-mail , 15 - year - old"),
            (
                "$1,000.50 (20%) on 12/3/2004 at 7am, the 1980s",
                "$ 1,000.50 ( 20 % ) on 12/3/2004 at 7 am , the 1980s",
            ),
            # abbreviations
            (
                "George W. Bush, Jr. of the U.S. Dept. of Energy",
                "George W. Bush , Jr. of the U.S. Dept. of Energy",
            ),
            ("O'Brien's rock 'n' roll in the '60s", "O'Brien 's rock 'n ' roll in the '60s"),
        ],
    )
    def test_words(self, text, expected):
        assert " ".join(words_of(text)) == expected

    @pytest.mark.parametrize(
        "sentences",
        [
            ["He left.", "She stayed (alone!).", '"Why?" he asked.'],
            ["Great! :)", "Thanks!!!", "i mean it."],
            ["1. Buy milk.", "2. Sleep."],
            ["It works.", "Try it!"],
            ["They moved to the U.S.", "It was cold."],
            ["Well... maybe.", "What?!", "Dr. No lives at St. Mary's Rd. in Boston."],
        ],
    )
    def test_sentences(self, sentences):
        found = find_splitter("english")(" ".join(sentences))
        text = " ".join(sentences)
        assert [text[s.spans[0][0] : s.spans[-1][1]] for s in found] == sentences

    def test_a_forgotten_blank(self):
        assert words_of("It works.Try it!Now.") == ["It works .", "Try it !", "Now ."]

    def test_halves_of_contractions_are_attached(self):
        [sentence] = find_splitter("english")("I can't, it 's")
        assert [sentence.words[place] for place in sorted(sentence.attached)] == ["n't"]

    def test_words_that_are_apart_stay_as_they_are(self):
        text = "I do n't know what it 's about , John 's \" ca n't \" ..."
        assert " ".join(words_of(text)) == text

    def test_a_text_without_full_stops_comes_in_parts(self):
        lengths = [len(s.words) for s in find_splitter("english")("word " * 2500)]
        assert lengths == [LONGEST_SENTENCE, LONGEST_SENTENCE, 500]

    def test_a_contraction_is_never_cut(self):
        first, second = find_splitter("english")("a " * 999 + "don't go.")
        assert first.words[-2:] == ["do", "n't"] and second.words == ["go", "."]
        assert first.attached == {1000} and not second.attached

    def test_many_clitics(self):
        [sentence] = find_splitter("english")("a" + "'d" * 3000)
        assert sentence.words == ["a", *["'d"] * 3000]

    @pytest.mark.parametrize("splitter", ["english", "moses"])
    def test_characters_without_width_alone_are_words(self, splitter):
        assert words_of("\u200b", splitter) == ["\u200b"] and words_of(" \n", splitter) == []

    def test_sentences_come_one_by_one(self):
        sentences = iter(find_splitter("english")("One. Two. " * 10**5))
        assert next(sentences).words == ["One", "."]


class TestAll:
    @settings(deadline=None, max_examples=300)
    @given(st.sampled_from(["whitespace", "english", "moses", "characters"]), st.text(ALPHABET))
    def test_every_span_is_its_word(self, splitter, text):
        end = 0
        for sentence in find_splitter(splitter)(text):
            assert sentence.words
            for word, (start, stop) in zip(sentence.words, sentence.spans, strict=True):
                assert word == text[start:stop] and start >= end and not any(map(str.isspace, word))
                end = stop

    @settings(deadline=None, max_examples=300)
    @given(st.sampled_from(["whitespace", "english", "characters"]), st.text(ALPHABET))
    def test_no_letter_is_lost(self, splitter, text):
        words = [word for sentence in find_splitter(splitter)(text) for word in sentence.words]
        letters = [character for character in text if character.isalnum()]
        assert [character for character in "".join(words) if character.isalnum()] == letters

    @pytest.mark.parametrize("splitter", ["whitespace", "english", "moses", "characters"])
    def test_half_of_a_character_is_refused(self, splitter):
        with pytest.raises(ValueError, match="Character 1 of the text is half of a character"):
            list(find_splitter(splitter)("a\ud800b"))

    def test_characters(self):
        [sentence] = find_splitter("characters")("MK V\n")
        assert sentence.words == ["M", "K", "V"] and sentence.spans == [(0, 1), (1, 2), (3, 4)]

    @pytest.mark.parametrize("name", ["bert", "spacy:", "", "none"])
    def test_unknown_names(self, name):
        with pytest.raises(
            ValueError, match="choose whitespace, english, characters, moses, spacy"
        ):
            find_splitter(name)

    def test_without_spacy(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "spacy", None)
        with pytest.raises(ImportError, match=r"pip install .elmo_hf\[spacy\]"):
            list(find_splitter("spacy:xx-none")("a"))


class TestFunctions:
    def test_words_or_sentences(self):
        assert ElmoTokenizer(word_splitter=str.split).tokenize("a b") == ["a", "b"]
        lines = ElmoTokenizer(word_splitter=lambda text: [x.split() for x in text.splitlines()])
        assert [s.words for s in lines.split("a b\n\nb a")] == [["a", "b"], ["b", "a"]]
        assert [s.spans for s in lines.split("a b\n\nb a")][1] == [(5, 6), (7, 8)]

    @pytest.mark.parametrize("words", [["x"], [["a"], ["a"]], [1], ["a", ""], None])
    def test_words_that_are_not_in_the_text(self, words):
        with pytest.raises(ValueError, match="The word splitter"):
            ElmoTokenizer(word_splitter=lambda text: words).tokenize("a b")

    def test_it_cannot_be_saved(self, tmp_path):
        tokenizer = ElmoTokenizer(word_splitter=str.split)
        with pytest.raises(ValueError, match="is a function, which cannot be saved"):
            tokenizer.save_pretrained(tmp_path)
        tokenizer.word_splitter = "english"
        tokenizer.save_pretrained(tmp_path)
        assert ElmoTokenizer.from_pretrained(tmp_path).word_splitter == "english"


def test_all_names_are_documented():
    documented = ElmoTokenizer.__doc__
    assert all(f'"{name}"' in documented for name in SPLITTERS)
