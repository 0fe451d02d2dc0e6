"""The sentences in two senses, and how neighbours are counted."""

import json
from collections import Counter

import pytest
import torch
from helpers.launch import run
from helpers.tiny import tiny_config
from word_senses import SENTENCES, Occurrence, neighbours, read_occurrences, same_sense

from elmo_hf import ElmoModel, ElmoTokenizer


def test_five_words_in_two_senses_five_times():
    rows = read_occurrences(SENTENCES)
    assert len({row.sentence for row in rows}) == 50
    senses = Counter((row.word, row.sense) for row in rows)
    assert set(senses.values()) == {5}
    assert {word for word, _ in senses} == {"bank", "bat", "spring", "duck", "left"}


def test_ties_count_by_their_share():
    rows = [Occurrence("w", sense, "") for sense in "aabb"]
    apart = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    assert same_sense(rows, neighbours(apart)) == 1
    assert same_sense(rows, neighbours(apart[[0, 2, 1, 3]])) == 0
    assert same_sense(rows, neighbours(torch.ones(4, 2))) == pytest.approx(1 / 3)


def test_script_prints_every_layer(tmp_path):
    config = tiny_config()
    ElmoModel(config).save_pretrained(tmp_path / "elmo")
    ElmoTokenizer(max_characters_per_token=config.max_characters_per_token).save_pretrained(
        tmp_path / "elmo"
    )
    arguments = ["--model_name_or_path", tmp_path / "elmo", "--output_dir", tmp_path]
    printed = run("word_senses.py", arguments)
    figures = json.loads((tmp_path / "senses.json").read_text())
    assert set(figures) == {"bank", "bat", "spring", "duck", "left", "all"}
    # no context, no knowledge
    assert figures["all"][0] == pytest.approx(4 / 9)
    assert len(figures["all"]) == config.num_hidden_layers + 1 and "layer 2" in printed
    assert (tmp_path / "senses.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "senses.html").read_text()
    # fifty sentences on three planes, and nothing from elsewhere
    assert page.count("<circle") == 150 and "http" not in page


def test_a_sentence_without_its_word_is_told(tmp_path):
    file = tmp_path / "some.tsv"
    file.write_text("word\tsense\tsentence\nbank\tmoney\tNo such thing .\n")
    with pytest.raises(ValueError, match="line 2: 'bank' should stand in it just once"):
        read_occurrences(file)
