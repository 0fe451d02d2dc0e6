"""Texts that are tagged: raw ones must come back whole, and treebanks but for their tags."""

import re
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from faults import crafted
from faults.inputs_texts import conllu_row, sentences
from faults.kind import Kind
from helpers.conllu import rebuild
from helpers.tiny import tiny_config

from elmo_hf import ElmoForTokenClassification, ElmoTagger, ElmoTokenizer
from elmo_hf.tagging import fill_tags
from elmo_hf.tagging.output import as_conllu
from elmo_hf.tagging.text_tagging import tag_text
from elmo_hf.text import raw_source

UPOS = 3


class TaggedByCommand(Kind):
    """What `elmo-hf tag` prints."""

    file = ""
    output = "printed"

    def make(self, variant: int) -> None:
        self.write_tagger()
        Path(self.file).write_bytes(self.text(variant).encode())

    def text(self, variant: int) -> str:
        raise NotImplementedError

    def write_tagger(self) -> None:
        torch.manual_seed(0)
        config = tiny_config(num_labels=4, task_lstm_size=4)
        ElmoForTokenClassification(config).save_pretrained("model")
        width = config.max_characters_per_token
        tokenizer = ElmoTokenizer(max_characters_per_token=width, word_splitter="english")
        tokenizer.save_pretrained("model")

    @cached_property
    def tagger(self) -> ElmoTagger:
        return ElmoTagger("model")

    def arguments(self, output: str) -> list[str]:
        return ["elmo-hf", "tag", self.file, "--model", "model"]

    def result(self, output: Path) -> Any:
        """The log is beside the current folder."""
        return Path("../log.out").read_bytes().decode("utf-8")


class RawText(TaggedByCommand):
    name = "raw text"
    file = "text.txt"
    targets = ("text.txt",)
    crafts = (crafted.lines("text.txt"),)

    def text(self, variant: int) -> str:
        return "\n".join(line.replace(" .", ".") for line in sentences(variant)) + "\n"

    def run(self) -> Any:
        groups = tag_text(self.tagger, raw_source(self.file))
        return "".join(as_conllu(tagged) for group in groups for tagged in group)

    def doubt(self, result: Any, in_process: bool) -> str | None:
        text = Path(self.file).read_bytes().removeprefix(b"\xef\xbb\xbf").decode("utf-8")
        if rebuild(result) != text and (result or re.search(r"\w", text)):
            return "the text that was tagged is not the text of the file"
        return None


class Treebank(TaggedByCommand):
    name = "treebank"
    file = "gold.conllu"
    targets = ("gold.conllu",)
    crafts = (crafted.lines("gold.conllu"),)

    def text(self, variant: int) -> str:
        blocks = []
        for number, line in enumerate(filter(None, sentences(variant))):
            rows = [conllu_row(place, word, "X") for place, word in enumerate(line.split(), 1)]
            rows.insert(2, "\t".join(["2.1", "node", *"________"]))
            rows.insert(0, "\t".join(["1-2", "".join(line.split()[:2]), *"________"]))
            blocks.append("\n".join([f"# sent_id = {number}", *rows, "", ""]))
        return "".join(blocks)

    def run(self) -> Any:
        return "".join(fill_tags(Path(self.file), self.tagger))

    def doubt(self, result: Any, in_process: bool) -> str | None:
        text = Path(self.file).read_bytes().decode("utf-8")
        same = without_tags(result) == without_tags(text)
        return None if same else "more than the tags of the treebank has changed"


def without_tags(text: str) -> list[str]:
    lines = []
    for line in re.split(r"(\r\n|\r|\n)", text):
        columns = line.split("\t")
        if len(columns) == 10 and columns[0].isdecimal():
            columns[UPOS] = ""
        lines.append("\t".join(columns))
    return lines
