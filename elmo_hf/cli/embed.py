# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`elmo-hf embed`."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from tqdm.auto import tqdm

from elmo_hf.cli.options import (
    BatchSize,
    Device,
    InputArgument,
    InputOption,
    Model,
    Overwrite,
    Paragraphs,
    Split,
    one_input,
)
from elmo_hf.embedding import ElmoEmbedder, EmbeddingJob
from elmo_hf.embedding.formats import SUFFIXES
from elmo_hf.embedding.job import LineTooLongError
from elmo_hf.embedding.sentence_embedder import DTYPES
from elmo_hf.hub.bundled import BUNDLED
from elmo_hf.pooling import POOLINGS
from elmo_hf.system.memory import keep_freed_memory
from elmo_hf.system.processes import choose_device, process_group
from elmo_hf.text.dataset_rows import dataset_source
from elmo_hf.text.fasta import RESIDUES, fasta_source, is_fasta, refuse_headers
from elmo_hf.text.lines import STANDARD_INPUT, BadLineError, LineSource, raw_source, text_source
from elmo_hf.text.looks_raw import watch_for_raw_text
from elmo_hf.text.paragraphs import sentence_source
from elmo_hf.text.raw_text import dataset_sentences
from elmo_hf.text.split_option import NONE, check_split
from elmo_hf.text_splitting import find_splitter

ENDINGS = ", ".join(SUFFIXES)
Output = Annotated[
    Path,
    typer.Option("--output", help=f"The output file. Its extension chooses the format: {ENDINGS}."),
]
Layers = Annotated[
    str, typer.Option("--layers", help="all, mix, top, mean, or the number of a layer.")
]
Pooling = Annotated[
    str,
    typer.Option(
        "--pooling",
        help=f"none: one vector per word; {' or '.join(POOLINGS)}: one vector per sentence.",
    ),
]
Dtype = Annotated[str, typer.Option("--dtype", help=f"Number format: {' or '.join(DTYPES)}.")]
DatasetName = Annotated[
    str | None,
    typer.Option("--dataset-name", help="A dataset on the Hub, or a folder, instead of a text."),
]
DatasetConfig = Annotated[
    str | None, typer.Option("--dataset-config-name", help="The configuration of the dataset.")
]
DatasetSplit = Annotated[
    str, typer.Option("--dataset-split", help="The split of the dataset to read.")
]
Column = Annotated[str, typer.Option("--column", help="The column that holds the sentences.")]
OnError = Annotated[
    str,
    typer.Option(
        "--on-error",
        help="What to do with a line that cannot be read: stop, or skip it and treat it as an "
        "empty line.",
    ),
]


def embed(
    output: Output,
    text: InputArgument = None,
    model: Model = BUNDLED,
    input_option: InputOption = None,
    layers: Layers = "all",
    pooling: Pooling = "none",
    dtype: Dtype = "float32",
    dataset_name: DatasetName = None,
    dataset_config: DatasetConfig = None,
    dataset_split: DatasetSplit = "train",
    column: Column = "text",
    split: Split = NONE,
    paragraphs: Paragraphs = "line",
    batch_size: BatchSize = None,
    on_error: OnError = "stop",
    device: Device = None,
    overwrite: Overwrite = False,
) -> None:
    """
    Turn a text into a file of vectors.

    To resume an interrupted run, repeat the command. Under `accelerate launch -m elmo_hf embed`
    several processes or machines share the work.
    """
    pattern = one_input(text, input_option)
    if dataset_name is not None and pattern is not None:
        raise ValueError("Give --input or --dataset-name, not both.")
    check_split(split, paragraphs)
    keep_freed_memory()
    with process_group() as processes:
        if dataset_name is not None:
            rows = (dataset_name, dataset_config, dataset_split, column, on_error)
            if split == NONE:
                source = dataset_source(*rows)
            else:
                source = dataset_sentences(*rows, split, paragraphs)
        else:
            shared = processes.count > 1
            source = open_text(pattern or STANDARD_INPUT, split, paragraphs, on_error, shared)
        if split == NONE and processes.is_first:
            source = source._replace(lines=watch_for_raw_text(source.lines, warn_of_raw_text))
        embedder = ElmoEmbedder(model, device=choose_device(device), batch_size=batch_size)
        job = EmbeddingJob(embedder, output, layers, pooling, dtype, on_error=on_error)
        try:
            job.write(source, overwrite, processes)
        except (BadLineError, LineTooLongError) as error:
            raise type(error)(f"{error} Or pass --on-error skip to leave it empty.") from error
        if processes.is_first:
            print(f"saved in {output}")


def open_text(pattern: str, split: str, paragraphs: str, on_error: str, shared: bool) -> LineSource:
    """Sentences of a text: as they are, split, or the records of a FASTA file."""
    if is_fasta(pattern):
        if split != RESIDUES:
            raise ValueError(
                f"{pattern!r} is FASTA, which is read residue by residue; pass --split {RESIDUES}."
            )
        return fasta_source(pattern, on_error, shared)
    if split == NONE:
        return text_source(pattern, on_error, shared)
    raw = raw_source(pattern, on_error, shared)
    raw = refuse_headers(raw) if split == RESIDUES else raw
    return sentence_source(raw, find_splitter(split), paragraphs)


def warn_of_raw_text(word: str) -> None:
    tqdm.write(
        f"This looks like raw text: {word!r} is read as one word. If so, stop and pass "
        "--split english, or another splitter.",
        file=sys.stderr,
    )
