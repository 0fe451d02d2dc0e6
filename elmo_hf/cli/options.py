# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Options that several commands share: one word means the same in all of them."""

from typing import Annotated

import typer

from elmo_hf.system.command import Model as Model
from elmo_hf.system.command import Overwrite as Overwrite
from elmo_hf.text.split_option import splitter_name
from elmo_hf.text_splitting import SPLITTERS

Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        help="Where the model runs, as in cpu or cuda:1; by default on a GPU if there is one.",
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        "--batch-size",
        min=1,
        help="The most sentences that the model reads at once; by default 256.",
    ),
]
SPLIT_HELP = (
    f"How raw text becomes sentences and words: {', '.join(SPLITTERS)}; or none: words are "
    "separated by blanks, and a line is a sentence."
)
Split = Annotated[str, typer.Option("--split", metavar="NAME", help=SPLIT_HELP)]
ModelSplit = Annotated[
    str | None,
    typer.Option(
        "--split",
        metavar="NAME",
        help=f"{SPLIT_HELP} The default is the splitter that was saved with the model.",
    ),
]
Paragraphs = Annotated[
    str,
    typer.Option(
        "--paragraphs",
        help="line: every line is a paragraph of its own. blank: lines are joined up to the next "
        "blank line, for text with hard line breaks.",
    ),
]

# A text may be given in two ways; `one_input` and `all_inputs` join them.
TEXT_HELP = (
    "Text with one tokenised sentence per line: a file, which may be .gz, a glob in quotes, or an "
    "address such as s3://bucket/text.txt"
)
InputArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="INPUT",
        help=f"{TEXT_HELP}; or, with --split, raw text or a FASTA file. By default, or for -, "
        "standard input.",
    ),
]
InputOption = Annotated[
    str | None, typer.Option("--input", metavar="INPUT", help="The same as the argument INPUT.")
]
RAW_HELP = (
    "Text: a file, which may be .gz, a glob in quotes, or an address such as s3://bucket/text.txt"
)
RawInputArgument = Annotated[
    str | None,
    typer.Argument(metavar="INPUT", help=f"{RAW_HELP}; by default, or for -, standard input."),
]
InputArguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT",
        help=f"{TEXT_HELP}; or, with --split, raw text. Several are counted together.",
    ),
]
InputOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--input", metavar="INPUT", help="The same as the argument INPUT; may be repeated."
    ),
]


def own_splitter(split: str | None) -> str | None:
    """The splitter that a model is to use instead of its own, if any."""
    return None if split is None else splitter_name(split)


def one_input(argument: str | None, option: str | None) -> str | None:
    """The one text that was named, or None."""
    if argument is not None and option is not None:
        raise ValueError(f"Give one text, either {argument!r} or --input {option!r}.")
    return option if argument is None else argument


def all_inputs(arguments: list[str] | None, options: list[str] | None) -> list[str]:
    """All texts that were named, of which there must be one at least."""
    inputs = [*(arguments or []), *(options or [])]
    if not inputs:
        raise ValueError("Name at least one text, as in: elmo-hf vocab corpus.txt")
    return inputs
