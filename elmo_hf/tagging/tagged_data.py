"""Tagged sentences from files of many formats, told apart by what is in them, or from the Hub.

    CoNLL-U             ten columns between tabs, words numbered; the tag is UPOS unless named
    CoNLL columns       a word a line, columns between tabs or spaces, blank lines between them;
                        the first column is the word and the last one the tag unless numbered
    word/TAG, word_TAG  a sentence a line
    JSON lines, parquet a sentence a row, with a list of words and a list of tags

Whatever it was, it becomes a `datasets.Dataset` of `tokens`, `tags` and the `line` each sentence
begins at. It lies on disk and is mapped into memory, so a file may be larger than memory.
"""

import argparse
import hashlib
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from datasets import ClassLabel, Dataset, Features, List, Value, load_dataset
from datasets.exceptions import DatasetGenerationError

FEATURES = Features(
    {"tokens": List(Value("string")), "tags": List(Value("string")), "line": Value("int64")}
)
CONLLU_COLUMNS = ["id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"]
CONLLU_ID = re.compile(r"\d+([-.]\d+)?")
# names that such columns have, the likeliest first
TOKEN_COLUMNS = ("tokens", "words", "form", "forms")
TAG_COLUMNS = {
    "pos": ("upos", "upos_tags", "pos_tags", "pos", "tags", "labels", "xpos"),
    "ner": ("ner_tags", "ner", "entities", "tags", "labels"),
}
SPLITS = ("train", "validation", "test")
# the sample beside this file
BUNDLED = {
    split: Path(__file__).resolve().parents[2] / "examples" / "sample" / f"{name}.conllu"
    for split, name in zip(SPLITS, ("train", "dev", "test"), strict=True)
}
# lines by which a format is recognised
SAMPLE = 200
Sentence = dict[str, Any]


def load_tagged(
    path: Path, task: str = "pos", token_column: str | None = None, tag_column: str | None = None
) -> Dataset:
    """The sentences of a file."""
    content = hash_file(path)
    settings = {"task": task, "token_column": token_column, "tag_column": tag_column}
    key = hashlib.sha256(json.dumps([content, str(path), settings]).encode()).hexdigest()
    try:
        return Dataset.from_generator(
            read_tagged,
            gen_kwargs={"path": path, **settings},
            features=FEATURES,
            fingerprint=key[:32],
        )
    except DatasetGenerationError as error:
        # what went wrong in the file, rather than that something went wrong
        raise error.__cause__ or error from None


def load_from_hub(
    name: str, config: str | None, task: str, token_column: str | None, tag_column: str | None
) -> dict[str, Dataset]:
    """The splits of a dataset by their names."""
    return {
        split: Dataset.from_generator(
            read_rows,
            gen_kwargs={
                "rows": rows,
                "where": f"{name}, split {split}",
                "task": task,
                "token_column": token_column,
                "tag_column": tag_column,
            },
            features=FEATURES,
        )
        for split, rows in load_dataset(name, config).items()
    }


def hash_file(path: Path) -> str:
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a file in it.")
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {str(path)!r}.") from None
    except PermissionError:
        raise PermissionError(
            f"{str(path)!r} may not be read; give yourself the permission, as in chmod u+r."
        ) from None


