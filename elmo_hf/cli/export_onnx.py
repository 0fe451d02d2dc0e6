# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`elmo-hf export-onnx`."""

from pathlib import Path
from typing import Annotated

import typer

from elmo_hf.cli.options import Model, Overwrite
from elmo_hf.hub.bundled import BUNDLED
from elmo_hf.system.writing import refuse_existing_file


def export_onnx(
    model: Model = BUNDLED,
    output: Annotated[Path, typer.Option("--output", help="The ONNX file to write.")] = Path(
        "elmo.onnx"
    ),
    overwrite: Overwrite = False,
) -> None:
    """
    Export a model, with its head if it has one, to ONNX.

    The file is checked in onnxruntime before it is saved.
    """
    from elmo_hf.export.onnx import write_model

    refuse_existing_file(output, overwrite)
    print(write_model(model, output))
