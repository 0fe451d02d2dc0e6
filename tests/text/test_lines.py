"""Lines of text from files, pipes, standard input and datasets."""

import gzip
import io
import struct
import sys
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, DatasetDict

from elmo_hf import text_lines
from elmo_hf.text import BadLineError, dataset_source, text_source


def test_lines_are_counted_through_all_files(tmp_path):
    (tmp_path / "a.txt").write_text("Dogs  bark .\n\n", encoding="utf-8-sig")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress("Ça va ?\r\n".encode()))
    source = text_source(str(tmp_path / "*.txt*"))
    lines = list(source.lines)
    assert [line.number for line in lines] == [0, 1, 2]
    assert [line.text for line in lines] == ["Dogs  bark .", "", "Ça va ?"]
    assert [line.words for line in lines] == [["Dogs", "bark", "."], [], ["Ça", "va", "?"]]
    assert source.unit == "B" and source.name == str(tmp_path / "*.txt*")


def test_progress_knows_the_size_of_gzipped_text(tmp_path):
    text = gzip.compress(b"a word .\n" * 50_000)
    (tmp_path / "text.gz").write_bytes(text)
    source = text_source(str(tmp_path / "text.gz"))
    read = sum(line.size for line in source.lines)
    assert source.total == len(text) and read == pytest.approx(source.total, rel=0.1)


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Dogs bark .\nHi\n")))
    source = text_source("-")
    assert source.total is None and [line.text for line in source.lines] == ["Dogs bark .", "Hi"]
    with pytest.raises(ValueError, match="Several processes cannot share standard input or a pipe"):
        text_source("-", shared=True)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValueError, match="There is no standard input"):
        text_source("-")


def test_a_bad_line_stops_or_counts_as_empty(tmp_path, capsys):
    path = tmp_path / "text"
    path.write_bytes(b"fine .\n\xff\xfe no\nfine too .\n")
    sentence = "line 2: the byte 0xff is not UTF-8"
    with pytest.raises(BadLineError, match=sentence):
        list(text_source(str(path)).lines)
    lines = list(text_source(str(path), on_error="skip").lines)
    assert [len(line.words) for line in lines] == [2, 0, 3]
    assert sentence in capsys.readouterr().err
    with pytest.raises(ValueError, match="`on_error` is 'ignore' but must be one of stop, skip"):
        text_source(str(path), on_error="ignore")


def test_rows_of_a_dataset(tmp_path):
    rows = [{"text": "Dogs  bark ", "words": ["a\nword", "two words"]}]
    Dataset.from_list(rows).to_parquet(str(tmp_path / "data" / "train.parquet"))
    name = str(tmp_path / "data")
    [line] = dataset_source(name).lines
    assert line.text == "Dogs  bark" and line.words == ["Dogs", "bark"]
    source = dataset_source(name, column="words")
    [line] = source.lines
    assert line.words == ["a\nword", "two words"] and line.size == source.total == 1
    with pytest.raises(ValueError, match="has no column 'tokens'; it has text, words"):
        dataset_source(name, column="tokens")


@pytest.mark.parametrize("whole", [True, False], ids=["splits", "one-split"])
def test_a_dataset_that_was_saved_to_disk(tmp_path, whole):
    rows = Dataset.from_dict({"text": ["Dogs bark", "Cats"]})
    (DatasetDict(train=rows) if whole else rows).save_to_disk(tmp_path / "data")
    source = dataset_source(str(tmp_path / "data"))
    assert [line.words for line in source.lines] == [["Dogs", "bark"], ["Cats"]]
    with pytest.raises(ValueError, match="data' has no split 'test'; it has train."):
        dataset_source(str(tmp_path / "data"), split="test")


def test_datasets_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ImportError, match=r"requires datasets: pip install 'elmo_hf\[train\]'"):
        dataset_source("data")


@pytest.mark.parametrize("row", [None, ["a", None], 7], ids=["null", "null-word", "number"])
def test_a_row_that_is_no_sentence(row, tmp_path, capsys):
    rows = Dataset.from_dict({"text": [row]})
    rows.to_parquet(str(tmp_path / "train.parquet"))
    with pytest.raises(BadLineError, match="Row 0: 'text' should be text or a list of words, not"):
        list(dataset_source(str(tmp_path)).lines)
    [line] = dataset_source(str(tmp_path), on_error="skip").lines
    assert line.words == [] and "counts as an empty line" in capsys.readouterr().err


def test_a_dataset_whose_text_is_no_text(tmp_path):
    strings = pa.StringArray.from_buffers(
        1, pa.py_buffer(struct.pack("<ii", 0, 1)), pa.py_buffer(b"\xff")
    )
    pq.write_table(pa.table({"text": strings}), tmp_path / "train.parquet")
    with pytest.raises(ValueError, match="the text after row 0 is not UTF-8"):
        list(dataset_source(str(tmp_path)).lines)


@pytest.mark.parametrize("ending", ["txt", "json", "jsonl", "csv", "parquet", "arrow"])
@pytest.mark.parametrize("content", [b"", b"\x00\xff damaged"], ids=["empty", "damaged"])
def test_a_dataset_that_cannot_be_read_is_one_sentence(ending, content, tmp_path):
    (tmp_path / f"train.{ending}").write_bytes(content)
    with pytest.raises((ValueError, OSError)) as raised:
        list(dataset_source(str(tmp_path), column="text").lines)
    message = str(raised.value)
    assert str(tmp_path) in message and message.endswith(".") and "\n" not in message
    if not content and ending in ("txt", "json", "jsonl"):
        assert message.endswith("cannot be read: its files have no rows.")


def test_a_damaged_saved_dataset_is_one_sentence(tmp_path):
    Dataset.from_dict({"text": ["Dogs bark"]}).save_to_disk(tmp_path)
    (tmp_path / "state.json").write_text("{")
    with pytest.raises(ValueError, match="The dataset '.*' cannot be read: Expecting property"):
        dataset_source(str(tmp_path))


@pytest.mark.parametrize("kind", ["plain", "gz", "standard input"])
def test_a_line_without_end_takes_no_memory(tmp_path, monkeypatch, capsys, kind):
    monkeypatch.setattr(text_lines, "LONGEST_LINE", 1000)
    content = b"first\n" + b"x" * 10_000_000 + b"\nthird\n" + b"y" * 999 + b"\n" + b"z" * 1001
    file = tmp_path / ("text.gz" if kind == "gz" else "text")
    file.write_bytes(gzip.compress(content) if kind == "gz" else content)

    def read(on_error):
        if kind == "standard input":
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return text_source("-" if kind == "standard input" else str(file), on_error).lines

    tracemalloc.start()
    with pytest.raises(BadLineError, match="line 2: it has more than 1,000 bytes; write one sente"):
        list(read("stop"))
    found = [line.text[:5] for line in read("skip")]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == ["first", "", "third", "yyyyy", ""] and peak < 1_000_000
    assert "line 5: it has more than" in capsys.readouterr().err


def test_a_file_that_may_not_be_read_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "text").touch()
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(PermissionError, match="text' may not be read"):
        text_source(str(tmp_path / "text"))
