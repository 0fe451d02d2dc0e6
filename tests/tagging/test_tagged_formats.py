"""Tagged text in every format gives the same sentences; errors name the file and the line."""

import gzip
import json
import os
import subprocess
import sys

import pytest
from datasets import ClassLabel, Dataset, Features, List, Value, load_dataset
from helpers.launch import EXAMPLES, load_script
from transformers.utils import logging

from elmo_hf.tagging import conllu, load_splits, load_tagged, number_tags, read_tagged
from elmo_hf.tagging.splits import load_named

check = load_script("check_sample.py").check
SENTENCES = [
    (["Dogs", "bark", "."], ["NOUN", "VERB", "PUNCT"]),
    (["I", "do", "n't", "and/or", "#1"], ["PRON", "AUX", "PART", "CCONJ", "NOUN"]),
]
CONLLU = """\
# sent_id = 1
# text = Dogs bark.
1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_
2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\tSpaceAfter=No
3\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

# newpar
1\tI\tI\tPRON\tPRP\t_\t2\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t0\troot\t_\t_
3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_
3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_
4\tand/or\tand/or\tCCONJ\tCC\t_\t2\tcc\t_\t_
5\t#1\t#1\tNOUN\tNN\t_\t2\tobj\t_\t_
"""


def joined(separator: str) -> str:
    return "\n".join(
        " ".join(f"{word}{separator}{tag}" for word, tag in zip(*sentence, strict=True))
        for sentence in SENTENCES
    )


def columns(separator: str, *more: str) -> str:
    return "\n\n".join(
        "\n".join(separator.join([word, *more, tag]) for word, tag in zip(*sentence, strict=True))
        for sentence in SENTENCES
    )


JSON_LINES = "\n".join(json.dumps({"tokens": words, "upos": tags}) for words, tags in SENTENCES)
TEXTS = {
    "conllu": CONLLU,
    "tabs": columns("\t"),
    "more-columns": columns("\t", "_", "x"),
    "spaces": columns(" ") + "\n",
    "slash": joined("/"),
    "underscore": joined("_"),
    "json": JSON_LINES + "\n",
    "windows": CONLLU.replace("\n", "\r\n"),
    "mixed-line-ends": CONLLU.replace("\n", "\r\n", 5),
    "old-mac": columns("\t").replace("\n", "\r"),
    "byte-order-mark": "\ufeff" + columns("\t"),
    "many-blank-lines": "\n\n\n" + columns("\t").replace("\n\n", "\n \n\n\n") + "\n\n",
}


def sentences(path, **columns) -> list[tuple[list[str], list[str]]]:
    return [(row["tokens"], row["tags"]) for row in read_tagged(path, **columns)]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_formats_are_recognised_by_their_content(text, tmp_path):
    path = tmp_path / "data.any"
    path.write_bytes(text.encode("utf-8"))
    assert sentences(path) == SENTENCES


def test_parquet_with_classes(tmp_path):
    names = sorted({tag for _, tags in SENTENCES for tag in tags})
    features = Features({"words": List(Value("string")), "pos": List(ClassLabel(names=names))})
    rows = {"words": [words for words, _ in SENTENCES], "pos": [tags for _, tags in SENTENCES]}
    Dataset.from_dict(rows, features=features).to_parquet(str(tmp_path / "data"))
    assert sentences(tmp_path / "data") == SENTENCES


def test_parquet_rows_that_are_no_sentence(tmp_path):
    features = Features({"words": List(Value("string")), "pos": List(ClassLabel(names=["X"]))})
    for words, tags, sentence in (
        (["a"], [None], "row 1: number 1 of 'pos' is None"),
        ([None], [0], "row 1: number 1 of 'words' is None"),
        (["a"], [-1], "row 1: number 1 of 'pos' is None"),
        (None, None, "row 1: 'words' and 'pos' must be lists of one length"),
    ):
        path = tmp_path / "data"
        rows = Dataset.from_dict({"words": [words], "pos": [tags]}, features=features)
        rows.to_parquet(str(path))
        with pytest.raises(ValueError, match=f"data', {sentence}"):
            load_tagged(path)


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_sentences_without_words_are_left_out_with_a_notice(split, tmp_path, caplog):
    logging.enable_propagation()
    files = {}
    for name in ("train", "validation", "test"):
        files[name] = tmp_path / name
        rows = [{"tokens": ["a"], "tags": ["X"]}, {"tokens": [], "tags": []}]
        rows = rows * 2 if name == split else rows[:1]
        files[name].write_text("\n".join(json.dumps(row) for row in rows))
    splits, _ = load_splits(files)
    assert [row["tokens"] for row in splits[split]] == [["a"], ["a"]]
    assert f"{split}: sentences without words are left out (2, the first" in caplog.text
    assert "at line 2)" in caplog.text and caplog.text.count("left out") == 1
    logging.disable_propagation()


