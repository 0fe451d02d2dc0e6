"""Texts: plain, gzipped, FASTA, tagged. A damaged text is another, which must be read as it is."""

import gzip
import json
import re
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from faults import crafted
from faults.corruptions import hostile_json
from faults.kind import Damage, Files, Kind
from helpers.tiny import tiny_config

from elmo_hf import ElmoEmbedder, ElmoModel, ElmoTokenizer
from elmo_hf.pretraining.corpus import Corpus
from elmo_hf.tagging import read_tagged
from elmo_hf.text import fasta_source, text_source

SENTENCES = [
    "The bank lent money to farmers .",
    "Dogs bark .",
    "",
    "Wir saßen am Ufer , und die Möwen schrieen .",
    "He watched the watch .",
    "Naïve café owners 日本 😀 pay .",
]


def sentences(variant: int, count: int = 12) -> list[str]:
    draw = Random(variant)
    return [*SENTENCES, *(draw.choice(SENTENCES) for _ in range(count - len(SENTENCES)))]


def write_model(folder: str = "model", **settings: Any) -> ElmoModel:
    torch.manual_seed(0)
    model = ElmoModel(tiny_config(**settings)).eval()
    model.save_pretrained(folder)
    width = model.config.max_characters_per_token
    ElmoTokenizer(max_characters_per_token=width).save_pretrained(folder)
    return model


class Text(Kind):
    """Plain text, embedded and counted."""

    name = "text"
    file = "text.txt"
    output = "out.npy"
    kept = ("out.offsets.npy",)
    targets = ("text.txt*",)
    crafts = (crafted.lines("text.txt"),)

    def make(self, variant: int) -> None:
        write_model()
        Path(self.file).write_bytes("\n".join([*sentences(variant), ""]).encode())

    @cached_property
    def embedder(self) -> ElmoEmbedder:
        torch.manual_seed(0)
        return ElmoEmbedder(ElmoModel(tiny_config()).eval())

    def run(self) -> Any:
        lines = [line.words for line in text_source(self.file).lines]
        arrays = self.embedder.embed(lines, layers="top")
        corpus = Corpus([Path(self.file)])
        finite = all(np.isfinite(array).all() for array in arrays)
        return [len(array) for array in arrays], finite, corpus.num_words

    def arguments(self, output: str) -> list[str]:
        return ["elmo-hf", "embed", self.file, "--model", "model", "--output", output]

    def result(self, output: Path) -> Any:
        offsets = np.load(output.with_name("out.offsets.npy"))
        values = np.load(output)
        return np.diff(offsets).tolist(), bool(np.isfinite(values).all()), len(values)

    def doubt(self, result: Any, in_process: bool) -> str | None:
        lines = self.content().removeprefix(b"\xef\xbb\xbf").decode("utf-8").split("\n")
        lengths = [len(line.split()) for line in lines]
        # a line end ends a line and begins none
        if not lines[-1]:
            lengths.pop()
        if result != (lengths, True, sum(lengths)):
            return "other numbers of vectors than of words, or not finite"
        return None

    def content(self) -> bytes:
        return Path(self.file).read_bytes()


class GzippedText(Text):
    """Gzipped text, whose checksum leaves no room for another text."""

    name = "text.gz"
    file = "text.txt.gz"
    crafts = (crafted.gzip_file("text.txt.gz"),)

    def make(self, variant: int) -> None:
        super().make(variant)
        Path(self.file).write_bytes(gzip.compress(Path(self.file).read_bytes(), mtime=0))

    def content(self) -> bytes:
        return gzip.decompress(Path(self.file).read_bytes())

    def unpacked_size(self, files: Files) -> int:
        return crafted.gunzipped_size(files[self.file])


