"""CoNLL-U files: their sentences, their tags filled in, and their raw text."""

import gzip
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_hf.tagging import fill_tags
from elmo_hf.tagging.gold_text import read_paragraphs
from elmo_hf.tagging.spaces import escape_spaces, unescape_spaces
from elmo_hf.tagging.tagger import TaggedSentence
from elmo_hf.tagging.treebank import read_treebank

TREEBANK = """\
# newdoc id = a
# sent_id = 1
1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_
2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\tA=B|SpaceAfter=No
3\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\tSpacesAfter=\\s\\n

1\tI\tI\tPRON\tPRP\t_\t2\tnsubj\t_\tSpacesBefore=\\t
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tdo\tdo\tAUX\tVBP\t_\t0\troot\t_\t_
3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_
3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_
4\t!\t!\tPUNCT\t.\t_\t2\tpunct\t_\t_

# newpar
1-2\twanna\t_\t_\t_\t_\t_\t_\t_\t_
1\twant\twant\tVERB\tVB\t_\t0\troot\t_\t_
2\tto\tto\tPART\tTO\t_\t1\tmark\t_\t_
"""


class FakeTagger:
    """Gives the tags it was made with, and reads ahead as the real one does."""

    def __init__(self, tags, window=3):
        self.tags, self.window = iter(tags), window

    def tag(self, sentences):
        rest = iter(sentences)
        while some := list(islice(rest, self.window)):
            for words in some:
                tags = [next(self.tags) for _ in words]
                yield TaggedSentence(list(words), tags, [1.0] * len(tags))


def write(folder: Path, text: str) -> Path:
    path = folder / "gold.conllu"
    path.write_bytes(text.encode("utf-8"))
    return path


def test_sentences_have_words_ranges_empty_nodes_and_comments(tmp_path):
    first, second, third = read_treebank(write(tmp_path, TREEBANK))
    assert first.comments == ["# newdoc id = a", "# sent_id = 1"] and not third.empty_nodes
    assert second.forms == ["I", "do", "n't", "!"]
    assert [(row.line, row.form, row.first, row.last) for row in second.ranges] == [
        (8, "don't", 2, 3)
    ]
    assert [(row.line, row.form) for row in second.empty_nodes] == [(11, "go")]
    lines = [line for sentence in (first, second, third) for line in sentence.lines]
    assert [line.number for line in lines] == list(range(1, 18))


def test_tags_are_filled_in(tmp_path):
    tags = ["A", "B", "C\tC", "D", "E", "F", "G", "", "I"]
    wanted = TREEBANK
    for old, new in (
        ("dog\tNOUN", "dog\tA"),
        ("bark\tVERB", "bark\tB"),
        (".\tPUNCT", ".\tC C"),
        ("I\tPRON", "I\tD"),
        ("do\tAUX", "do\tE"),
        ("not\tPART", "not\tF"),
        ("!\tPUNCT", "!\tG"),
        ("want\tVERB", "want\t_"),
        ("to\tPART", "to\tI"),
    ):
        wanted = wanted.replace(old, new)
    path = write(tmp_path, TREEBANK)
    assert "".join(fill_tags(path, FakeTagger(tags))) == wanted
    zipped = tmp_path / "gold.conllu.gz"
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    assert "".join(fill_tags(zipped, FakeTagger(tags))) == wanted


def test_a_file_is_read_no_further_than_the_tagger_reads(tmp_path):
    """What is wrong further down in the file is met after the sentences before it."""
    row = "1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n\n"
    path = write(tmp_path, row * 5 + "\n" * 4 + "broken\n")
    filled = fill_tags(path, FakeTagger("AAAAA"))
    assert [next(filled) for _ in range(5)] == [row.replace("X", "A")] * 5
    assert next(filled) == "\n"
    with pytest.raises(ValueError, match="line 15: 1 tab-separated column, but CoNLL-U has 10"):
        list(filled)


CELL = st.text(st.characters(exclude_characters="\t\r\n", exclude_categories=["Cs"]), max_size=4)
FILLED = CELL.filter(str.strip)
TAG = st.sampled_from(["NOUN", "VERB", "X", "ö", "_"])
# an end of old Macs before one of Unix would be one of Windows
ENDS = st.sampled_from([["\n", "\r\n"], ["\r"]])


@st.composite
def treebanks(draw) -> tuple[str, list[str]]:
    """A file with everything that CoNLL-U can have, and its tags."""
    lines, tags = [], []
    for _ in range(draw(st.integers(0, 4))):
        lines += [f"#{draw(CELL)}" for _ in range(draw(st.integers(0, 2)))]
        place, length = 0, draw(st.integers(0, 4))
        while place < length:
            last = draw(st.integers(place + 1, length))
            if draw(st.booleans()):
                lines.append("\t".join([f"{place + 1}-{last}", draw(FILLED), *["_"] * 8]))
            for number in range(place + 1, last + 1):
                tags.append(draw(TAG))
                cells = [str(number), draw(FILLED), draw(CELL), tags[-1]]
                lines.append("\t".join([*cells, *(draw(CELL) for _ in range(6))]))
            place = last
            if draw(st.booleans()):
                lines.append("\t".join([f"{place}.1", *["_"] * 9]))
        lines += draw(st.lists(st.sampled_from(["", " "]), min_size=1, max_size=3))
    end = st.sampled_from(draw(ENDS))
    text = "".join(line + draw(end) for line in lines)
    if draw(st.booleans()):
        text = text.rstrip("\r\n")
    return draw(st.sampled_from(["", "\ufeff"])) + text, tags


