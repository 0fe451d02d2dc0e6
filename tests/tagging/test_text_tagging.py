"""Raw text to tagged text, from which the text can be rebuilt."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from helpers.conllu import rebuild
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_hf import ElmoTagger, ElmoTokenizer
from elmo_hf.tagging.output import FORMATS, as_jsonl, as_tsv, default_format, find_format
from elmo_hf.tagging.spans import are_of_spans, find_spans
from elmo_hf.tagging.tagger import TaggedSentence
from elmo_hf.tagging.text_tagging import tag_text
from elmo_hf.text.lines import RawSource, decode_lines, raw_source
from elmo_hf.text.paragraphs import join_lines

TEXT = "I can't believe it's working. Mr. Smith's dog barked at 3:30pm!\n"
# what UD gives; `its` would be a pronoun, `it 's` has an auxiliary here
TAGS = [
    "PRON AUX PART VERB PRON AUX VERB PUNCT",
    "PROPN PROPN PART NOUN VERB ADP NUM NOUN PUNCT",
]
ALPHABET = (
    "aAbZ.!?,'’\"-:;()|\\_ \t\n\n\r\v\f\x00\x1c\x85\xa0\xad\u200b\u200d\u2028\u2029\u2060\ufeff"
    "é\u0301שלום\u202e語😀👩\u200d🚀\ufe0f12…。"
)


class FakeTagger(ElmoTagger):
    """Splits like a tagger and gives every word the tag X."""

    def __init__(self, splitter="english"):
        self.tokenizer = ElmoTokenizer(word_splitter=splitter)
        self.labels, self.batch_size = {0: "X"}, 16

    def _tag_batch(self, sentences):
        return [TaggedSentence(list(s), ["X"] * len(s), [0.5] * len(s)) for s in sentences]


def source_of(text: str, is_stream: bool = False) -> RawSource:
    lines = ((line, len(line)) for line in io.BytesIO(text.encode()))
    return RawSource("text", decode_lines(lines, "text", "stop"), None, is_stream)


def show(text: str, output_format: str = "conllu", splitter="english", paragraphs="line") -> str:
    tagger = FakeTagger(splitter)
    shown = find_format(output_format, ["X"])
    groups = tag_text(tagger, source_of(text), paragraphs)
    return "".join(shown(tagged) for group in groups for tagged in group)


def test_the_bundled_tagger_tags_raw_text():
    found = ElmoTagger()(TEXT)
    assert [" ".join(sentence.tags) for sentence in found] == TAGS
    for sentence in found:
        assert sentence.words == [TEXT[start:end] for start, end in sentence.spans]


def test_a_splitter_of_ones_own():
    tagger = ElmoTagger(split=str.split)
    [sentence] = tagger("Go home. Now!")
    assert sentence.words == ["Go", "home.", "Now!"]
    with pytest.raises(ValueError, match="A text is a string"):
        tagger(["Go", "home"])
    with pytest.raises(ValueError, match="`word_splitter` is 'klingon'; choose"):
        ElmoTagger(split="klingon")
    with pytest.raises(ValueError, match="`batch_size` is 0 but must be at least 1"):
        ElmoTagger(batch_size=0)


def test_batch_size_changes_no_tag():
    sentences = [["Go", "home"], ["Stop", "!"], ["I", "see", "you"]]
    one, many = (list(ElmoTagger(batch_size=size).tag(sentences)) for size in (1, None))
    assert [s.tags for s in one] == [s.tags for s in many]


def test_conllu_keeps_the_text():
    found = show("\n  I can't.  Go!\n\nHi \n")
    assert found == "\n".join(
        [
            *("# newpar", "# sent_id = 1", "# text = I can't."),
            "1\tI\t_\tX\t_\t_\t_\t_\t_\tSpacesBefore=\\n\\s\\s",
            "2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No",
            "2\tca\t_\tX\t_\t_\t_\t_\t_\t_",
            "3\tn't\t_\tX\t_\t_\t_\t_\t_\t_",
            *("4\t.\t_\tX\t_\t_\t_\t_\t_\tSpacesAfter=\\s\\s", ""),
            *("# sent_id = 2", "# text = Go!"),
            "1\tGo\t_\tX\t_\t_\t_\t_\t_\tSpaceAfter=No",
            *("2\t!\t_\tX\t_\t_\t_\t_\t_\tSpacesAfter=\\n\\n", ""),
            *("# newpar", "# sent_id = 3", "# text = Hi"),
            *("1\tHi\t_\tX\t_\t_\t_\t_\t_\tSpacesAfter=\\s\\n", "", ""),
        ]
    )


@settings(deadline=None, max_examples=400)
@given(
    st.text(ALPHABET),
    st.sampled_from(["english", "whitespace", "moses", "characters"]),
    st.sampled_from(["line", "blank"]),
)
def test_the_text_can_be_rebuilt(text, splitter, paragraphs):
    # a byte order mark belongs to the file, not to the text
    text = text.lstrip("\ufeff")
    conllu = show(text, "conllu", splitter, paragraphs)
    assert rebuild(conllu) == (text if conllu else "")
    rows = [line.split("\t") for line in conllu.split("\n") if line and not line.startswith("#")]
    assert all(len(row) == 10 for row in rows)
    joined = [
        json.loads(line) for line in show(text, "jsonl", splitter, paragraphs).split("\n")[:-1]
    ]
    assert "".join(paragraph["text"] for paragraph in joined) == (text if conllu else "")
    for paragraph in joined:
        for sentence in paragraph["sentences"]:
            spans = [paragraph["text"][start:end] for start, end in sentence["spans"]]
            assert spans == sentence["words"]


def test_tsv_counts_characters_of_the_whole_text():
    rows = [line.split("\t") for line in show("é a.\n\nb c", "tsv").split("\n") if line]
    assert [row[0] for row in rows] == ["é", "a", ".", "b", "c"]
    assert [("é a.\n\nb c"[int(row[3]) : int(row[4])]) for row in rows] == [row[0] for row in rows]


def test_paragraphs_of_several_lines():
    text = "It is\nlate.\n\nGo\nhome."
    by_line, by_blank = (
        [[sentence["words"] for sentence in json.loads(line)["sentences"]] for line in found]
        for found in (
            show(text, "jsonl", paragraphs=kind).splitlines() for kind in ("line", "blank")
        )
    )
    assert by_line == [[["It", "is"]], [["late", "."]], [["Go"]], [["home", "."]]]
    assert by_blank == [[["It", "is", "late", "."]], [["Go", "home", "."]]]
    with pytest.raises(ValueError, match="`paragraphs` is 'page' but must be line or blank"):
        show(text, paragraphs="page")


def test_a_stream_does_not_wait():
    """Each line is tagged before the next one is there."""
    seen = []

    def lines():
        for number, line in enumerate(["One.\n", "\n", "Two.\n"]):
            while number and not seen:
                time.sleep(0.01)
            yield line.encode(), len(line)

    source = RawSource("pipe", decode_lines(lines(), "pipe", "stop"), None, is_stream=True)
    for group in tag_text(FakeTagger(), source):
        seen += [tagged.tags.words for tagged in group]
    assert seen == [["One", "."], ["Two", "."]]


def test_errors_of_a_stream_come_through():
    lines = iter([(b"fine.\n", 6), (b"caf\xe9\n", 5)])
    source = RawSource("pipe", decode_lines(lines, "pipe", "stop"), None, is_stream=True)
    with pytest.raises(ValueError, match="line 2: the byte 0xe9 is not UTF-8"):
        for group in tag_text(FakeTagger(), source):
            list(group)


def test_paragraphs_are_the_whole_text():
    text = "\n\n a\nb\n\n\nc"
    for kind, expected in (
        ("line", ["\n\n a\n", "b\n\n\n", "c"]),
        ("blank", ["\n\n a\nb\n\n\n", "c"]),
    ):
        found = list(join_lines(source_of(text), kind))
        assert [paragraph.text for paragraph in found] == expected
        assert all(text[p.start :].startswith(p.text) for p in found)


def test_a_paragraph_ends_with_its_file(tmp_path):
    for name, text in (("a.txt", "one\ntwo"), ("b.txt", "\n\nthree\n"), ("c.txt", "four")):
        (tmp_path / name).write_text(text)
    found = join_lines(raw_source(str(tmp_path / "*.txt")), "blank")
    assert [paragraph.text for paragraph in found] == ["one\ntwo", "\n\nthree\n", "four"]


def test_a_paragraph_without_end_is_refused(monkeypatch):
    monkeypatch.setattr("elmo_hf.text.paragraphs.LONGEST_LINE", 10)
    with pytest.raises(ValueError, match="line 2: a paragraph of more than 10 bytes ends nowhere"):
        show("one two\nthree four\n", paragraphs="blank")
    # blank lines that have no end are shared between two paragraphs
    text = "one\n" + "\n" * 12 + "two\n"
    found = [paragraph.text for paragraph in join_lines(source_of(text))]
    assert "".join(found) == text and len(found[0]) < 13


def test_formats_have_names():
    assert [find_format(name, ["X"]) for name in ("tsv", "jsonl")] == [as_tsv, as_jsonl]
    assert len(FORMATS) == 5
    with pytest.raises(ValueError, match="--format spans is for taggers of names, and this .* 'X'"):
        find_format("spans", ["X"])


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("B-a I-a O B-b", [("a", 0, 2), ("b", 3, 4)]),
        ("B-a B-a I-b I-b", [("a", 0, 1), ("a", 1, 2), ("b", 2, 4)]),
        # IOB1, and a tagger that forgot to begin
        ("O I-a I-a B-a O I-b", [("a", 1, 3), ("a", 3, 4), ("b", 5, 6)]),
        # BIOUL
        ("U-a B-a L-a I-a O", [("a", 0, 1), ("a", 1, 3), ("a", 3, 4)]),
        ("O O", []),
        ("", []),
    ],
)
def test_spans_of_every_scheme(tags, spans):
    assert [tuple(span) for span in find_spans(tags.split())] == spans


@pytest.mark.parametrize(
    ("labels", "expected"),
    [("O B-a I-a", True), ("U-a L-a B-a I-a O", True), ("NOUN X INTJ", False), ("O", False)],
)
def test_labels_of_names_are_known(labels, expected):
    assert are_of_spans(labels.split()) is expected
    assert default_format(labels.split()) == ("spans" if expected else "conllu")


class NameTagger(FakeTagger):
    """Takes words with a capital for names."""

    def _tag_batch(self, sentences):
        def tag(words):
            return ["B-name" if word.istitle() else "O" for word in words]

        return [TaggedSentence(list(s), tag(s), [0.5] * len(s)) for s in sentences]


@pytest.mark.parametrize(
    ("output_format", "expected"),
    [
        ("spans", "0\t2\tname\t0.5000\tAl\n11\t13\tname\t0.5000\tBo\n"),
        ("colour", "\033[38;5;17mAl/name\033[0m saw .\nen \033[38;5;17mBo/name\033[0m\n"),
    ],
)
def test_names_are_shown_with_their_places(output_format, expected):
    shown = find_format(output_format, ["O", "B-name", "I-name"])
    groups = tag_text(NameTagger(), source_of("Al saw.\nen Bo\n"))
    found = "".join(shown(tagged) for group in groups for tagged in group)
    assert found == expected


@pytest.mark.program
@pytest.mark.parametrize("how", [signal.SIGINT, None], ids=["interrupted", "output closed"])
def test_a_stream_can_be_left(how):
    """Another thread is waiting for the next line then."""
    command = [sys.executable, "-m", "elmo_hf", "tag", "--format", "tsv"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        program.stdin.write(b"Go home!\n")
        program.stdin.flush()
        assert b"\t" in program.stdout.readline()
        if how is None:
            program.stdout.close()
            program.stdin.write(b"Go home!\n" * 9)
            program.stdin.flush()
        else:
            program.send_signal(how)
        complained = program.stderr.read()
        assert program.wait(60) >= 0 or how is not None
        assert b"Fatal Python error" not in complained and b"Traceback" not in complained


@pytest.mark.program
def test_typed_lines_are_answered_at_once():
    command = [sys.executable, "-m", "elmo_hf", "tag", "--format", "tsv"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        text=True,
    ) as program:
        for line, words in (("It's late.", 4), ("Go home!", 3)):
            program.stdin.write(line + "\n")
            program.stdin.flush()
            # the input is still open, so only an answer at once ends these reads
            assert all("\t" in program.stdout.readline() for _ in range(words))
            assert program.stdout.readline() == "\n"
        program.stdin.close()
        assert program.wait(60) == 0
