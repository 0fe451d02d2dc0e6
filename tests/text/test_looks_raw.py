"""Raw text is noticed by its punctuation."""

import pytest

from elmo_hf.text import Line, looks_raw
from elmo_hf.text.looks_raw import watch_for_raw_text

RAW = ["The bank, it seems, lent money.", "Did it? Yes!", "He said so; I heard it."]
TOKENISED = ["The bank , it seems , lent money .", "Yahoo! and Apple Inc.", "Did it ? Yes !"]


def warnings_about(texts):
    warned = []
    lines = [Line(number, text, text.split(), 1) for number, text in enumerate(texts)]
    assert list(watch_for_raw_text(iter(lines), warned.append)) == lines
    return warned


@pytest.mark.parametrize("first_lines", [1, 2, 100])
def test_raw_text_is_noticed_once(monkeypatch, first_lines):
    monkeypatch.setattr(looks_raw, "FIRST_LINES", first_lines)
    assert warnings_about(["", *RAW * 3]) == ["bank,"]
    assert warnings_about(TOKENISED * 3) == []
    assert warnings_about([]) == warnings_about([""]) == []


def test_only_the_first_lines_matter(monkeypatch):
    monkeypatch.setattr(looks_raw, "FIRST_LINES", 3)
    assert warnings_about([*TOKENISED, *RAW * 3]) == []


@pytest.mark.parametrize("text", ["no punctuation", "3, 4; 5!", "a.m. and p.m. are times", "= a ="])
def test_what_says_nothing_is_no_alarm(text):
    assert warnings_about([text]) == []
