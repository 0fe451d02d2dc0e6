"""Sentences with ambiguous words, and how their nearest neighbours are counted and shown."""

import json
import random
from collections import Counter

import pytest
import torch
from helpers.launch import EXAMPLES, run
from helpers.tiny import tiny_config

from elmo_hf import ElmoModel, ElmoTokenizer
from elmo_hf.pages import (
    Occurrence,
    WordStudy,
    chance_share,
    nearest_neighbours,
    read_occurrences,
    same_sense_share,
    write_senses_page,
)

SENTENCES = EXAMPLES / "senses" / "sentences.tsv"


def test_five_words_in_two_senses_five_times():
    rows = read_occurrences(SENTENCES)
    assert len({row.sentence for row in rows}) == 50
    senses = Counter((row.word, row.sense) for row in rows)
    assert set(senses.values()) == {5}
    assert {word for word, _ in senses} == {"bank", "bat", "spring", "duck", "left"}
    assert chance_share(rows) == pytest.approx(4 / 9)


def test_ties_count_by_their_share():
    rows = [Occurrence("w", sense, "") for sense in "aabb"]
    apart = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    assert same_sense_share(rows, nearest_neighbours(apart)) == 1
    assert same_sense_share(rows, nearest_neighbours(apart[[0, 2, 1, 3]])) == 0
    assert same_sense_share(rows, nearest_neighbours(torch.ones(4, 2))) == pytest.approx(1 / 3)


@pytest.fixture
def elmo(tmp_path):
    config = tiny_config()
    folder = tmp_path / "elmo"
    ElmoModel(config).save_pretrained(folder)
    ElmoTokenizer(max_characters_per_token=config.max_characters_per_token).save_pretrained(folder)
    return folder


@pytest.mark.program
def test_script_prints_every_layer(elmo, tmp_path):
    arguments = ["--model_name_or_path", elmo, "--output_dir", tmp_path]
    printed = run("word_senses.py", arguments)
    figures = json.loads((tmp_path / "senses.json").read_text())
    assert set(figures) == {"bank", "bat", "spring", "duck", "left", "all"}
    # the token layer does not see the context
    assert figures["all"][0] == pytest.approx(4 / 9)
    assert len(figures["all"]) == tiny_config().num_hidden_layers + 1 and "layer 2" in printed
    assert (tmp_path / "senses.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "senses.html").read_text()
    # fifty sentences on three planes, and nothing from elsewhere
    assert page.count("<circle") == 150 and "http" not in page


@pytest.mark.program
def test_script_draws_chosen_words_only(elmo, tmp_path):
    picture = tmp_path / "pictures" / "senses.png"
    arguments = ["--model_name_or_path", elmo, "--picture", picture, "--words"]
    printed = run("word_senses.py", [*arguments, "duck", "bat"])
    assert picture.read_bytes().startswith(b"\x89PNG") and "spring" not in printed
    printed = run("word_senses.py", [*arguments, "cat"], code=1)
    assert "has no sentence for 'cat'" in printed and "Traceback" not in printed


@pytest.mark.parametrize(
    "text, message",
    [
        ("bank\tmoney\tNo such thing .\n", "line 2: 'bank' must occur exactly once"),
        ("bank\tmoney\tA bank .\nbank\tmoney\tbank bank\n", "line 3: .* not 2 times"),
        ("bank\tmoney\n", "line 2: there must be three columns"),
        ("bank\tmoney\tA bank .\tmore\n", "line 2: there must be three columns"),
        ("\t\t\n", "line 2: '' must occur exactly once"),
        ("bank\tmoney\tA bank .\n\x00\n", "line 3: there must be three columns"),
        ("bank\tmoney\t" + "x" * 200_000 + "\n", "line 2: 'bank' must occur exactly once"),
        ("bank\tmoney\tA bank .\n", "'bank' has only one sentence; a word needs at least two"),
        ("", "there is no sentence under the first line"),
        ("\n\n", "there is no sentence under the first line"),
    ],
)
def test_a_bad_line_is_reported(text, message, tmp_path):
    file = tmp_path / "some.tsv"
    file.write_text("word\tsense\tsentence\n" + text)
    with pytest.raises(ValueError, match=message):
        read_occurrences(file)


def test_a_table_that_is_no_text_is_reported(tmp_path):
    file = tmp_path / "some.tsv"
    file.write_bytes(b"word\tsense\tsentence\nbank\tmoney\tA bank \xff .\n")
    with pytest.raises(ValueError, match="some.tsv', line 2: the byte 0xff is not UTF-8"):
        read_occurrences(file)
    file.write_bytes(b"")
    with pytest.raises(ValueError, match="the first line must name the columns"):
        read_occurrences(file)


def test_damaged_tables_are_read_or_refused_in_one_sentence(tmp_path):
    draw = random.Random(0)
    whole, file = SENTENCES.read_bytes(), tmp_path / "some.tsv"
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 5)):
            start = draw.randrange(len(data))
            piece = draw.choice([b"", b"\t", b"\n", b"\r", b"\x00", b"\xff", b'"', b" "])
            data[start : start + draw.choice([0, 1, 500])] = piece
        file.write_bytes(data)
        try:
            rows = read_occurrences(file)
        except ValueError as error:
            assert "some.tsv" in str(error) and "\n" not in str(error)
        else:
            assert min(Counter(row.word for row in rows).values()) > 1


def test_a_table_without_its_columns_is_reported(tmp_path):
    file = tmp_path / "some.tsv"
    file.write_text("bank\tmoney\tA bank .\n")
    with pytest.raises(ValueError, match="the first line must name the columns"):
        read_occurrences(file)


def test_nothing_in_the_page_is_read_as_html(tmp_path):
    evil = "<b>&\"'"
    rows = [Occurrence(evil, f"{evil}{number}", f"{evil} it") for number in range(3)]
    study = WordStudy(evil, rows, torch.randn(2, 3, 4), [[[1], [2], [0]]] * 2, [0.5, 0.5])
    write_senses_page([study], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<b>" not in page and "&lt;b&gt;&amp;&quot;" in page
