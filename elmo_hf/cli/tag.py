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
    Paragraphs,
    RawInputArgument,
    one_input,
)
from elmo_hf.hub.bundled import BUNDLED
from elmo_hf.system.processes import choose_device
from elmo_hf.tagging.output import FORMATS, find_format
from elmo_hf.tagging.tagger import ElmoTagger
from elmo_hf.tagging.text_tagging import tag_text
from elmo_hf.text.lines import STANDARD_INPUT, raw_source
from elmo_hf.text_splitting import SPLITTERS, WHITESPACE


def tag(
    text: RawInputArgument = None,
    input_option: InputOption = None,
    model: Model = BUNDLED,
    split: Annotated[
        str | None,
        typer.Option(
            "--split",
            help=f"How text becomes sentences and words: {', '.join(SPLITTERS)}, or none for one "
            "tokenised sentence per line. The default is what was saved with the model.",
        ),
    ] = None,
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
    answered as they come. The CoNLL-U output has all that is needed to rebuild the text.
    """
    if sys.stdout is None:
        raise ValueError("Standard output is closed; write to a file, as in: elmo-hf tag IN > OUT")
    output_format = output_format or ("colour" if sys.stdout.isatty() else "conllu")
    find_format(output_format, [])
    pattern = one_input(text, input_option) or STANDARD_INPUT
    source = raw_source(pattern)
    split = WHITESPACE if split == "none" else split
    tagger = ElmoTagger(model, choose_device(device), split, batch_size)
    show = find_format(output_format, tagger.labels.values())
    # typed text needs no bar
    is_typed = pattern == STANDARD_INPUT and sys.stdin.isatty()
    with tqdm(total=source.total, unit="B", unit_scale=True, disable=is_typed) as bar:
        for group in tag_text(tagger, source, paragraphs, bar.update):
            for tagged in group:
                print(show(tagged), end="")
            sys.stdout.flush()
