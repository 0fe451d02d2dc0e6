"""Text of files and datasets by blocks, packed streams as in bilm-tf, and how streams resume."""

import gzip
from collections import Counter

import pytest
import torch
from datasets import Dataset

from elmo_hf import WordVocabulary
from elmo_hf.characters import BEGIN_SENTENCE, ByteRows, boundary_row, encode_word
from elmo_hf.pretraining import corpus as corpus_module
from elmo_hf.pretraining import streams as streams_module
from elmo_hf.pretraining.batches import encode_tokens, number_tokens
from elmo_hf.pretraining.corpus import Corpus, DatasetCorpus
from elmo_hf.pretraining.streams import PackedStream
from elmo_hf.text.files import find_files, size_of

SENTENCES = [
    " ".join(f"w{number}.{word}" for word in range(number % 5 + 1)) for number in range(23)
]


@pytest.fixture(autouse=True)
def small_piles(monkeypatch):
    monkeypatch.setattr(corpus_module, "LINES_IN_BLOCK", 4)
    monkeypatch.setattr(streams_module, "BLOCKS_IN_PILE", 2)


@pytest.fixture
def files(tmp_path):
    """Two files, one of them gzipped, with blank lines."""
    first, second = tmp_path / "a.txt", tmp_path / "b.txt.gz"
    first.write_bytes("\n".join(SENTENCES[:9]).encode() + b"\n\n \r\n")
    second.write_bytes(gzip.compress(("\n".join(SENTENCES[9:]) + "\n").encode()))
    return [first, second]


def read_all(stream, batches):
    """The tokens each row read, and those it predicted."""
    rows = [([], []) for _ in stream.rows]
    for _ in range(batches):
        for row, inputs, targets in zip(rows, *next(stream), strict=True):
            assert len(inputs) == len(targets) == stream.steps
            row[0].extend(inputs)
            row[1].extend(targets)
    return rows


def test_corpus_counts_and_reads(files):
    counts, seen = Counter(), []
    corpus = Corpus(files, counts, seen.append)
    assert corpus.num_sentences == len(SENTENCES)
    assert corpus.num_words == sum(counts.values()) == sum(len(s.split()) for s in SENTENCES)
    assert corpus.num_predictions == corpus.num_words + len(SENTENCES)
    blocks = corpus.blocks
    assert [line.strip() for line in corpus.read([*range(len(blocks))])] == SENTENCES
    assert [line.strip() for line in corpus.read([6, 1])] == SENTENCES[4:8] + SENTENCES[21:]
    assert len(blocks) == 7 and max(block.lines for block in blocks) == 4
    # as they lie on the disk, one of them compressed
    assert sum(seen) == size_of(files)


def test_a_row_is_one_sentence_after_the_other(files):
    """The rule of bilm-tf: inputs drop a sentence's last symbol, targets its first."""
    corpus = Corpus(files)
    for backward in (False, True):
        ((inputs, targets),) = read_all(PackedStream(corpus, 1, 5, backward), 10)
        expected_inputs, expected_targets = [], []
        for sentence in SENTENCES:
            words = sentence.split()
            tokens = ["</S>", *words[::-1], "<S>"] if backward else ["<S>", *words, "</S>"]
            expected_inputs += tokens[:-1]
            expected_targets += tokens[1:]
        assert inputs == expected_inputs[:50] and targets == expected_targets[:50]


def test_without_a_seed_everything_is_read_once(files):
    corpus = Corpus(files)
    stream = PackedStream(corpus, 4, 6)
    read = Counter()
    for inputs, targets in stream:
        assert [*map(len, inputs)] == [*map(len, targets)]
        read.update(word for row in targets for word in row)
    assert read.pop("</S>") == len(SENTENCES)
    assert read == Counter(word for sentence in SENTENCES for word in sentence.split())


def test_every_epoch_has_every_sentence_once_in_another_order(files):
    corpus = Corpus(files)
    orders = []
    for backward in (False, True):
        stream = PackedStream(corpus, 1, corpus.num_predictions, backward, seed=1)
        for _ in range(2):
            (targets,) = next(stream)[1]
            words = Counter(targets)
            assert words.pop("<S>" if backward else "</S>") == len(SENTENCES)
            assert words == Counter(word for s in SENTENCES for word in s.split())
            orders.append(tuple(sorted(set(targets), key=targets.index)))
    assert len({order if number < 2 else order[::-1] for number, order in enumerate(orders)}) == 4
    # the same seed gives the same order, another one another
    first = next(PackedStream(corpus, 1, 60, seed=1))
    assert first == next(PackedStream(corpus, 1, 60, seed=1))
    assert first != next(PackedStream(corpus, 1, 60, seed=2))


def test_distant_parts_of_the_text_are_read_together(files):
    """What is shuffled together comes from anywhere, and no two epochs put the same together."""
    corpus = Corpus(files)
    stream = PackedStream(corpus, 1, 1, seed=1)
    numbers = {sentence: number for number, sentence in enumerate(SENTENCES)}
    piles = []
    for number in range(3 * stream.piles_in_epoch):
        (sentences,) = stream.shares(number)
        piles.append(sorted(numbers[sentence.strip()] for sentence in sentences))
    spans = [pile[-1] - pile[0] for pile in piles if len(pile) > 4]
    assert max(spans) > 8 and len({tuple(pile) for pile in piles}) > len(piles) // 2


@pytest.mark.parametrize("num_rows", [1, 4, 40])
def test_rows_do_not_depend_on_who_reads_them(files, num_rows):
    """Also with more rows than sentences."""
    corpus = Corpus(files)
    whole = read_all(PackedStream(corpus, num_rows, 7, seed=3), 12)
    parts = []
    for start in range(0, num_rows, 2):
        rows = range(start, min(start + 2, num_rows))
        parts += read_all(PackedStream(corpus, num_rows, 7, seed=3, rows=rows), 12)
    assert parts == whole


