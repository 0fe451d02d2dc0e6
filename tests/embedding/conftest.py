"""A tiny model in a folder, and an embedder of it."""

import pytest
import torch
from helpers.tiny import tiny_config

from elmo_hf import ElmoEmbedder, ElmoModel, ElmoTokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "elmo"
    torch.manual_seed(0)
    ElmoModel(tiny_config()).save_pretrained(folder)
    width = tiny_config().max_characters_per_token
    ElmoTokenizer(max_characters_per_token=width).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def embedder(folder):
    return ElmoEmbedder(folder)
