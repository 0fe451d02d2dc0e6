# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Raw text, split once into files with one tokenised sentence per line.

They are in the output folder, each with a record of what it was made of:

    split-text/train.txt    a sentence per line, words with blanks between them
    split-text/train.json   the splitter, and checksums of the raw text and of the file

A resumed run uses a file again if its record still holds. Reading a raw text for its checksum takes
about a twentieth of the time of splitting it.
"""

import json
import zlib
from pathlib import Path
from typing import Any

from accelerate import PartialState
from tqdm.auto import tqdm

from elmo_hf.pretraining.settings import PretrainingSettings
from elmo_hf.system.checksums import checksum
from elmo_hf.system.processes import Processes
from elmo_hf.system.untrusted import read_json
from elmo_hf.system.writing import new_file, write_text
from elmo_hf.text.dataset_rows import load_dataset
from elmo_hf.text.files import find_files
from elmo_hf.text.lines import RawLine
from elmo_hf.text.raw_text import RawText, raw_files, raw_rows, split_documents
from elmo_hf.training.folder import SPLIT_TEXT
from elmo_hf.training.identity import NAME, WAY_OUT, read_identity

# as an error message calls them; the test text may change when a run is resumed
SPLITS = {"train": "training text", "validation": "validation text", "test": "test text"}
MAY_CHANGE = "test"
RECORD = {"split": str, "paragraphs": str, "raw text": str, "checksum": int}


class RawChecksum:
    """Recognises the same raw text, gzipped or not."""

    def __init__(self) -> None:
        self.crc = self.lines = self.documents = 0

    def add(self, line: RawLine) -> None:
        self.crc = zlib.crc32(line.text.encode(), self.crc)
        self.lines += 1
        self.documents += line.number == 0

    def __str__(self) -> str:
        return f"{self.crc:08x}-{self.lines}-{self.documents}"


def split_texts(settings: PretrainingSettings, quiet: bool = False) -> dict[str, Path]:
    """
    The files of sentences of all raw text that the settings name, by split. The first process makes
    them, unless they are there, and the others wait.
    """

    def split_all() -> dict[str, Path]:
        refuse_other_split(settings)
        texts = raw_texts(settings)
        return {split: split_once(settings, split, text, quiet) for split, text in texts.items()}

    state = PartialState()
    processes = Processes(state.process_index, state.num_processes)
    return processes.by_the_first(split_all, takes_long=True)


def refuse_other_split(settings: PretrainingSettings) -> None:
    """Raises an error if the folder holds a run on other sentences: now, and not hours later."""
    known = read_identity(settings.output_dir)
    if known is None or settings.overwrite_output_dir:
        return
    for name in ("split", "paragraphs"):
        was, now = known["settings"].get(name), getattr(settings, name)
        if was != now:
            raise ValueError(
                f"{str(settings.output_dir)!r} holds a run with {name} {was!r}, not {now!r}; "
                f"{WAY_OUT}."
            )


def raw_texts(settings: PretrainingSettings) -> dict[str, RawText]:
    """All of them are found before the first is split."""
    if settings.dataset_name is None:
        patterns = {split: getattr(settings, f"{split}_file") for split in SPLITS}
        return {
            split: raw_files(find_files(pattern))
            for split, pattern in patterns.items()
            if pattern is not None
        }
    dataset = load_training_dataset(settings.dataset_name, settings.dataset_config_name)
    return {
        split: raw_rows(dataset[split], settings.text_column, settings.dataset_name)
        for split in SPLITS
        if split in dataset
    }


def load_training_dataset(name: str, config: str | None) -> Any:
    """All splits of a dataset that has one to train on."""
    dataset = load_dataset(name, config)
    if "train" not in dataset:
        raise ValueError(f"The dataset {name!r} has no split named train.")
    return dataset


def split_once(settings: PretrainingSettings, split: str, text: RawText, quiet: bool) -> Path:
    """The file of sentences of one text, made now or by an interrupted run."""
    path = settings.output_dir / SPLIT_TEXT / f"{split}.txt"
    if not settings.overwrite_output_dir:
        known = read_record(path)
        difference = find_difference(known, settings, split, text, quiet)
        if difference is None and path.is_file() and checksum(path) == known["checksum"]:
            return path
        has_run = (settings.output_dir / NAME).exists()
        if difference and known and has_run and split != MAY_CHANGE:
            # now, and not when a large text has been split
            raise ValueError(
                f"{str(settings.output_dir)!r} holds a run with {difference}; {WAY_OUT}."
            )
    write_sentences(path, settings, split, text, quiet)
    return path


def find_difference(
    known: dict[str, Any], settings: PretrainingSettings, split: str, text: RawText, quiet: bool
) -> str | None:
    """In what a text differs from the one that was split, to be part of a sentence."""
    for name in ("split", "paragraphs"):
        was, now = known.get(name), getattr(settings, name)
        if was != now:
            return f"{name} {was!r}, not {now!r}"
    found = RawChecksum()
    with progress_bar(f"check {split}", text, quiet) as bar:
        for document in text.open():
            for line in document.lines:
                found.add(line)
                bar.update(line.size)
    return None if known.get("raw text") == str(found) else f"another {SPLITS[split]}"


def write_sentences(
    path: Path, settings: PretrainingSettings, split: str, text: RawText, quiet: bool
) -> None:
    found = RawChecksum()
    with (
        new_file(path) as building,
        progress_bar(f"split {split}", text, quiet) as bar,
    ):

        def seen(line: RawLine) -> None:
            found.add(line)
            bar.update(line.size)

        with building.open("w", encoding="utf-8", newline="\n") as file:
            for words in split_documents(text.open(), settings.split, settings.paragraphs, seen):
                file.write(" ".join(words) + "\n")
        if not building.stat().st_size:
            raise ValueError(f"There is no sentence in {text.name}.")
        record = {
            "split": settings.split,
            "paragraphs": settings.paragraphs,
            "raw text": str(found),
            "checksum": checksum(building),
        }
        # before the sentences have their name: there are none without a record
        write_text(record_of(path), json.dumps(record, indent=1) + "\n")


def progress_bar(what: str, text: RawText, quiet: bool) -> tqdm:
    return tqdm(total=text.total, desc=what, unit=text.unit, unit_scale=True, disable=quiet)


def record_of(path: Path) -> Path:
    return path.with_suffix(".json")


def read_record(path: Path) -> dict[str, Any]:
    """An empty one if there is none, or if it is damaged."""
    if path.exists() and not record_of(path).exists():
        raise FileExistsError(
            f"{str(path)!r} has no record of what it was made of; move it away, or choose another "
            "--output_dir."
        )
    try:
        record = read_json(record_of(path))
    except (OSError, ValueError):
        return {}
    return record if {name: type(value) for name, value in record.items()} == RECORD else {}
