"""How good a tagger is, on given words and on raw text."""

import random

import pytest

from elmo_hf.tagging import evaluate_raw, evaluate_tagger
from elmo_hf.tagging.alignment import Counts
from elmo_hf.tagging.gold_text import read_paragraphs
from elmo_hf.tagging.raw_evaluation import as_analysis
from elmo_hf.tagging.tagger import TaggedSentence
from elmo_hf.text_splitting import SplitSentence, find_splitter

GOLD = """\
# newpar
1\tDogs\t_\tNOUN\t_\t_\t_\t_\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\t_\tAUX\t_\t_\t_\t_\t_\t_
3\tn't\t_\tPART\t_\t_\t_\t_\t_\t_
4\tbark\t_\tVERB\t_\t_\t_\t_\t_\tSpaceAfter=No
5\t.\t_\tPUNCT\t_\t_\t_\t_\t_\t_

# newpar
1-2\tWanna\t_\t_\t_\t_\t_\t_\t_\t_
1\tWant\t_\tVERB\t_\t_\t_\t_\t_\t_
2\tto\t_\tPART\t_\t_\t_\t_\t_\t_
3\tgo\t_\tVERB\t_\t_\t_\t_\t_\t_

"""


class Dictionary:
    """A tagger that knows one tag per word."""

    tags = {"Dogs": "NOUN", "do": "AUX", "n't": "PART", "bark": "NOUN", ".": "PUNCT"}

    def __init__(self, splitter="english"):
        self.tokenizer = self
        self.split = find_splitter(splitter)

    def tag(self, sentences):
        for words in sentences:
            tags = [self.tags.get(word, "X") for word in words]
            yield TaggedSentence(list(words), tags, [1.0] * len(tags))


@pytest.fixture
def gold(tmp_path):
    path = tmp_path / "gold.conllu"
    path.write_text(GOLD)
    return path


def test_given_words(gold, tmp_path):
    figures = evaluate_tagger(Dictionary(), gold)
    assert figures["accuracy"] == 4 / 8 and figures["words"] == 8
    assert "unknown_accuracy" not in figures
    assert figures["tags"]["PART"] == {"f1": 2 / 3, "precision": 1, "recall": 1 / 2, "number": 2}
    # any format says which words are known
    (tmp_path / "train").write_text("Dogs/NOUN bark/VERB do/AUX n't/PART ./PUNCT bark/NOUN\n")
    figures = evaluate_tagger(Dictionary(), gold, tmp_path / "train")
    assert figures["unknown_words"] == 3 and figures["unknown_accuracy"] == 0
    assert figures["ambiguous_words"] == 1 and figures["ambiguous_accuracy"] == 0


def test_spans_of_names(tmp_path):
    (tmp_path / "gold").write_text("Dogs B-X\nbark O\n")
    tagger = Dictionary()
    tagger.tags = {"Dogs": "B-X", "bark": "B-Y"}
    figures = evaluate_tagger(tagger, tmp_path / "gold", task="ner")
    assert (figures["precision"], figures["recall"]) == (1 / 2, 1)


def shares(figures):
    """Precision and recall as fractions of whole numbers, by kind."""
    return {kind: (row["precision"], row["recall"]) for kind, row in figures.items()}


def test_raw_text(gold):
    """The English rules find all; only "Wanna" is not what its words are."""
    figures = evaluate_raw(Dictionary(), gold)
    assert [row["number"] for row in figures.values()] == [6, 2, 8, 8]
    found = shares(figures)
    assert found["tokens"] == found["sentences"] == (1, 1)
    # found: Dogs do n't bark . Wan na go
    assert found["words"] == (6 / 8, 6 / 8) and found["upos"] == (4 / 8, 4 / 8)


