# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`elmo-hf tag`."""

import sys
from collections.abc import Callable, Iterator
from typing import Annotated

import typer
from tqdm.auto import tqdm

from elmo_hf.cli.options import Device, InputArgument, InputOption, Model, one_input
from elmo_hf.hub.bundled import BUNDLED
from elmo_hf.system.processes import choose_device
from elmo_hf.system.untrusted import printable
from elmo_hf.tagging.conllu import format_sentence
from elmo_hf.tagging.tagger import ElmoTagger, TaggedSentence
from elmo_hf.text.lines import STANDARD_INPUT, LineSource, text_source

FORMATS = ("conllu", "colour")


def tag(
    text: InputArgument = None,
    input_option: InputOption = None,
    model: Model = BUNDLED,
    output_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="conllu or colour. The default is colour in a terminal and conllu otherwise.",
        ),
    ] = None,
    device: Device = None,
) -> None:
    """Tag the words of a text and print CoNLL-U, or one coloured line per sentence."""
    if sys.stdout is None:
        raise ValueError("Standard output is closed; write to a file, as in: elmo-hf tag IN > OUT")
    output_format = output_format or ("colour" if sys.stdout.isatty() else "conllu")
    if output_format not in FORMATS:
        raise ValueError(f"--format is {output_format!r} but must be {' or '.join(FORMATS)}.")
    pattern = one_input(text, input_option) or STANDARD_INPUT
    source = text_source(pattern)
    tagger = ElmoTagger(model, device=choose_device(device))
    show = colour_painter(tagger) if output_format == "colour" else conllu
    # typed text needs no bar
    is_typed = pattern == STANDARD_INPUT and sys.stdin.isatty()
    for sentence in tagger.tag(read_words(source, is_typed)):
        print(show(sentence), end="")


def read_words(source: LineSource, quiet: bool) -> Iterator[list[str]]:
    """The words of each line that has any, with a progress bar unless it is to be quiet."""
    with tqdm(total=source.total, unit=source.unit, unit_scale=True, disable=quiet) as bar:
        for line in source.lines:
            bar.update(line.size)
            if line.words:
                yield line.words


def conllu(sentence: TaggedSentence) -> str:
    return format_sentence(sentence.words, sentence.tags)


def colour_painter(tagger: ElmoTagger) -> Callable[[TaggedSentence], str]:
    """Shows every tag in a colour of its own."""
    labels = sorted(tagger.labels.values())
    # bright ones of the terminal's 256 colours, as far from one another as their number allows
    colours = {tag: 17 + 211 * number // len(labels) for number, tag in enumerate(labels)}

    def paint(sentence: TaggedSentence) -> str:
        pairs = zip(sentence.words, sentence.tags, strict=True)
        shown = [f"{printable(word)}\033[38;5;{colours[tag]}m/{tag}\033[0m" for word, tag in pairs]
        return " ".join(shown) + "\n"

    return paint