class Fasta(Text):
    """Proteins; what is no longer FASTA must not be embedded as one."""

    name = "fasta"
    file = "proteins.fasta"
    targets = ("proteins.fasta",)
    crafts = (crafted.lines("proteins.fasta"),)

    def make(self, variant: int) -> None:
        write_model()
        draw = Random(variant)
        lines = []
        for number in range(8):
            lines.append(f">sp|P{number}|NAME{number} some protein OS=Homo sapiens")
            rows = range(draw.randint(1, 3))
            lines += ["".join(draw.choices("ACDEFGHIKLMNPQRSTVWYXacd", k=20)) for _ in rows]
        Path(self.file).write_bytes("\n".join([*lines, ""]).encode())

    def run(self) -> Any:
        proteins = [line.words for line in fasta_source(self.file).lines]
        arrays = self.embedder.embed(proteins, layers="top")
        finite = all(np.isfinite(array).all() for array in arrays)
        return [len(array) for array in arrays], finite, sum(map(len, proteins))

    def arguments(self, output: str) -> list[str]:
        return [*super().arguments(output), "--split", "characters"]

    def doubt(self, result: Any, in_process: bool) -> str | None:
        text = self.content().removeprefix(b"\xef\xbb\xbf").decode("utf-8")
        before, *records = re.split("^>", text, flags=re.MULTILINE)
        headers = [record.partition("\n")[0].split() for record in records]
        bodies = ["".join(record.partition("\n")[2].split()) for record in records]
        lengths = [len(body.rstrip("*")) for body in bodies]
        if before.strip() or not all(headers) or not all(lengths):
            return "text before the first header, or a record without id or sequence"
        if len({words[0] for words in headers}) < len(headers):
            return "two records with one id"
        if re.search("[^A-Za-z*-]", "".join(bodies)):
            return "other characters than residues"
        if result != (lengths, True, sum(lengths)):
            return "other numbers of vectors than of residues, or not finite"
        return None


TAGGED = [
    [("The", "DET"), ("bank", "NOUN"), ("lent", "VERB"), ("money", "NOUN"), (".", "PUNCT")],
    [("Dogs", "NOUN"), ("bark", "VERB"), (".", "PUNCT")],
    [("Wir", "PRON"), ("saßen", "VERB"), ("am", "ADP"), ("Ufer", "NOUN"), (".", "PUNCT")],
]


def conllu_row(number: int, word: str, tag: str) -> str:
    return "\t".join([str(number), word, "_", tag, *"______"])


def write_tagged(form: str, path: str, variant: int = 0, count: int = 6) -> None:
    """Tagged sentences in one of the formats."""
    draw = Random(variant)
    chosen = [draw.choice(TAGGED) for _ in range(count - len(TAGGED))] + TAGGED
    rows = [{"tokens": [w for w, _ in one], "tags": [t for _, t in one]} for one in chosen]
    if form == "parquet":
        Dataset.from_list(rows).to_parquet(path)
        return
    blocks = {
        "conllu": lambda one: [conllu_row(n, *pair) for n, pair in enumerate(one, 1)] + [""],
        "columns": lambda one: [" ".join(pair) for pair in one] + [""],
        "joined": lambda one: [" ".join("/".join(pair) for pair in one)],
        "json": lambda one: [json.dumps(rows[chosen.index(one)])],
    }
    lines = [line for one in chosen for line in blocks[form](one)]
    Path(path).write_bytes("\n".join([*lines, ""]).encode())


