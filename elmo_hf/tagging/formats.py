# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Tagged sentences from files; the format is recognised by the content.

CoNLL-U             ten columns between tabs, numbered words; the tag is UPOS unless named
CoNLL columns       one word per line, columns between tabs or spaces, blank lines between
                    sentences; the first column is the word and the last one the tag unless
                    they are given by number
word/TAG, word_TAG  one sentence per line
JSON lines, parquet one sentence per row, with a list of words and a list of tags
"""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from datasets import ClassLabel, Dataset

from elmo_hf.tagging import conllu
from elmo_hf.tagging.rows import empty_column, numbered_lines, wrong_id, wrong_width
from elmo_hf.tagging.tasks import TASKS
from elmo_hf.text.dataset_rows import readable, readable_rows

# Names of columns that hold words, the likeliest first.
TOKEN_COLUMNS = ("tokens", "words", "form", "forms")
# How many lines are looked at to recognise a format.
LINES_LOOKED_AT = 200
# Half of a character, which JSON can write and UTF-8 cannot.
SURROGATE = re.compile("[\\ud800-\\udfff]")
# `tokens`, `tags`, and the `line` at which the sentence begins.
Sentence = dict[str, Any]


class Columns(NamedTuple):
    """Where the words and the tags are; None stands for the likeliest column of the task."""

    task: str = "pos"
    token: str | None = None
    tag: str | None = None


def read_tagged(
    path: Path, task: str = "pos", token_column: str | None = None, tag_column: str | None = None
) -> Iterator[Sentence]:
    """Yields the sentences of a file one by one."""
    sentences = read_format(path, Columns(task, token_column, tag_column))
    first = next(sentences, None)
    if first is None:
        raise ValueError(f"There is no sentence in {str(path)!r}; check that it is the right file.")
    yield from itertools.chain([first], sentences)


def read_format(path: Path, columns: Columns) -> Iterator[Sentence]:
    with path.open("rb") as file:
        start = file.read(4)
    if start == b"PAR1":
        with readable(repr(str(path))):
            rows = Dataset.from_parquet(str(path))
        return read_rows(rows, repr(str(path)), columns)
    kind = recognise_format(path)
    if kind == "json":
        return read_json(path, columns)
    if kind in ("/", "_"):
        return read_joined(path, kind)
    return read_columns(path, kind, columns)


def recognise_format(path: Path) -> str:
    """`json`, `conllu`, the separator of word and tag, or that of columns: a tab or a space."""
    filled = (line for _, line in numbered_lines(path) if line.strip())
    sample = [
        line for line in itertools.islice(filled, LINES_LOOKED_AT) if not line.startswith("# ")
    ]
    if sample and sample[0].lstrip().startswith("{"):
        return "json"
    first_row = next((line.split("\t") for line in sample if "\t" in line), None)
    if first_row is not None:
        return "conllu" if conllu.is_conllu(first_row) else "\t"
    for separator in ("/", "_"):
        if sample and all(separator in word for word in sample[0].split()):
            return separator
    return " "


def read_columns(path: Path, kind: str, columns: Columns) -> Iterator[Sentence]:
    """Reads CoNLL-U, or any other columns."""
    is_conllu = kind == "conllu"
    tokens: list[str] = []
    tags: list[str] = []
    width = start = 0
    places = (0, 0)
    for number, line in itertools.chain(numbered_lines(path), [(0, "")]):
        if not line.strip():
            if tokens:
                yield {"tokens": tokens, "tags": tags, "line": start}
            tokens, tags, start = [], [], 0
            continue
        if line.startswith("# ") or (is_conllu and conllu.is_comment(line)):
            continue
        row = line.split(None if kind == " " else "\t")
        if not width:
            width = len(row)
            places = find_columns(path, width, is_conllu, columns)
        where = f"{str(path)!r}, line {number}"
        if len(row) != width or width < 2:
            wanted = f"the first line has {width}" if width > 1 else "at least 2 are needed"
            raise wrong_width(where, len(row), " " if kind == " " else "\t", wanted)
        if is_conllu and not conllu.is_conllu(row):
            raise wrong_id(where, row[0])
        if is_conllu and not conllu.is_word(row):
            continue
        for place in places:
            if not row[place].strip():
                raise empty_column(where, place)
        tokens.append(row[places[0]])
        tags.append(row[places[1]])
        start = start or number


def find_columns(path: Path, width: int, is_conllu: bool, columns: Columns) -> tuple[int, int]:
    """The places of word and tag in a row; columns without names are numbered from 1."""
    names = conllu.COLUMNS if is_conllu else [str(number) for number in range(1, width + 1)]
    usual = (conllu.WORD, conllu.TAG) if is_conllu else (names[0], names[-1])
    wanted = (columns.token or usual[0], columns.tag or usual[1])
    for name in wanted:
        if name not in names:
            raise ValueError(
                f"{str(path)!r} has no column {name!r}; its columns are {', '.join(names):.200}."
            )
    return names.index(wanted[0]), names.index(wanted[1])


def read_joined(path: Path, separator: str) -> Iterator[Sentence]:
    """Reads one sentence per line, in which a tag follows the last separator of each word."""
    for number, line in numbered_lines(path):
        pairs = [word.rpartition(separator) for word in line.split()]
        for word, _, tag in pairs:
            if not word or not tag:
                raise ValueError(
                    f"{str(path)!r}, line {number}: {word + tag!r:.50} has no {separator!r} "
                    f"between a word and its tag; write word{separator}TAG."
                )
        if pairs:
            tokens, _, tags = map(list, zip(*pairs, strict=True))
            yield {"tokens": tokens, "tags": tags, "line": number}


def read_json(path: Path, columns: Columns) -> Iterator[Sentence]:
    names: tuple[str, str] | None = None
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        where = f"{str(path)!r}, line {number}"
        try:
            row = json.loads(line)
        # also a number of too many digits, and brackets without end
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{where}: this is not JSON ({error}); correct this line.") from error
        if not isinstance(row, dict):
            raise ValueError(
                f"{where}: this is not a JSON object; write a sentence as "
                '{"tokens": ["Hi"], "tags": ["INTJ"]}.'
            )
        names = names or choose_columns(where, list(row), columns)
        yield check_row(row, names, where, number)


def read_rows(rows: Any, where: str, columns: Columns) -> Iterator[Sentence]:
    """Reads a dataset; tags that are numbers of classes get their names."""
    names = choose_columns(where, list(rows.column_names), columns)
    feature = getattr(rows.features[names[1]], "feature", None)
    for number, row in enumerate(readable_rows(rows, where), start=1):
        if isinstance(feature, ClassLabel) and row[names[1]] is not None:
            row[names[1]] = [name_class(feature, tag) for tag in row[names[1]]]
        yield check_row(row, names, f"{where}, row {number}", number)


def name_class(feature: ClassLabel, tag: Any) -> Any:
    """The name of a class; None, which `check_row` refuses, for what is no class."""
    return feature.int2str(tag) if tag is not None and 0 <= tag < feature.num_classes else None


def choose_columns(where: str, found: list[str], columns: Columns) -> tuple[str, str]:
    """The columns that were asked for, or else the likeliest ones."""
    chosen = []
    for kind, wanted, likely in (
        ("token", columns.token, TOKEN_COLUMNS),
        ("tag", columns.tag, TASKS[columns.task].tag_columns),
    ):
        names = [wanted] if wanted else [name for name in likely if name in found]
        if not names or names[0] not in found:
            missing = f"no column {wanted!r}" if wanted else f"no column that looks like {kind}s"
            raise ValueError(
                f"{where}: there is {missing}; name one of {', '.join(found):.200} with "
                f"--{kind}_column."
            )
        chosen.append(names[0])
    return chosen[0], chosen[1]


def check_row(row: dict, names: tuple[str, str], where: str, line: int) -> Sentence:
    tokens, tags = (row.get(name) for name in names)
    if not isinstance(tokens, list) or not isinstance(tags, list) or len(tokens) != len(tags):
        raise ValueError(
            f"{where}: {names[0]!r} and {names[1]!r} must be lists of one length; correct this row."
        )
    for name, values in zip(names, (tokens, tags), strict=True):
        for place, value in enumerate(values, start=1):
            if not is_text(value) or (value == "" and values is tags):
                raise ValueError(
                    f"{where}: number {place} of {name!r} is {value!r:.50}, which is not a text; "
                    "correct this row."
                )
    return {"tokens": [*map(str, tokens)], "tags": [*map(str, tags)], "line": line}


def is_text(value: Any) -> bool:
    """Whether this can be a word or a tag: a string of characters, or the number of a class."""
    if isinstance(value, str):
        return SURROGATE.search(value) is None
    return isinstance(value, int) and not isinstance(value, bool)
