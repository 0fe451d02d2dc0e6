"""The texts that a benchmark reads: those that are named, or the sample in the repository."""

import hashlib
from pathlib import Path
from typing import NamedTuple

from environments import ROOT

from elmo_hf.system.writing import write_text
from elmo_hf.tagging import read_tagged

SAMPLE = ROOT / "examples" / "sample"
CACHE = ROOT / ".cache" / "benchmark" / "texts"


class Text(NamedTuple):
    path: Path
    # as the tables describe it
    name: str


def sentences_of(source: Path) -> list[str]:
    """Words between blanks: of CoNLL-U files, or the lines of any other."""
    if source.suffix == ".conllu":
        return [" ".join(sentence["tokens"]) for sentence in read_tagged(source)]
    with source.open(encoding="utf-8") as lines:
        return [line.rstrip("\n") for line in lines if line.strip()]


def as_lines(sources: list[Path], name: str, target: Path) -> Text:
    """The sentences of all files as one text of one sentence per line."""
    sentences = [sentence for source in sources for sentence in sentences_of(source)]
    if not sentences:
        raise ValueError(f"There is no sentence in {name!r}; check that it is the right file.")
    written = "\n".join(sentences) + "\n"
    write_text(target, written)
    words = sum(len(sentence.split()) for sentence in sentences)
    digest = hashlib.sha256(written.encode()).hexdigest()[:12]
    return Text(target, f"{name}, {len(sentences):,} sentences, {words:,} words, sha256 {digest}")


def prepare(text: Path | None, train: Path | None, heldout: Path | None) -> dict[str, Text]:
    """What each option of the measuring programs reads."""
    sample = [SAMPLE / f"{part}.conllu" for part in ("train", "dev", "test")]
    parts = {
        "text": [text] if text else sample,
        "train": [train or SAMPLE / "train.conllu"],
        "heldout": [heldout or SAMPLE / "dev.conllu"],
        "treebank": [text if text and text.suffix == ".conllu" else SAMPLE / "train.conllu"],
    }
    texts = {}
    for option, sources in parts.items():
        name = sources[0].name if len(sources) == 1 else "all parts"
        if SAMPLE in sources[0].parents:
            name = f"the sample of the repository ({name})"
        texts[option] = as_lines(sources, name, CACHE / f"{option}.txt")
    return texts | {"treebank": Text(parts["treebank"][0], texts["treebank"].name)}