@settings(max_examples=100, deadline=None)
@given(treebanks())
def test_the_same_tags_give_the_same_file(tmp_path_factory, treebank):
    text, tags = treebank
    path = write(tmp_path_factory.getbasetemp(), text)
    assert "".join(fill_tags(path, FakeTagger(tags))) == text


def row(number: str, form: str = "a") -> str:
    return "\t".join([number, form, *["_"] * 8]) + "\n"


BROKEN = {
    "columns": (row("1") + "2\tb\n", "line 2: 2 tab-separated columns, but CoNLL-U has 10"),
    "no-columns": ("Dogs bark.\n", "line 1: 1 tab-separated column, but CoNLL-U has 10"),
    "letter": (row("1") + row("x"), "line 2: 'x' is not the number of a word, as in 1, 1-2"),
    "long-number": (row("9" * 5000), "line 1: '999"),
    "jump": (row("1") + row("3", "b"), "line 2: the word 'b' has the number 3, but it is word 2"),
    "repeated": (row("1") + row("1", "b"), "line 2: the word 'b' has the number 1, but it is"),
    "late-range": (row("1") + row("1-2") + row("2"), "line 2: the range 1-2 is not followed by"),
    "long-range": ("\n" + row("1-2") + row("1") + "\n", "line 2: the range 1-2 is not followed by"),
    "last-range": (row("1-2") + row("1"), "line 1: the range 1-2 is not followed by the words"),
    "backward-range": (row("2-1") + row("1"), "line 1: the range 2-1 is not followed by"),
    "overlap": (row("1-2") + row("1") + row("2-3") + row("2") + row("3"), "line 3: the range 2-3"),
    "empty-node": (row("1") + row("2.1"), "line 2: the empty node 2.1 is not after word 2 of"),
    "empty-form": (row("1", " "), "line 1: column 2 is empty; correct this line."),
}


@pytest.mark.parametrize(("text", "sentence"), BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_named_with_file_and_line(text, sentence, tmp_path):
    path = write(tmp_path, text)
    with pytest.raises(ValueError) as raised:
        list(read_treebank(path))
    message = str(raised.value)
    assert message.startswith(f"{str(path)!r}, {sentence}") and len(message) < 350
    assert message.endswith(".") and "\n" not in message


def test_folders_missing_files_and_other_bytes(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        list(read_treebank(tmp_path))
    with pytest.raises(FileNotFoundError, match="There is no file"):
        list(read_treebank(tmp_path / "nowhere"))
    path = tmp_path / "gold.conllu"
    path.write_bytes(b"# fine\n# caf\xe9\n")
    with pytest.raises(ValueError, match="gold.conllu', line 2: the byte 0xe9 is not UTF-8"):
        list(read_treebank(path))


def test_raw_text_and_its_spans(tmp_path):
    first, second = read_paragraphs(write(tmp_path, TREEBANK))
    assert (first.text, second.text) == ("Dogs bark. \n\tI don't! ", "wanna ")
    tokens = ["Dogs", "bark", ".", "I", "don't", "!"]
    assert [first.text[start:end] for start, end in first.gold.tokens] == tokens
    sentences = [first.text[start:end] for start, end in first.gold.sentences]
    assert sentences == ["Dogs bark.", "I don't!"]
    words = [(word.form, first.text[slice(*word.span)], word.is_part) for word in first.gold.words]
    assert words[3:] == [
        ("I", "I", False),
        ("do", "don't", True),
        ("n't", "don't", True),
        ("!", "!", False),
    ]
    assert [word.tag for word in second.gold.words] == ["VERB", "PART"]


def test_an_endless_paragraph_ends_after_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("elmo_hf.tagging.gold_text.LONGEST_PARAGRAPH", 3)
    path = write(tmp_path, (row("1") + "\n") * 5)
    assert [paragraph.text for paragraph in read_paragraphs(path)] == ["a a ", "a a ", "a "]


@given(st.text())
def test_escapes_of_blanks(text):
    escaped = escape_spaces(text)
    assert unescape_spaces(escaped) == text
    assert not set(escaped) & set(" \t\r\n|")


def test_escapes_are_those_of_udpipe():
    assert escape_spaces(" \t\r\n|\\\u00a0") == r"\s\t\r\n\p\\" + "\u00a0"
    # EWT has this one
    assert unescape_spaces(r"\s\x\\s\u00A0\u00 \ ".strip()) == " \\x\\s\u00a0\\u00 \\"