def test_dataset_by_its_name(tmp_path):
    """As of the Hub; a folder of parquet files has a name too."""
    tags = ClassLabel(names=sorted({tag for _, tags in SENTENCES for tag in tags}))
    features = Features({"words": List(Value("string")), "pos_tags": List(tags)})
    rows = [{"words": words, "pos_tags": tags.str2int(some)} for words, some in SENTENCES]
    for split in ("train", "validation"):
        file = tmp_path / "data" / f"{split}.parquet"
        Dataset.from_list(rows, features=features).to_parquet(str(file))
    whole = load_dataset(str(tmp_path / "data"))
    whole.save_to_disk(tmp_path / "saved")
    for name in ("data", "saved"):
        splits = load_named(str(tmp_path / name), None, "pos", None, None)
        assert splits.keys() == {"train", "validation"}
        for split in splits.values():
            assert [(row["tokens"], row["tags"]) for row in split] == SENTENCES
    with pytest.raises(ValueError, match="saved, split train: there is no column 'x'; name one of"):
        load_named(str(tmp_path / "saved"), tag_column="x")


def test_columns_may_be_named(tmp_path):
    path = tmp_path / "data"
    path.write_text(CONLLU)
    assert sentences(path, tag_column="xpos")[0][1] == ["NNS", "VBP", "."]
    path.write_text("EU NNP B-NP B-ORG\nrejects VBZ B-VP O\n")
    assert sentences(path)[0][1] == ["B-ORG", "O"]
    assert sentences(path, tag_column="2")[0][1] == ["NNP", "VBZ"]
    path.write_text(json.dumps({"text": ["a"], "label": ["X"]}))
    assert sentences(path, token_column="text", tag_column="label") == [(["a"], ["X"])]


def test_gzipped_text(tmp_path):
    path = tmp_path / "data.conllu.gz"
    path.write_bytes(gzip.compress(CONLLU.encode()))
    assert sentences(path) == SENTENCES


def test_what_is_written_as_conllu_is_read_again(tmp_path):
    path = tmp_path / "data"
    path.write_text("".join(conllu.format_sentence(*sentence) for sentence in SENTENCES))
    assert sentences(path) == SENTENCES
    assert conllu.format_sentence(["Dogs", "bark"], ["NOUN", "VERB"], ["_", "Gold=X"]) == (
        "1\tDogs\t_\tNOUN\t_\t_\t_\t_\t_\t_\n2\tbark\t_\tVERB\t_\t_\t_\t_\t_\tGold=X\n\n"
    )


def test_any_words_and_tags_are_written_as_rows(tmp_path):
    path = tmp_path / "data"
    words, tags = ["a\tb", "", " ", "c\r\nd", "ö"], ["X", "Y\nZ", "\t", "$", "_"]
    path.write_text(conllu.format_sentence(words, tags), encoding="utf-8", newline="")
    written = (["a b", "_", "_", "c  d", "ö"], ["X", "Y Z", "_", "$", "_"])
    assert sentences(path) == [written]


def test_splits_have_the_numbers_of_the_training_tags(tmp_path):
    (tmp_path / "train").write_text("a/X b/Y\nc/Z\n")
    (tmp_path / "dev").write_text("a/Z\n")
    files = {"train": tmp_path / "train", "validation": tmp_path / "dev"}
    splits, labels = load_splits(files, max_train_samples=1)
    assert labels == ["X", "Y", "Z"] and [*splits] == ["train", "validation"]
    assert splits["train"]["labels"][:] == [[0, 1]] and splits["validation"]["labels"][:] == [[2]]
    with pytest.raises(ValueError, match="Pass both --train_file and --validation_file"):
        load_splits({"train": tmp_path / "train"})


def test_words_may_hold_spaces(tmp_path):
    path = tmp_path / "data"
    path.write_text("Trả lời\tVERB\nphỏng vấn\tVERB\n", encoding="utf-8")
    assert sentences(path)[0][0] == ["Trả lời", "phỏng vấn"]


def test_dataset_follows_its_file(tmp_path):
    path = tmp_path / "data"
    for count in (1, 2):
        path.write_text("a/X\n" * count)
        assert len(load_tagged(path)) == count


