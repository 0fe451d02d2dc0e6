# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`elmo-hf tag`."""

import sys
from collections.abc import Iterator
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
from elmo_hf.hub.bundled import BUNDLED, TAGGERS, find_tagger
from elmo_hf.system.processes import choose_device
from elmo_hf.tagging.conllu import is_conllu
from elmo_hf.tagging.output import FORMATS, check_format, default_format, find_format
from elmo_hf.tagging.spans import are_of_spans
from elmo_hf.tagging.tagger import ElmoTagger
from elmo_hf.tagging.text_tagging import tag_text
from elmo_hf.tagging.treebank import fill_tags
from elmo_hf.text.fasta import RESIDUES, refuse_headers
from elmo_hf.text.files import all_end_in, find_files
from elmo_hf.text.lines import STANDARD_INPUT, RawLine, RawSource, raw_source
from elmo_hf.text.paragraphs import check_paragraphs
from elmo_hf.text.split_option import check_split

BundledTask = Annotated[
    str | None,
    typer.Option(
        "--task",
        help=f"Which of the bundled taggers: {' or '.join(TAGGERS)}, for parts of speech or names. "
        "The default is pos.",
    ),
]
OutputFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        help=f"{', '.join(FORMATS)}. The default is colour in a terminal; otherwise it is spans if "
        "the tagger finds names, and else conllu.",
    ),
]


def tag(
    text: RawInputArgument = None,
    input_option: InputOption = None,
    model: Model = BUNDLED,
    task: BundledTask = None,
    split: ModelSplit = None,
    paragraphs: Paragraphs = "line",
    output_format: OutputFormat = None,
    device: Device = None,
    batch_size: BatchSize = None,
) -> None:
    """
    Tag the words of a text.

    Text is read as it is and split into sentences and words; lines that are typed or piped are
    answered as they come. The CoNLL-U output has all that is needed to rebuild the text. In a file
    that is CoNLL-U itself (.conllu), only the tags are replaced.
    """
    if sys.stdout is None:
        raise ValueError("Standard output is closed; write to a file, as in: elmo-hf tag IN > OUT")
    pattern = one_input(text, input_option) or STANDARD_INPUT
    model = choose_tagger(model, task)
    if is_treebank(pattern):
        refuse_options(pattern, split, output_format, paragraphs)
        fill(pattern, ElmoTagger(model, choose_device(device), batch_size=batch_size))
        return
    if output_format is not None:
        check_format(output_format)
    if split is None:
        check_paragraphs(paragraphs)
    else:
        check_split(split, paragraphs)
    source = refuse_columns(raw_source(pattern))
    tagger = ElmoTagger(model, choose_device(device), own_splitter(split), batch_size)
    if tagger.tokenizer.word_splitter == RESIDUES:
        source = refuse_headers(source)
    labels = list(tagger.labels.values())
    if output_format is None:
        output_format = "colour" if sys.stdout.isatty() else default_format(labels)
    show = find_format(output_format, labels)
    # typed text needs no bar
    is_typed = pattern == STANDARD_INPUT and sys.stdin.isatty()
    with tqdm(total=source.total, unit="B", unit_scale=True, disable=is_typed) as bar:
        for group in tag_text(tagger, source, paragraphs, bar.update):
            for tagged in group:
                print(show(tagged), end="")
            sys.stdout.flush()


def choose_tagger(model: str, task: str | None) -> str:
    """The name or folder of a tagger; only the bundled model has one for each task."""
    if task is None:
        return model
    if model != BUNDLED:
        raise ValueError(
            f"--task {task} chooses one of the bundled taggers; leave it out with --model {model}."
        )
    if task not in TAGGERS:
        raise ValueError(f"--task is {task!r} but must be {' or '.join(TAGGERS)}.")
    return find_tagger(model, task)


def refuse_options(
    pattern: str, split: str | None, output_format: str | None, paragraphs: str
) -> None:
    """Files that have their words already are not split, and stay what they are."""
    if split is not None or output_format not in (None, "conllu") or paragraphs != "line":
        raise ValueError(
            f"{pattern!r} has its words already, and keeps its format; leave out --split, "
            "--paragraphs and --format."
        )


def is_treebank(pattern: str) -> bool:
    """Whether files are CoNLL-U, by their endings; refuses a mixture."""
    return pattern != STANDARD_INPUT and all_end_in(pattern, [".conllu"], "CoNLL-U")


def refuse_columns(source: RawSource) -> RawSource:
    """The same lines of a text; CoNLL-U under another name is refused when it is read."""

    def lines() -> Iterator[RawLine]:
        for line in source.lines:
            if is_conllu(line.text.rstrip("\r\n").split("\t")):
                raise ValueError(
                    f"{line.place}: this is a row of CoNLL-U, not text; give the file a name that "
                    "ends in .conllu."
                )
            yield line

    return source._replace(lines=lines())


def fill(pattern: str, tagger: ElmoTagger) -> None:
    """Prints CoNLL-U files again, with new tags."""
    if are_of_spans(tagger.labels.values()):
        raise ValueError(
            f"{pattern!r} has parts of speech, and this tagger finds names; give it the text."
        )
    # a line may end in a carriage return, which is to stay
    sys.stdout.reconfigure(newline="")  # type: ignore[union-attr]
    for path in find_files(pattern):
        for text in tqdm(fill_tags(path, tagger), desc=path.name, unit="sentence"):
            print(text, end="")
