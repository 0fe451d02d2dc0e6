"""What all tests share: no Hub, fixed seeds, one tiny model built once."""

import copy
import os
from pathlib import Path

# before anything imports huggingface_hub: a test that asks the Hub fails instead of waiting
os.environ["HF_HUB_OFFLINE"] = "1"
# what is assembled once, such as the bundled tagger, stays inside the clone
os.environ["ELMO_HF_HOME"] = str(Path(__file__).resolve().parents[1] / ".cache" / "elmo_hf")

import pytest
import torch
from helpers.tiny import tiny_config

from elmo_hf import ElmoModel


@pytest.fixture(autouse=True)
def fixed_seed():
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def _tiny_model() -> ElmoModel:
    torch.manual_seed(0)
    return ElmoModel(tiny_config()).eval()


@pytest.fixture
def tiny_model(_tiny_model: ElmoModel) -> ElmoModel:
    return copy.deepcopy(_tiny_model)