BAD = {
    "one-more-column": (
        "a\tX\nb\tY\tZ\n",
        "line 2: 3 tab-separated columns, but the first line has 2; correct",
    ),
    "one-column": (
        "a\nb\n",
        "line 1: 1 space-separated column, but at least 2 are needed; correct",
    ),
    "nothing": ("\n\n", "There is no sentence in"),
    "no-tag": ("a/X b/Y\nc/X dog\n", "line 2: 'dog' has no '/' between a word and its tag"),
    "not-json": ('{"tokens": ["a"], "tags": ["X"]}\n{oops\n', "line 2: this is not JSON"),
    "uneven": ('{"tokens": ["a", "b"], "tags": ["X"]}', "line 1: 'tokens' and 'tags' must be"),
    "no-column": ('{"text": "a"}', "there is no column that looks like tokens; name one of text"),
    "a-list": ('{"tokens": ["a"], "tags": ["X"]}\n["a"]\n', "line 2: this is not a JSON object"),
    "deep": ('{"tokens": ' + "[" * 100_000, "line 1: this is not JSON"),
    "no-word": ('{"tokens": ["a", null], "tags": ["X", "X"]}', "number 2 of 'tokens' is None"),
    "null-tag": ('{"tokens": ["a"], "tags": [null]}', "line 1: number 1 of 'tags' is None"),
    "empty-tag": ('{"tokens": ["a"], "tags": [""]}', "line 1: number 1 of 'tags' is ''"),
    "half-character": ('{"tokens": ["\\ud800"], "tags": ["X"]}', "number 1 of 'tokens' is"),
    "a-number": ('{"tokens": [1.50], "tags": ["X"]}', "line 1: number 1 of 'tokens' is 1.5"),
    "no-sentences": ('{"tokens": [], "tags": []}\n', "There is no word in any sentence of"),
    "no-number": (
        CONLLU.replace("2\tbark", "x\tbark"),
        "line 4: 'x' is not the number of a word, as in 1, 1-2 or 1.1; correct it.",
    ),
    "odd-number": (CONLLU.replace("2\tbark", "²\tbark"), "line 4: '²' is not the number"),
    "empty-word": ("a\tX\n\tX\n", "line 2: column 1 is empty; correct this line."),
    "no-tag-in-its-column": ("a\tX\nb\t\n", "line 2: column 2 is empty; correct this line."),
}


@pytest.mark.parametrize(("text", "sentence"), BAD.values(), ids=BAD)
def test_errors_name_file_and_line(text, sentence, tmp_path):
    path = tmp_path / "train.txt"
    path.write_text(text)
    with pytest.raises(ValueError) as raised:
        load_tagged(path)
    assert sentence in str(raised.value) and "train.txt" in str(raised.value)


def test_missing_columns_folders_and_bytes(tmp_path):
    path = tmp_path / "data"
    path.write_text(CONLLU)
    with pytest.raises(ValueError, match="has no column 'pos'; its columns are id, form"):
        load_tagged(path, tag_column="pos")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        load_tagged(tmp_path / "nowhere")
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        load_tagged(tmp_path)
    path.write_bytes(b"caf\xe9\tNOUN\n")
    with pytest.raises(ValueError, match="line 1: the byte 0xe9 is not UTF-8"):
        load_tagged(path)


@pytest.mark.program
def test_a_file_that_may_not_be_read(tmp_path):
    """In a process that is not root, whom nothing is forbidden."""
    path = tmp_path / "data"
    path.write_text(CONLLU)
    path.chmod(0)
    code = f"""
import os
from elmo_hf.tagging import load_tagged
from pathlib import Path
if os.getuid() == 0:
    os.setuid(65534)
try:
    load_tagged(Path({str(path)!r}))
except PermissionError as error:
    print(error)
"""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and os.getuid() == 0 and folder != folder.parent:
            folder.chmod(0o755)
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "cannot be read: permission denied; try chmod u+r." in printed.stdout, printed.stderr


def test_an_unseen_tag_is_reported_with_its_line(tmp_path):
    path = tmp_path / "dev"
    path.write_text("a/X\nb/ODD\n")
    with pytest.raises(ValueError, match="line 2: the tag 'ODD' is not in the training"):
        number_tags(load_tagged(path), str(path), {"X": 0})


def test_the_sample_is_clean():
    assert (
        check([EXAMPLES / "sample" / f"{split}.conllu" for split in ("train", "dev", "test")]) == []
    )
    sizes = [len(sentences(EXAMPLES / "sample" / f"{s}.conllu")) for s in ("train", "dev", "test")]
    assert sizes[0] >= 400 and min(sizes[1:]) >= 80


def test_the_check_finds_what_is_wrong(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("the/DET old/ADJ dog/NOUN barks/VERB loudly/ADV\nyes/INTJ\nyes/INTJ\n")
    other.write_text("the/DET old/ADJ cat/NOUN barks/VERB loudly/ADV\nno/NO\n")
    found = "\n".join(check([one, other]))
    assert "'NO' is not a universal tag" in found
    assert "one, line 3: the same sentence as one, line 2" in found
    assert "other, line 1: nearly the same sentence as one, line 1" in found