def test_raw_text_split_otherwise(gold):
    figures = shares(evaluate_raw(Dictionary("whitespace"), gold))
    # found: Dogs don't bark. Wanna go
    assert figures["tokens"] == (4 / 5, 4 / 6) and figures["sentences"] == (1, 1)
    assert figures["words"] == (2 / 5, 2 / 8) and figures["upos"] == (1 / 5, 1 / 8)


def test_raw_text_without_sentences(tmp_path):
    (tmp_path / "gold").write_text("# nothing\n\n")
    with pytest.raises(ValueError, match="There is no sentence in .*gold'; check that"):
        evaluate_raw(Dictionary(), tmp_path / "gold")


def test_what_is_gold_is_right(gold):
    counts = Counts()
    for paragraph in read_paragraphs(gold):
        counts.add(paragraph.text, paragraph.gold, paragraph.gold)
    assert {row["f1"] for row in counts.figures().values()} == {1}


def analysis(text: str, sentences: list[list[list[str]]]):
    """Tokens are lists of words; all tags are X."""
    made, end = [], 0
    for tokens in sentences:
        words, spans, attached = [], [], set()
        for token in tokens:
            attached |= {*range(len(words) + 1, len(words) + len(token))}
            for word in token:
                start = text.index(word, end)
                end = start + len(word)
                words.append(word)
                spans.append((start, end))
        made.append(SplitSentence(words, spans, frozenset(attached)))
    return as_analysis(made, [["X"] * len(one.words) for one in made])


# text, gold and found tokens of one sentence; then how many tokens and words are right
CASES = [
    ("a b", [["a"], ["b"]], [["a"], ["b"]], 2, 2),
    # a space inside a word does not count
    ("a b", [["a b"]], [["a b"]], 1, 1),
    ("a b", [["a b"]], [["a"], ["b"]], 0, 0),
    # words inside a token are found by their forms, also if the token is not
    ("cannot", [["can", "not"]], [["can"], ["not"]], 0, 2),
    ("cannot", [["can", "not"]], [["cannot"]], 1, 0),
    ("cannot go", [["can", "not"], ["go"]], [["can", "not"], ["go"]], 2, 3),
    ("it'sme", [["it", "'s"], ["me"]], [["it"], ["'s", "me"]], 0, 3),
    ("gimmeabc", [["gim", "me"], ["abc"]], [["gim"], ["mea"], ["bc"]], 0, 1),
]


@pytest.mark.parametrize(("text", "gold", "found", "tokens", "words"), CASES)
def test_alignment(text, gold, found, tokens, words):
    counts = Counts()
    counts.add(text, analysis(text, [gold]), analysis(text, [found]))
    assert counts.by_kind["tokens"].right == tokens and counts.by_kind["words"].right == words
    assert counts.by_kind["upos"].right == words and counts.by_kind["sentences"].right == 1


def test_a_token_of_too_many_words(monkeypatch):
    monkeypatch.setattr("elmo_hf.tagging.alignment.MOST_PAIRS", 3)
    cannot = analysis("cannot", [[["can", "not"]]])
    with pytest.raises(ValueError, match="2 words in one token, which begins with 'can', and 2"):
        Counts().add("cannot", cannot, cannot)


def test_alignment_is_the_same_both_ways():
    draw = random.Random(0)
    for _ in range(200):
        text = "".join(draw.choice("ab") for _ in range(8))
        one, other = (analysis(text, random_sentences(text, draw)) for _ in range(2))
        there, back = Counts(), Counts()
        there.add(text, one, other)
        back.add(text, other, one)
        for kind, count in there.by_kind.items():
            assert count.right == back.by_kind[kind].right <= min(count.gold, count.found)


def random_sentences(text, draw):
    sentences, start = [[[]]], 0
    while start < len(text):
        end = min(len(text), start + draw.randint(1, 3))
        sentences[-1][-1].append(text[start:end])
        start = end
        if start < len(text) and draw.random() < 0.7:
            sentences[-1].append([])
            if draw.random() < 0.3:
                sentences[-1].pop()
                sentences.append([[]])
    return sentences
