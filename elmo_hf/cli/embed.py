# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`elmo-hf embed`."""

from pathlib import Path
from typing import Annotated

import typer

from elmo_hf.cli.options import Device, InputArgument, InputOption, Model, Overwrite, one_input
from elmo_hf.embedding import ElmoEmbedder, EmbeddingJob
from elmo_hf.embedding.formats import SUFFIXES
from elmo_hf.embedding.job import LineTooLongError
from elmo_hf.embedding.sentence_embedder import DTYPES
from elmo_hf.hub.bundled import BUNDLED
from elmo_hf.pooling import POOLINGS
from elmo_hf.system.memory import keep_freed_memory
from elmo_hf.system.processes import choose_device, process_group
from elmo_hf.text.dataset_rows import dataset_source
from elmo_hf.text.lines import STANDARD_INPUT, BadLineError, text_source

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
Split = Annotated[str, typer.Option("--dataset-split", help="The split of the dataset to read.")]
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
    split: Split = "train",
    column: Column = "text",
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
    keep_freed_memory()
    with process_group() as processes:
        if dataset_name is not None:
            source = dataset_source(dataset_name, dataset_config, split, column, on_error)
        else:
            source = text_source(pattern or STANDARD_INPUT, on_error, shared=processes.count > 1)
        embedder = ElmoEmbedder(model, device=choose_device(device))
        job = EmbeddingJob(embedder, output, layers, pooling, dtype, on_error=on_error)
        try:
            job.write(source, overwrite, processes)
        except (BadLineError, LineTooLongError) as error:
            raise type(error)(f"{error} Or pass --on-error skip to leave it empty.") from error
        if processes.is_first:
            print(f"saved in {output}")
