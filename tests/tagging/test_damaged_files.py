"""Damaged tagged text: sentences, or one sentence that names the file, whatever is in it."""

import io
import random

import pytest
from datasets import Dataset
from test_tagged_formats import CONLLU, JSON_LINES, columns, joined

from elmo_hf.tagging import read_tagged

MUTATIONS = 250
PIECES = [
    b"\t", b" ", b"\n", b"\r", b"\r\n", b"\n\n", b"/", b"_", b"#", b"# ", b"{", b"}", b"[", b"]",
    b'"', b",", b":", b"\\", b"\\ud800", b"null", b"NaN", b"true", b"-1", b"1e999", b"9" * 5000,
    b"[" * 3000, b"{}", b"[]", b'""', b"x", b"\x00", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf",
    b"\xc2\xa0", b"\xe2\x80\xa8", b"\x85", b"\x0b", b"\x1f\x8b", b"PAR1", b"1-2", b"1.1",
    b"\xc2\xb2",
]  # fmt: skip


def parquet() -> bytes:
    rows = {"tokens": [["Dogs", "bark"], ["Hi"]] * 20, "upos": [["NOUN", "VERB"], ["INTJ"]] * 20}
    file = io.BytesIO()
    Dataset.from_dict(rows).to_parquet(file)
    return file.getvalue()


FILES = {
    "conllu": CONLLU.encode(),
    "tabs": columns("\t", "x").encode(),
    "spaces": columns(" ").encode(),
    "slash": joined("/").encode(),
    "underscore": joined("_").encode(),
    "json": JSON_LINES.encode(),
    "parquet": parquet(),
}


def damage(data: bytes, draw: random.Random) -> bytes:
    """One to four changes: bytes are cut out, doubled, replaced or put in."""
    for _ in range(draw.randint(1, 4)):
        start = draw.randint(0, len(data))
        end = min(len(data), start + draw.choice([0, 1, 1, 2, 10, 1000]))
        middle = draw.choice(
            [b"", data[start:end] * 2, draw.randbytes(end - start), draw.choice(PIECES)]
        )
        data = data[:start] + middle + data[end:]
    return data


@pytest.mark.parametrize("kind", FILES)
def test_a_damaged_file_is_read_or_refused_in_one_sentence(kind, tmp_path):
    draw = random.Random(kind)
    path = tmp_path / "data.any"
    refused = 0
    for _ in range(MUTATIONS):
        path.write_bytes(damage(FILES[kind], draw))
        try:
            for row in read_tagged(path):
                assert len(row["tokens"]) == len(row["tags"])
                assert all(type(text) is str for text in row["tokens"] + row["tags"])
                assert all(row["tags"])
        except (ValueError, OSError) as error:
            refused += 1
            assert "data.any" in str(error) and len(str(error)) < 1000, error
            assert "\n" not in str(error)
    assert refused > MUTATIONS / 20
