"""Raw text as documents: files and rows of a dataset, split into tokenised sentences."""

import gzip

import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_hf.text import RawText, check_split, raw_files, raw_rows, split_documents, splitter_name
from elmo_hf.text.raw_text import dataset_sentences
from elmo_hf.text_splitting import SPLITTERS, find_splitter

# what addresses begin with, blanks of all kinds, and signs
PIECES = [
    "http://",
    "www.",
    "a",
    "B",
    ".",
    "!",
    "'s",
    "don't",
    " ",
    "\n",
    "\t",
    "\r",
    "\x1c",
    "\x1f",
]
PIECES += ["\x85", "\xa0", "\u2009", "\u2028", "\u3000", "\u200b", "é", "語", "😀", '"', ")", "3.5"]


def sentences(text: RawText, splitter: str = "english", paragraphs: str = "line") -> list[str]:
    split = split_documents(text.open(), splitter, paragraphs)
    return [" ".join(words) for words in split]


@settings(deadline=None, max_examples=400)
@given(
    st.sampled_from([name for name in SPLITTERS if ":" not in name]),
    st.lists(st.sampled_from(PIECES)).map("".join),
)
def test_a_tokenised_line_has_the_same_words(splitter, text):
    for sentence in find_splitter(splitter)(text):
        line = " ".join(sentence.words)
        assert line.split() == sentence.words and "\n" not in line


def test_a_paragraph_ends_with_its_file(tmp_path):
    (tmp_path / "a.txt").write_text("One line\nand another. Next\n\none", encoding="utf-8-sig")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"Two. It's over.\r\n"))
    text = raw_files([tmp_path / "a.txt", tmp_path / "b.txt.gz"])
    after = ["Two .", "It 's over ."]
    assert sentences(text) == ["One line", "and another .", "Next", "one", *after]
    assert sentences(text, paragraphs="blank") == ["One line and another .", "Next", "one", *after]


def test_a_paragraph_ends_with_its_row():
    rows = Dataset.from_dict({"text": ["One line\nand another.", "", "Two. It's\u2028over."]})
    text = raw_rows(rows, "text", "mine")
    after = ["Two .", "It 's over ."]
    assert sentences(text) == ["One line", "and another .", *after]
    assert sentences(text, paragraphs="blank") == ["One line and another .", *after]


def test_every_line_is_seen_once(tmp_path):
    (tmp_path / "a.txt").write_text("One. Two.\n\n\nThree.\n\n")
    rows = Dataset.from_dict({"text": ["One. Two.\nThree.", ""]})
    for text in (raw_files([tmp_path / "a.txt"]), raw_rows(rows, "text", "mine")):
        seen = []
        assert len(list(split_documents(text.open(), "english", "blank", seen.append))) == 3
        assert sum(line.size for line in seen) == text.total


def test_rows_of_words_are_refused():
    rows = Dataset.from_dict({"text": [["One", "."]]})
    with pytest.raises(ValueError, match="row 0: 'text' should be raw text, .* leave --split out"):
        sentences(raw_rows(rows, "text", "mine"))
    with pytest.raises(ValueError, match="'mine' has no column 'words'; it has text."):
        raw_rows(rows, "words", "mine")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "a.txt").write_text("One.")
    text = raw_files([tmp_path / "a.txt"])
    (tmp_path / "a.txt").unlink()
    with pytest.raises(ValueError, match="a.txt' cannot be used: No such file"):
        sentences(text)


def test_options():
    assert splitter_name("none") == "whitespace" and splitter_name("spacy:fi") == "spacy:fi"
    for split, paragraphs in (("none", "line"), ("english", "blank"), ("whitespace", "blank")):
        check_split(split, paragraphs)
    names = "none, whitespace, english, characters, moses, spacy:LANG."
    with pytest.raises(ValueError, match=f"`split` is 'finnish' but must be one of {names}"):
        check_split("finnish", "line")
    with pytest.raises(ValueError, match="`paragraphs` is 'page' but must be line or blank."):
        check_split("english", "page")
    with pytest.raises(ValueError, match="every line is a sentence; name a splitter"):
        check_split("none", "blank")


def test_rows_as_sentences(tmp_path, capsys):
    """Sentences are numbered through all rows, and each row counts once for progress."""
    rows = Dataset.from_dict({"text": ["Dogs bark. Cats\nsleep.", "", None, "It rains."]})
    rows.save_to_disk(tmp_path / "data")
    options = (str(tmp_path / "data"), None, "train", "text", "skip", "english")
    source = dataset_sentences(*options, "blank")
    lines = list(source.lines)
    assert [line.text for line in lines] == ["Dogs bark .", "Cats sleep .", "It rains ."]
    assert [line.number for line in lines] == [0, 1, 2]
    assert sum(line.size for line in lines) == source.total == 4
    assert "row 2: 'text' should be raw text" in capsys.readouterr().err
    lines = dataset_sentences(*options, "line").lines
    assert [line.text for line in lines] == ["Dogs bark .", "Cats", "sleep .", "It rains ."]