class Tagged(Kind):
    """Tagged text; the command trains on it."""

    kept = ("out", "out/*")
    atomic = False
    targets = ("train.*",)

    def __init__(self, form: str):
        self.form, self.name = form, f"tagged {form}"
        self.file = f"train.{form}"
        craft = {"conllu": conllu_columns, "json": json_rows}.get(form)
        usual = () if form == "parquet" else (crafted.lines(self.file),)
        self.crafts = (*usual, craft) if craft else usual

    def make(self, variant: int) -> None:
        write_model()
        write_tagged(self.form, self.file, variant)
        write_tagged("conllu", "dev.conllu")

    def run(self) -> Any:
        found = list(read_tagged(Path(self.file)))
        return [(one["tokens"], one["tags"]) for one in found]

    def arguments(self, output: str) -> list[str]:
        files = ["--train_file", self.file, "--validation_file", "dev.conllu"]
        sizes = ["--num_train_epochs", "1", "--task_lstm_size", "4"]
        model = ["--model_name_or_path", "model"]
        return ["run_pos.py", *files, *model, *sizes, "--output_dir", output]

    def result(self, output: Path) -> Any:
        results = json.loads((output / "all_results.json").read_text())
        return np.isfinite(results["validation_loss"]), (output / "model.safetensors").exists()

    def doubt(self, result: Any, in_process: bool) -> str | None:
        if not in_process:
            return "no model, or figures that are not finite"
        for tokens, tags in result:
            if not tokens or len(tokens) != len(tags):
                return "a sentence without words, or other tags than words"
        return {"conllu": self.doubt_conllu, "json": self.doubt_json}.get(self.form, no_doubt)(
            result
        )

    def doubt_conllu(self, result: Any) -> str | None:
        """Rows that are neither words nor known kinds of other rows must not vanish."""
        text = Path(self.file).read_bytes().decode("utf-8-sig")
        lines = [row for row in re.split(r"[\r\n]", text) if "\t" in row and row.strip()]
        rows = [row for row in lines if not row.startswith("#")]
        words = sum(len(tokens) for tokens, _ in result)
        others = sum(bool(re.match(r"\d+[-.]\d+\t", row)) for row in rows)
        # where `#` begins the first row, it may be a word of another format
        right = (len(lines), len(rows), len(rows) - others)
        return None if words in right else "rows of CoNLL-U vanish"

    def doubt_json(self, result: Any) -> str | None:
        lines = re.split(r"[\r\n]", Path(self.file).read_bytes().decode("utf-8-sig"))
        for line in filter(str.strip, lines):
            row = json.loads(line)
            words = [*row.get("tokens", []), *row.get("tags", [])]
            # a year, for instance
            if not all(type(word) in (str, int) for word in words):
                return "words or tags of JSON that are neither text nor whole numbers become text"
        return None


def no_doubt(result: Any) -> None:
    return None


def conllu_columns(files: Files, draw: Random) -> Damage:
    """Other numbers of words, and other columns."""
    rows = files["train.conllu"].split(b"\n")
    at = draw.choice([number for number, row in enumerate(rows) if row])
    columns = rows[at].split(b"\t")
    if draw.random() < 0.5:
        numbers = [b"x", b"", b"0", b"1-2", b"1.1", b"-1", b"1e3", b"1-", b" 1", "١".encode(), b"#"]
        columns[0] = draw.choice(numbers)
    else:
        change = draw.choice(["less", "more", "empty", "space", "underscore"])
        place = draw.randrange(len(columns))
        if change == "less":
            del columns[place]
        elif change == "more":
            columns.insert(place, b"more")
        else:
            columns[place] = {"empty": b"", "space": b" ", "underscore": b"_"}[change]
    rows[at] = b"\t".join(columns)
    return Damage(files | {"train.conllu": b"\n".join(rows)}, f"row {at}: {rows[at]!r}")


def json_rows(files: Files, draw: Random) -> Damage:
    """A hostile value somewhere in one row, or in the place of it."""
    rows = files["train.json"].strip().split(b"\n")
    at = draw.randrange(len(rows))
    if draw.random() < 0.2:
        rows[at] = draw.choice([b"[]", b"null", b"1", b'"x"', b"{}", b"[1, 2]", b'{"tokens": []}'])
        text = rows[at].decode()
    else:
        damage = hostile_json("row")({"row": rows[at]}, draw)
        rows[at], text = damage.files["row"], damage.text
    return Damage(files | {"train.json": b"\n".join(rows)}, f"row {at}: {text}")
