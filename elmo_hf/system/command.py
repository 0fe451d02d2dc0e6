# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Functions as programs of one command; their signatures are their options.

The options here are shared by the commands of `elmo-hf` and the scripts of the conversion.
"""

from collections.abc import Callable
from typing import Annotated

import typer

from elmo_hf.system.program import run_program

Model = Annotated[str, typer.Option("--model", help="A model: a folder, a Hub name, or bundled.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the output if it exists.")]
AllowHttp = Annotated[
    bool,
    typer.Option(
        "--allow-http",
        help="Also use http:// addresses for files whose hash is not known.",
    ),
]
Offline = Annotated[
    bool, typer.Option("--offline", help="Download nothing; use what is in the cache.")
]
# The settings of an app whose options are listed as `--output-dir` and accepted as `--output_dir`.
NORMALIZE = {"token_normalize_func": lambda token: token.replace("_", "-")}


def single_command(function: Callable[..., None]) -> Callable[[], None]:
    """A program that runs one function, as in `if __name__ == "__main__": single_command(f)()`."""
    app = typer.Typer(add_completion=False)
    app.command(context_settings=NORMALIZE)(function)
    return lambda: run_program(app)
