# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`elmo-hf tag`."""

import sys
from typing import Annotated

import typer
from tqdm.auto import tqdm

from elmo_hf.cli.options import (
    BatchSize,
    Device,
    InputOption,
    Model,
    ModelSplit,
    Paragraphs,
    RawInputArgument,
    one_input,
    own_splitter,
)
from elmo_hf.hub.bundled import BUNDLED
from elmo_hf.system.processes import choose_device
from elmo_hf.tagging.output import FORMATS, find_format
from elmo_hf.tagging.tagger import ElmoTagger
from elmo_hf.tagging.text_tagging import tag_text
from elmo_hf.tagging.treebank import fill_tags
from elmo_hf.text.files import find_files
from elmo_hf.text.lines import STANDARD_INPUT, raw_source


def tag(
    text: RawInputArgument = None,
    input_option: InputOption = None,
    model: Model = BUNDLED,
    split: ModelSplit = None,
    paragraphs: Paragraphs = "line",
    output_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help=f"{', '.join(FORMATS)}. The default is colour in a terminal and conllu otherwise.",
        ),
    ] = None,
    device: Device = None,
    batch_size: BatchSize = None,
) -> None:
    """
    Tag the words of a text.

    Text is read as it is and split into sentences and words; lines that are typed or piped are
    answered as they come. The CoNLL-U output has all that is needed to rebuild the text. Of a file
    that is CoNLL-U itself (.conllu), only the tags are replaced.
    """
    if sys.stdout is None:
        raise ValueError("Standard output is closed; write to a file, as in: elmo-hf tag IN > OUT")
    pattern = one_input(text, input_option) or STANDARD_INPUT
    if is_treebank(pattern):
        if split is not None or output_format not in (None, "conllu"):
            raise ValueError(
                f"{pattern!r} has its words already, and keeps its format; leave out --split and "
                "--format."
            )
        fill(pattern, ElmoTagger(model, choose_device(device), batch_size=batch_size))
        return
    output_format = output_format or ("colour" if sys.stdout.isatty() else "conllu")
    find_format(output_format, [])
    source = raw_source(pattern)
    tagger = ElmoTagger(model, choose_device(device), own_splitter(split), batch_size)
    show = find_format(output_format, tagger.labels.values())
    # typed text needs no bar
    is_typed = pattern == STANDARD_INPUT and sys.stdin.isatty()
    with tqdm(total=source.total, unit="B", unit_scale=True, disable=is_typed) as bar:
        for group in tag_text(tagger, source, paragraphs, bar.update):
            for tagged in group:
                print(show(tagged), end="")
            sys.stdout.flush()


def is_treebank(pattern: str) -> bool:
    """Whether a file is CoNLL-U, by its ending."""
    return pattern.lower().removesuffix(".gz").endswith(".conllu")


def fill(pattern: str, tagger: ElmoTagger) -> None:
    """Prints CoNLL-U files again, with new tags."""
    # a line may end in a carriage return, which is to stay
    sys.stdout.reconfigure(newline="")  # type: ignore[union-attr]
    for path in find_files(pattern):
        for text in tqdm(fill_tags(path, tagger), desc=path.name, unit="sentence"):
            print(text, end="")
