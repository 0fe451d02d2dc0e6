# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`elmo-hf push`."""

from typing import Annotated

import typer

from elmo_hf.hub.bundled import find_model
from elmo_hf.hub.publish import publish


def push(
    repo: Annotated[
        str, typer.Argument(metavar="REPO", help="The Hub repository, as in me/elmo-pos.")
    ],
    model: Annotated[str, typer.Option("--model", help="The model to push: a folder, or bundled.")],
    private: Annotated[
        bool, typer.Option("--private", help="Create a private repository.")
    ] = False,
) -> None:
    """Publish a model on the Hub: weights, tokenizer, card, and code that runs without elmo_hf."""
    print(f"pushed to {publish(find_model(model), repo, private)}")
