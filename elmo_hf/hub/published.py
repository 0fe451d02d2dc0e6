# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Published models by name: downloaded and converted once, then loaded from the cache."""

import hashlib
from contextlib import suppress
from pathlib import Path

from elmo_hf._version import __version__
from elmo_hf.hub.download import download_model
from elmo_hf.hub.loading import load_elmo
from elmo_hf.hub.registry import PublishedModel, read_registry, refuse_unconvertible
from elmo_hf.modeling_elmo import ElmoModel
from elmo_hf.system.cache import cache_folder, cache_home


def published_model(name: str, allow_http: bool = False, offline: bool = False) -> str:
    """
    The folder of a published model, as in `ElmoModel.from_pretrained(published_model("original"))`.
    The first call downloads and converts it; `elmo-hf models` lists the names. `allow_http` also
    uses places without https:// for files whose hash is not known; with `offline`, nothing is
    downloaded.
    """
    model = read_registry().find(name)
    refuse_unconvertible(model)
    # a finished one serves even where it cannot be written
    folder = cache_home() / folder_name(model)
    if not (folder / "config.json").exists():
        folder = cache_folder() / folder_name(model)
    if not (folder / "config.json").exists():
        make_folder(model, folder, allow_http, offline)
    return str(folder)


def load_published(name: str, allow_http: bool = False, offline: bool = False) -> ElmoModel:
    """A published model, ready for inference; see `published_model`."""
    return load_elmo(published_model(name, allow_http, offline))


def folder_name(model: PublishedModel) -> str:
    """Another one if the registry says something else of a model, or in another release."""
    digest = hashlib.sha256(f"{__version__} {model}".encode()).hexdigest()
    return f"converted-{model.name}-{digest[:12]}"


def make_folder(model: PublishedModel, folder: Path, allow_http: bool, offline: bool) -> None:
    # only here: a model that is in the cache needs no converter
    from elmo_hf.conversion.convert_allennlp_to_hf import write_converted

    origin = download_model(model, None, allow_http, offline)
    # another process may finish the same folder meanwhile
    with suppress(FileExistsError):
        write_converted(None, {}, folder, origin=origin)
