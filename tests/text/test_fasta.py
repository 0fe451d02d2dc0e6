"""Records of FASTA files as lines of residues."""

import gzip
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmo_hf.text import BadLineError, fasta, fasta_source
from elmo_hf.text.fasta import is_fasta

TEXT = """\
>sp|P1|ONE a protein
MKVLA
ACD ef

>two
ACDEF*
"""


def write(folder, text, name="proteins.fasta"):
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return str(folder / name)


def records(path, **options):
    return [(line.key, "".join(line.words)) for line in fasta_source(path, **options).lines]


@pytest.mark.parametrize("name", ["a.fasta", "a.fa", "a.FAA", "a.fasta.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "windows"])
def test_records_are_lines(tmp_path, name, end):
    text = "\ufeff" + TEXT.replace("\n", end)
    path = write(tmp_path, gzip.compress(text.encode()) if name.endswith("gz") else text, name)
    assert is_fasta(path)
    source = fasta_source(path)
    one, two = source.lines
    assert (one.key, two.key) == ("sp|P1|ONE", "two") and (one.number, two.number) == (0, 1)
    # lower case stays, the stop at the end and blanks do not
    assert one.words == list("MKVLAACDef") and one.text == "M K V L A A C D e f"
    assert two.words == list("ACDEF")
    if not name.endswith("gz"):
        assert one.size + two.size == source.total


def test_records_are_counted_through_all_files(tmp_path):
    write(tmp_path, ">a\nMK", "1.fa")
    write(tmp_path, ">b\nVL", "2.fa")
    lines = list(fasta_source(str(tmp_path / "*.fa")).lines)
    assert [(line.number, line.key, line.text) for line in lines] == [
        (0, "a", "M K"),
        (1, "b", "V L"),
    ]
    write(tmp_path, "VL\n>c\nMK\n", "3.fa")
    with pytest.raises(ValueError, match="3.fa', line 1: there is text before the first header"):
        list(fasta_source(str(tmp_path / "*.fa")).lines)
    write(tmp_path, "text", "4.txt")
    with pytest.raises(ValueError, match="names FASTA files and '.*4.txt'; read them one after"):
        is_fasta(str(tmp_path / "*"))


def test_other_files_are_not_fasta(tmp_path):
    assert not is_fasta(write(tmp_path, TEXT, "text.txt")) and not is_fasta("-")
    (tmp_path / "folder.fasta").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder; name its files"):
        is_fasta(str(tmp_path / "folder.fasta"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("MKV\n>a\nMK\n", "line 1: there is text before the first header, a line that begins with"),
        (">a\nMK\n> \nMK\n", "line 3: the header has no id; write one after the >."),
        (">a\nMK\n>\x00b\nMK\n", "line 3: the id '\\x00b' is not text; give another one."),
        (">a\nMK\n>b\n*\n>c\nM", "line 3: the record 'b' has no sequence; delete it."),
        (">a\nMK\n>b\n", "line 3: the record 'b' has no sequence; delete it."),
        (">a/1\nMK\n>b\nMK\n>a_1 more\nVL\n", "line 5: the id 'a_1' occurs twice, where / and _"),
        (">a\nMK\nM1V\n", "line 3: '1' is not a residue; a sequence consists of letters, - and *."),
        (">a\nMK>b\nMV\n", "line 2: '>' is not a residue"),
        (
            b">a\nMK\n\xff\xfe\n",
            "line 3: the byte 0xff is not UTF-8; convert the file",
        ),
        (">a\n" + "MKVL\n" * 5, "line 6: the sequence has more than 16 residues; split it."),
    ],
    ids=["no-header", "no-id", "binary-id", "no-sequence", "none-at-the-end", "twice", "digit"]
    + ["lost-line-end", "binary", "endless"],
)
def test_mistakes_are_one_sentence_with_their_place(tmp_path, monkeypatch, text, sentence):
    monkeypatch.setattr(fasta, "LONGEST_LINE", 16)
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=re.escape(f"{path!r}, {sentence}")):
        records(path)


def test_only_a_missing_sequence_can_be_skipped(tmp_path, capsys):
    path = write(tmp_path, ">a\n>b\nMK\n")
    assert records(path, on_error="skip") == [("a", ""), ("b", "MK")]
    assert "the record 'a' has no sequence" in capsys.readouterr().err
    with pytest.raises(ValueError, match="is not UTF-8") as raised:
        records(write(tmp_path, b">a\nMK\n\xff\n"), on_error="skip")
    # which the command would promise to skip
    assert not isinstance(raised.value, BadLineError)


IDS = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=1)
SEQUENCES = st.text("ACDEFGHIKLMNPQRSTVWYXacd-", min_size=1)


@given(
    st.dictionaries(IDS.filter(lambda key: "/" not in key), SEQUENCES),
    st.integers(1, 80),
    st.sampled_from(["\n", "\r\n", "\n\n", " \n"]),
    st.sampled_from(["", " a description", "\t>x"]),
)
def test_what_is_written_is_read(tmp_path_factory, proteins, width, end, description):
    text = ""
    for key, sequence in proteins.items():
        pieces = [sequence[start : start + width] for start in range(0, len(sequence), width)]
        text += end.join([f">{key}{description}", *pieces, ""])
    path = write(tmp_path_factory.mktemp("fasta"), text)
    assert dict(records(path)) == proteins
