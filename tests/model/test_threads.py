"""Objects that sixteen threads share give each of them what one thread alone gets."""

from random import Random

import pytest
import torch
from faults.threads import SHARED, draw_calls, wrong_calls

# the embedder has a cache of words, so it gets the most
CALLS = {"ElmoEmbedder": 1000, "ElmoTokenizer": 1000, "pipeline": 100}


@pytest.fixture(autouse=True)
def one_core_per_thread():
    """Sixteen threads that each use all cores would only wait for each other."""
    cores = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(cores)


@pytest.mark.parametrize("name", SHARED)
def test_threads_get_what_one_thread_gets(name, tmp_path):
    calls = draw_calls(Random(0), CALLS.get(name, 300), sentences=1)
    assert wrong_calls(SHARED[name](tmp_path / "tagger"), calls) == 0
