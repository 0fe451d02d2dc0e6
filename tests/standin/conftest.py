"""AllenNLP's names for the tests of this folder, and nothing left of them afterwards."""

import pytest
from helpers.references import allennlp_fixtures
from helpers.tiny import tiny_config, write_model

from elmo_hf import standin


@pytest.fixture
def installed(monkeypatch):
    # kept as they were: `install` writes to the environment
    monkeypatch.delenv("PYTHONPATH", raising=False)
    standin.install()
    yield standin
    standin.uninstall()


@pytest.fixture(scope="session")
def fixture_files():
    """Options and weights of AllenNLP's own test model."""
    folder = allennlp_fixtures()
    return str(folder / "options.json"), str(folder / "lm_weights.hdf5")


@pytest.fixture(scope="session")
def tiny_files(tmp_path_factory):
    """Those of a model that saturates nothing, for gradients."""
    folder = tmp_path_factory.mktemp("tiny")
    config = tiny_config(max_characters_per_token=50, num_highway_layers=2)
    return tuple(map(str, write_model(folder, config)))
