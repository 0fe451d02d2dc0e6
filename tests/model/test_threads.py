"""Objects that sixteen threads share give each of them what one thread alone gets."""

from random import Random

import pytest
from faults.threads import SHARED, draw_calls, wrong_calls

# the embedder has a cache of words, so it gets the most
CALLS = {"ElmoEmbedder": 1000, "ElmoTokenizer": 1000, "pipeline": 100}


@pytest.mark.parametrize("name", SHARED)
def test_threads_get_what_one_thread_gets(name, tmp_path):
    calls = draw_calls(Random(0), CALLS.get(name, 300), sentences=1)
    assert wrong_calls(SHARED[name](tmp_path / "tagger"), calls) == 0