def read_tagged(
    path: Path, task: str = "pos", token_column: str | None = None, tag_column: str | None = None
) -> Iterator[Sentence]:
    """The sentences of a file one by one."""
    with path.open("rb") as file:
        start = file.read(4)
    if start == b"PAR1":
        rows = Dataset.from_parquet(str(path))
        sentences = read_rows(rows, repr(str(path)), task, token_column, tag_column)
    else:
        kind = find_format(path)
        if kind == "json":
            sentences = read_json(path, task, token_column, tag_column)
        elif kind in "/_":
            sentences = read_joined(path, kind)
        else:
            sentences = read_columns(path, kind, token_column, tag_column)
    first = next(sentences, None)
    if first is None:
        raise ValueError(f"There is no sentence in {str(path)!r}; is it the right file?")
    yield from itertools.chain([first], sentences)


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines without their ends, whichever of the three kinds these are, or several."""
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                yield number, line.rstrip("\n")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{str(path)!r} is not UTF-8 text ({error.reason}); convert it to UTF-8 first."
        ) from error


def find_format(path: Path) -> str:
    """`json`, `conllu`, the separator of word and tag, or the one of columns: a tab or a space."""
    filled = (line for _, line in numbered_lines(path) if line.strip())
    sample = [line for line in itertools.islice(filled, SAMPLE) if not line.startswith("# ")]
    if sample and sample[0].lstrip().startswith("{"):
        return "json"
    if any("\t" in line for line in sample):
        rows = [line.split("\t") for line in sample if "\t" in line]
        is_conllu = all(len(row) == 10 and CONLLU_ID.fullmatch(row[0]) for row in rows[:1])
        return "conllu" if is_conllu else "\t"
    for separator in "/_":
        if sample and all(separator in word for word in sample[0].split()):
            return separator
    return " "


def read_columns(
    path: Path, kind: str, token_column: str | None, tag_column: str | None
) -> Iterator[Sentence]:
    """CoNLL-U, or any other columns."""
    conllu = kind == "conllu"
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
        if line.startswith("# ") or (conllu and line.startswith("#")):
            continue
        row = line.split(None if kind == " " else "\t")
        if not width:
            width = len(row)
            names = CONLLU_COLUMNS if conllu else [str(n) for n in range(1, width + 1)]
            places = (
                find_column(path, names, token_column or names[1 if conllu else 0]),
                find_column(path, names, tag_column or ("upos" if conllu else names[-1])),
            )
        if len(row) != width or width < 2:
            between = "spaces" if kind == " " else "tabs"
            raise ValueError(
                f"{str(path)!r}, line {number}: there {are(len(row), 'column')} between {between} "
                f"where the first line has {width}, and two at least are needed; mend this line."
            )
        # a range of words or an empty node of CoNLL-U is no word of the sentence
        if conllu and not row[0].isdigit():
            continue
        tokens.append(row[places[0]])
        tags.append(row[places[1]])
        start = start or number


def are(count: int, what: str) -> str:
    return f"is 1 {what}" if count == 1 else f"are {count} {what}s"


def find_column(path: Path, names: list[str], wanted: str) -> int:
    if wanted not in names:
        raise ValueError(
            f"{str(path)!r} has no column {wanted!r}; its columns are {', '.join(names)}."
        )
    return names.index(wanted)


def read_joined(path: Path, separator: str) -> Iterator[Sentence]:
    """A sentence a line, each word with its tag behind the last separator."""
    for number, line in numbered_lines(path):
        pairs = [word.rpartition(separator) for word in line.split()]
        for word, _, tag in pairs:
            if not word or not tag:
                raise ValueError(
                    f"{str(path)!r}, line {number}: {word + tag!r} has no {separator!r} between a "
                    f"word and its tag; write word{separator}TAG."
                )
        if pairs:
            tokens, _, tags = map(list, zip(*pairs, strict=True))
            yield {"tokens": tokens, "tags": tags, "line": number}


def read_json(
    path: Path, task: str, token_column: str | None, tag_column: str | None
) -> Iterator[Sentence]:
    names: tuple[str, str] | None = None
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        where = f"{str(path)!r}, line {number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{where}: this is not JSON ({error}); mend this line.") from error
        names = names or choose_columns(where, list(row), task, token_column, tag_column)
        yield checked(row, names, where, number)


def read_rows(
    rows: Any, where: str, task: str, token_column: str | None, tag_column: str | None
) -> Iterator[Sentence]:
    """Of a dataset; tags that are numbers of classes get their names."""
    names = choose_columns(where, list(rows.column_names), task, token_column, tag_column)
    feature = getattr(rows.features[names[1]], "feature", None)
    for number, row in enumerate(rows, start=1):
        if isinstance(feature, ClassLabel):
            row[names[1]] = [feature.int2str(tag) for tag in row[names[1]]]
        yield checked(row, names, f"{where}, row {number}", number)


def choose_columns(
    where: str, found: list[str], task: str, token_column: str | None, tag_column: str | None
) -> tuple[str, str]:
    """The columns named, or the likeliest ones."""
    chosen = []
    for kind, wanted, likely in (
        ("token", token_column, TOKEN_COLUMNS),
        ("tag", tag_column, TAG_COLUMNS[task]),
    ):
        names = [wanted] if wanted else [name for name in likely if name in found]
        if not names or names[0] not in found:
            missing = f"no column {wanted!r}" if wanted else f"no column that looks like {kind}s"
            raise ValueError(
                f"{where}: there is {missing}; name one of {', '.join(found)} by --{kind}_column."
            )
        chosen.append(names[0])
    return chosen[0], chosen[1]


def checked(row: dict, names: tuple[str, str], where: str, line: int) -> Sentence:
    tokens, tags = (row.get(name) for name in names)
    if not isinstance(tokens, list) or not isinstance(tags, list) or len(tokens) != len(tags):
        raise ValueError(
            f"{where}: {names[0]!r} and {names[1]!r} must be lists of one length; mend this row."
        )
    return {"tokens": [*map(str, tokens)], "tags": [*map(str, tags)], "line": line}


def number_tags(
    dataset: Dataset, where: str, numbers: dict[str, int], tags: str = "tags"
) -> Dataset:
    """The same sentences with `labels`, the numbers of their tags."""

    def numbered(row: Sentence) -> dict[str, list[int]]:
        for tag in row[tags]:
            if tag not in numbers:
                raise ValueError(
                    f"{where}, line {row['line']}: the tag {tag!r} never stands in the training "
                    "text; correct it, or add sentences with it to the training text."
                )
        return {"labels": [numbers[tag] for tag in row[tags]]}

    return dataset.map(numbered, desc=f"tags of {Path(where).name}")


def load_splits(args: argparse.Namespace) -> tuple[dict[str, Dataset], list[str]]:
    """The sentences with the numbers of their tags, and the tags."""
    if args.dataset_name:
        columns = (args.token_column, args.tag_column)
        splits = load_from_hub(args.dataset_name, args.dataset_config_name, args.task, *columns)
        names = dict.fromkeys(splits, args.dataset_name)
    else:
        files = {split: getattr(args, f"{split}_file") for split in SPLITS}
        files = BUNDLED if not any(files.values()) else files
        names = {split: str(file) for split, file in files.items() if file is not None}
        splits = {
            split: load_tagged(Path(file), args.task, args.token_column, args.tag_column)
            for split, file in names.items()
        }
    missing = {"train", "validation"} - splits.keys()
    if missing and args.dataset_name:
        raise ValueError(f"{args.dataset_name} has no split named {' or '.join(sorted(missing))}.")
    if missing:
        raise ValueError("Give both --train_file and --validation_file.")
    labels = sorted({tag for tags in splits["train"]["tags"] for tag in tags})
    if args.max_train_samples is not None:
        count = min(args.max_train_samples, len(splits["train"]))
        splits["train"] = splits["train"].select(range(count))
    numbers = {label: number for number, label in enumerate(labels)}
    numbered = {
        split: number_tags(splits[split], names[split], numbers)
        for split in SPLITS
        if split in splits
    }
    return numbered, labels
