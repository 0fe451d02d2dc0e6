# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`elmo-hf evaluate`."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from elmo_hf.cli.options import (
    BatchSize,
    Device,
    Model,
    ModelSplit,
    Overwrite,
    own_splitter,
)
from elmo_hf.extras import require
from elmo_hf.hub.bundled import BUNDLED, find_tagger
from elmo_hf.system.processes import choose_device
from elmo_hf.system.untrusted import printable
from elmo_hf.system.writing import new_file, refuse_existing_file
from elmo_hf.tagging.raw_evaluation import evaluate_raw
from elmo_hf.tagging.tagger import ElmoTagger
from elmo_hf.tagging.tasks import TASKS

Gold = Annotated[
    Path,
    typer.Argument(
        metavar="GOLD",
        help="Sentences with the right tags: CoNLL-U, CoNLL columns, word/TAG text, JSON lines or "
        "parquet.",
    ),
]
Output = Annotated[
    Path | None, typer.Option("--output", help="A JSON file in which the figures are saved.")
]
Raw = Annotated[
    bool,
    typer.Option(
        "--raw",
        help="Rebuild the raw text of a CoNLL-U file, split it into sentences and words, tag it, "
        "and count both as the shared task CoNLL 2018 did.",
    ),
]
TrainFile = Annotated[
    Path | None,
    typer.Option(
        "--train-file",
        help="The text that the tagger was trained on. Words that are not in it, or have several "
        "tags there, are also counted on their own.",
    ),
]
TaskName = Annotated[
    str,
    typer.Option(
        "--task",
        help=f"{' or '.join(TASKS)}: ner counts whole spans, pos counts single words. `bundled` "
        "is the tagger for this task.",
    ),
]
TokenColumn = Annotated[
    str | None, typer.Option("--token-column", help="The column of the words, if it is unusual.")
]
TagColumn = Annotated[
    str | None, typer.Option("--tag-column", help="The column of the tags, if it is unusual.")
]


def evaluate(
    gold: Gold,
    model: Model = BUNDLED,
    raw: Raw = False,
    split: ModelSplit = None,
    train_file: TrainFile = None,
    task: TaskName = "pos",
    token_column: TokenColumn = None,
    tag_column: TagColumn = None,
    output: Output = None,
    overwrite: Overwrite = False,
    batch_size: BatchSize = None,
    device: Device = None,
) -> None:
    """Measure how well a tagger tags a file whose right tags are known."""
    if task not in TASKS:
        raise ValueError(f"--task is {task!r} but must be {' or '.join(TASKS)}.")
    if raw and (train_file or token_column or tag_column or task != "pos"):
        raise ValueError(
            "--raw compares the UPOS of CoNLL-U; leave out --train-file, --task, --token-column "
            "and --tag-column."
        )
    if split is not None and not raw:
        raise ValueError("--split is for --raw only; otherwise the words of the file are tagged.")
    if output is not None:
        refuse_existing_file(output, overwrite)
    tagger = ElmoTagger(
        find_tagger(model, task), choose_device(device), own_splitter(split), batch_size
    )
    if raw:
        figures = evaluate_raw(tagger, gold)
        rows = {title(kind): row for kind, row in figures.items()}
    else:
        measure = require("elmo_hf.tagging.gold", "Evaluating a tagger").evaluate_tagger
        figures = measure(tagger, gold, train_file, task, token_column, tag_column)
        # tags come from a file
        rows = {printable(tag): row for tag, row in figures["tags"].items()}
        print(overview(figures), end="\n\n")
    print(table(rows))
    if output is not None:
        save(figures, output, overwrite)
        print(f"\nsaved in {output}")


def overview(figures: Mapping[str, Any]) -> str:
    """All figures but those of single tags, one per line."""
    return aligned((title(name), shown(value)) for name, value in figures.items() if name != "tags")


def table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """A line of figures for each tag, or for each kind of part."""
    names = list(next(iter(rows.values()), {}))
    lines = [(name, *(shown(row[key]) for key in names)) for name, row in rows.items()]
    return aligned([("", *map(title, names)), *lines])


def title(name: str) -> str:
    """The name of a figure for people."""
    return name.replace("_", " ").replace("f1", "F1").replace("upos", "UPOS")


def shown(value: float | int) -> str:
    return f"{100 * value:.2f} %" if isinstance(value, float) else f"{value:,}"


def aligned(rows: Iterable[tuple[str, ...]]) -> str:
    """Rows of texts as aligned columns: names to the left, figures to the right."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            text.ljust(width) if place == 0 else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def save(figures: Mapping[str, Any], output: Path, overwrite: bool) -> None:
    text = json.dumps(figures, indent=2, ensure_ascii=False) + "\n"
    with new_file(output, overwrite) as building:
        building.write_text(text, encoding="utf-8", newline="\n")
