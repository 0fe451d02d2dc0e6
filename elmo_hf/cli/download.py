# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`elmo-hf download`."""

from pathlib import Path
from typing import Annotated

import typer

from elmo_hf.hub.download import download_model
from elmo_hf.hub.registry import read_registry
from elmo_hf.system.command import AllowHttp, Offline


def download(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A published model, as `elmo-hf models` lists it.")
    ],
    output_dir: Annotated[
        Path | None,
        typer.Option("--output-dir", help="The folder for its files; by default in the cache."),
    ] = None,
    allow_http: AllowHttp = False,
    offline: Offline = False,
) -> None:
    """
    Download the files of a published model. An interrupted download is resumed, and files that are
    there already are checked.
    """
    origin = download_model(read_registry().find(name), output_dir, allow_http, offline)
    for one in origin.files:
        print(f"{one.sha256}  {one.path}")
    print(f"licence of {origin.model.name}: {origin.model.licence}")
