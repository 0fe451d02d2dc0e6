# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The program `allennlp` with its one command that is about ELMo."""

import argparse
from collections.abc import Sequence

import torch

from elmo_hf.standin.embedder import (
    DEFAULT_BATCH_SIZE,
    DEFAULT_OPTIONS_FILE,
    DEFAULT_WEIGHT_FILE,
    FORMATS,
    ElmoEmbedder,
)


def make_parser(prog: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog or "allennlp", description="AllenNLP's command `elmo`, run by elmo_hf."
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    elmo = commands.add_parser("elmo", help="Write the vectors of a text.")
    elmo.add_argument(
        "input_file",
        type=argparse.FileType("r", encoding="utf-8"),
        help="The text, one tokenised sentence per line.",
    )
    elmo.add_argument("output_file", help="The hdf5 file to write.")
    formats = elmo.add_mutually_exclusive_group(required=True)
    for name, text in zip(FORMATS, ("all layers", "the top layer", "their average"), strict=True):
        formats.add_argument(f"--{name}", action="store_true", help=f"Write {text}.")
    elmo.add_argument("--options-file", default=DEFAULT_OPTIONS_FILE, help="The model's options.")
    elmo.add_argument("--weight-file", default=DEFAULT_WEIGHT_FILE, help="The model's weights.")
    elmo.add_argument(
        "--batch-size", type=int, default=DEFAULT_BATCH_SIZE, help="Sentences read together."
    )
    elmo.add_argument("--cuda-device", type=int, default=-1, help="A GPU's number, -1 for the CPU.")
    elmo.add_argument(
        "--forget-sentences", action="store_true", help="Leave out which sentence has which key."
    )
    elmo.add_argument(
        "--use-sentence-keys", action="store_true", help="Let each sentence itself be its key."
    )
    # AllenNLP has these two, which change nothing in what is written
    elmo.add_argument("--vocab-path", help="Accepted and not used, as in AllenNLP.")
    elmo.add_argument("--file-friendly-logging", action="store_true", help="Accepted and not used.")
    return parser


def main(prog: str | None = None, arguments: Sequence[str] | None = None) -> None:
    """Reads `sys.argv`, as AllenNLP's program does."""
    chosen = make_parser(prog).parse_args(arguments)
    output_format = next(name for name in FORMATS if getattr(chosen, name))
    embedder = ElmoEmbedder(chosen.options_file, chosen.weight_file, chosen.cuda_device)
    with torch.no_grad():
        embedder.embed_file(
            chosen.input_file,
            chosen.output_file,
            output_format,
            chosen.batch_size,
            chosen.forget_sentences,
            chosen.use_sentence_keys,
        )