@pytest.mark.parametrize("batches", [0, 1, 5, 9, 30, 31])
@pytest.mark.parametrize("processes", [1, 3])
def test_a_stream_goes_on_where_another_stood(files, batches, processes):
    corpus = Corpus(files)
    num_rows = 6
    whole = PackedStream(corpus, num_rows, 7, backward=True, seed=5)
    read_all(whole, batches)
    # saved by one process or by three, and gone on with by three or by one
    size = num_rows // processes
    states = []
    for start in range(0, num_rows, size):
        rows = range(start, start + size)
        stream = PackedStream(corpus, num_rows, 7, backward=True, seed=5, rows=rows)
        read_all(stream, batches)
        states.append(stream.state_dict())
    state = {name: torch.cat([part[name] for part in states]) for name in states[0]}
    assert all(torch.equal(part, state[name]) for name, part in whole.state_dict().items())
    expected = read_all(whole, 20)
    for rows in (range(num_rows), range(2, 4)):
        again = PackedStream(corpus, num_rows, 7, backward=True, seed=5, rows=rows)
        again.load_state_dict(state)
        assert read_all(again, 20) == expected[rows.start : rows.stop]


def test_a_line_of_a_hundred_thousand_words_is_read(tmp_path):
    file = tmp_path / "long.txt"
    file.write_text("w " * 100_000 + "\nshort line\n")
    corpus = Corpus([file])
    assert corpus.num_words == 100_002
    stream = PackedStream(corpus, 2, 1000, seed=0)
    for _ in range(150):
        inputs, _ = next(stream)
        assert [len(row) for row in inputs] == [1000, 1000]


def test_dataset_of_strings_or_words():
    rows = [{"text": sentence, "words": sentence.split()} for sentence in [*SENTENCES, ""]]
    dataset = Dataset.from_list(rows)
    for column in ("text", "words"):
        counts = Counter()
        corpus = DatasetCorpus(dataset, column, counts)
        assert corpus.num_sentences == len(SENTENCES) and corpus.num_words == sum(counts.values())
        assert len(corpus.blocks) == 6
        read = Counter(
            word for _, rows in PackedStream(corpus, 3, 5) for row in rows for word in row
        )
        assert read.pop("</S>") == len(SENTENCES) and read == counts
    with pytest.raises(ValueError, match="no column 'sentence'; it has text, words"):
        DatasetCorpus(dataset, "sentence")


def test_bad_text_is_named_by_file_and_line(tmp_path):
    (tmp_path / "empty.txt").write_text("\n \n")
    (tmp_path / "latin.txt").write_bytes("good line\nbad caf\xe9\n".encode("latin-1"))
    with pytest.raises(ValueError, match="There is no sentence in .*empty.txt"):
        Corpus([tmp_path / "empty.txt"])
    with pytest.raises(ValueError, match="latin.txt', line 2: the byte 0xe9 is not UTF-8"):
        Corpus([tmp_path / "latin.txt"])
    whole = gzip.compress(b"".join(b"%d\n" % number for number in range(100_000)))
    (tmp_path / "cut.gz").write_bytes(whole[:-5000])
    with pytest.raises(ValueError, match=r"cut.gz' is damaged or truncated after line \d{4,};"):
        Corpus([tmp_path / "cut.gz"])
    (tmp_path / "false.gz").write_bytes(b"no gzip\n")
    with pytest.raises(ValueError, match="false.gz' is damaged or truncated after line 0"):
        Corpus([tmp_path / "false.gz"])
    with pytest.raises(FileNotFoundError, match="There is no file"):
        find_files(tmp_path / "*.nothing")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        find_files(tmp_path)
    assert [path.name for path in find_files(tmp_path / "*.txt")] == ["empty.txt", "latin.txt"]


def test_a_byte_order_mark_is_no_part_of_a_word(tmp_path):
    file = tmp_path / "text.GZ"
    file.write_bytes(gzip.compress(b"\xef\xbb\xbfone two\nthree\n"))
    counts = Counter()
    assert [line.split() for line in Corpus([file], counts).read([0])] == [
        ["one", "two"],
        ["three"],
    ]
    assert set(counts) == {"one", "two", "three"}


def test_text_that_changes_while_it_is_read_is_noticed(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("one\ntwo\nthree\n")
    corpus = Corpus([file])
    file.write_text("one\n")
    with pytest.raises(ValueError, match="has changed since it was counted"):
        next(PackedStream(corpus, 1, 5))


def test_tokens_become_characters_and_numbers():
    vocabulary = WordVocabulary(["<S>", "</S>", "<UNK>", "dog"])
    tokens = [["<S>", "dog", "cat"], ["dog"]]
    ids = encode_tokens(tokens, 3, ByteRows(16))
    assert ids.shape == (2, 3, 16)
    assert ids[0, 0].tolist() == boundary_row(BEGIN_SENTENCE, 16)
    assert ids[0, 2].tolist() == encode_word("cat", 16)
    assert torch.equal(ids[1, 0], ids[0, 1]) and (ids[1, 1:] == 0).all()
    assert number_tokens(tokens, 3, vocabulary).tolist() == [[0, 3, 2], [3, -100, -100]]


@pytest.mark.parametrize("row", [None, ["a", None]], ids=["null", "null-word"])
def test_a_row_that_is_no_sentence_is_refused(row):
    dataset = Dataset.from_dict({"text": [["a"], row]})
    with pytest.raises(ValueError, match="Row 1 of the dataset: 'text' should be text or a list"):
        DatasetCorpus(dataset)
