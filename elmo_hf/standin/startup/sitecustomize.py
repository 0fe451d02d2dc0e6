# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What a Python started by a program that uses the stand-in runs first: it installs it there too.

Nothing is imported before AllenNLP or simple_elmo is. The `sitecustomize` that would have been run
instead of this one is run as well.
"""

import importlib.machinery
import importlib.util
import os
import sys


class Later:
    """Installs the stand-in, whose finder replaces this one, when it is first needed."""

    # what `install` and `uninstall` know it by
    belongs_to_elmo_hf = True

    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] not in ("allennlp", "simple_elmo"):
            return None
        try:
            from elmo_hf.standin import install
        except ImportError:
            # another Python, without this package
            return None
        install()
        return importlib.util.find_spec(name)


def run_the_other() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    places = list(map(os.path.abspath, sys.path))
    # none comes before; another copy of this package, behind it, does the same
    after = places[places.index(here) + 1 :] if here in places else []
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", after)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if not any(hasattr(finder, "belongs_to_elmo_hf") for finder in sys.meta_path):
    sys.meta_path.append(Later())
run_the_other()
