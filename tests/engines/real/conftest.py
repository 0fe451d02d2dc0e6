"""Ray in this process; Java, or a sentence about it."""

import os

import pytest
from helpers.engines import RAY

from elmo_hf.engines import require_java
from elmo_hf.extras import require

os.environ |= RAY
for library in ("ray", "pyspark"):
    require(library, "Testing the engines")


@pytest.fixture(scope="session")
def ray_address():
    import ray

    # two for the actors, and two for what reads and writes
    ray.init(
        num_cpus=4,
        # there is none, but Ray believes it
        num_gpus=1,
        include_dashboard=False,
        object_store_memory=1 << 30,
    )
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


@pytest.fixture(scope="session")
def java():
    try:
        require_java()
    except OSError as error:
        pytest.fail(str(error), pytrace=False)
