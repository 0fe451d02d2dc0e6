# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The program `elmo-hf`: its commands, each a plain function whose signature is its `--help`."""

from typing import Annotated

import typer
from transformers.utils import logging

from elmo_hf._version import __version__
from elmo_hf.cli.download import download
from elmo_hf.cli.embed import embed
from elmo_hf.cli.evaluate import evaluate
from elmo_hf.cli.export_onnx import export_onnx
from elmo_hf.cli.info import info
from elmo_hf.cli.models import models
from elmo_hf.cli.push import push
from elmo_hf.cli.tag import tag
from elmo_hf.cli.vocab import vocab
from elmo_hf.conversion.convert_allennlp_to_hf import convert
from elmo_hf.conversion.export_hf_to_allennlp import export
from elmo_hf.system.command import NORMALIZE
from elmo_hf.system.program import run_program

app = typer.Typer(
    name="elmo-hf",
    no_args_is_help=True,
    add_completion=False,
    # the commands inherit it
    context_settings=NORMALIZE,
    help="ELMo as a Hugging Face model: embed and tag text, convert published weights and export "
    "them again. A small English model is bundled and is the default: --model bundled.",
)


def print_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Options without a command; the help of `app` is shown in the place of this text."""


for command in (
    convert,
    download,
    embed,
    evaluate,
    export,
    export_onnx,
    info,
    models,
    push,
    tag,
    vocab,
):
    app.command()(command)


def main() -> None:
    # the progress bars of transformers would break ours
    logging.disable_progress_bar()
    run_program(app)
