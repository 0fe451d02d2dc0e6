"""Which files are published with a model."""

from pathlib import Path

import elmo_hf
from elmo_hf.private_interfaces import imported_files
from elmo_hf.remote_code import PUBLISHED_FILES

PACKAGE = Path(elmo_hf.__file__).parent


def test_the_list_of_published_files_is_what_the_models_import():
    """A new import of a model joins everybody's repository: it has to be listed."""
    for start in ("modeling_elmo.py", "bilm_elmo.py", "tokenization_elmo.py"):
        found = {start, *(file.name for file in imported_files(PACKAGE / start))}
        assert found == set(PUBLISHED_FILES), start


def test_the_flat_part_is_published_but_for_three_files():
    flat = {file.name for file in PACKAGE.glob("*.py")}
    assert flat - set(PUBLISHED_FILES) == {"__init__.py", "__main__.py", "_version.py"}
