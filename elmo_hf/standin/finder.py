# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The finder: how real modules in here are reached under the names of AllenNLP and simple_elmo.

It is the last one of the import system, so an installed or vendored library always comes first, and
it is there only between `install()` and `uninstall()`.
"""

import dis
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from elmo_hf.standin.settings import clear_settings, is_version_2, write_settings
from elmo_hf.standin.surface import (
    HERE,
    ROOTS,
    SURFACE,
    is_package,
    missing_module,
    missing_name,
)

# A folder whose `sitecustomize` Python runs at its start. On PYTHONPATH it reaches subprocesses
# and the workers of pools, however they are started.
STARTUP = str(Path(__file__).with_name("startup"))


class StandInModule(ModuleType):
    """A module of theirs, whose names are in modules of ours, imported when they are used."""

    def __getattr__(self, name: str) -> Any:
        module = self.__name__
        if name in SURFACE[module]:
            value = getattr(importlib.import_module(f"{HERE}.{SURFACE[module][name]}"), name)
            # so that a patch of this module is seen, and undone, like any other
            setattr(self, name, value)
            return value
        if f"{module}.{name}" in SURFACE:
            return importlib.import_module(f"{module}.{name}")
        if is_import(sys._getframe(1)) and not name.startswith("__"):
            raise ImportError(missing_name(module, name), name=module)
        # what looks for a name in every module expects this error and no other
        raise AttributeError(missing_name(module, name))

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *SURFACE[self.__name__]})


def is_import(frame: Any) -> bool:
    """Whether a frame is at `from MODULE import NAME`, whose own message would say nothing."""
    return frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]


class StandInLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ == "allennlp":
            module.__dict__["__version__"] = "2.10.1" if is_version_2() else "0.9.0"
        # `from module import *`
        module.__dict__["__all__"] = [*SURFACE[module.__name__]]

    def get_code(self, name: str) -> CodeType:
        """For `python -m`."""
        return compile(f"from {name} import main\nmain()\n", f"<stand-in of {name}>", "exec")


class StandInFinder(MetaPathFinder):
    belongs_to_elmo_hf = True

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        root = name.partition(".")[0]
        if root not in ROOTS or (name != root and not is_absent(sys.modules.get(root))):
            return None
        if name not in SURFACE:
            raise ModuleNotFoundError(missing_module(name), name=name)
        return ModuleSpec(name, StandInLoader(), origin=HERE, is_package=is_package(name))


def is_absent(module: ModuleType | None) -> bool:
    """Whether this is ours, or nothing but a folder without `__init__.py`."""
    if module is None or isinstance(module, StandInModule):
        return True
    return getattr(module, "__file__", None) is None and hasattr(module, "__path__")


def install(
    state: str | None = None, weights: str | os.PathLike | None = None, version: str | None = None
) -> None:
    """
    Lets `import allennlp` and `import simple_elmo` find this package, in this process and in those
    that it starts, unless the real ones are there.

    `state="fresh"` reads every sentence from zeros, so that its vectors are the same every time.
    `weights` is a folder with copies of published files, under the names that they have there.
    `version="2.10"` gives the masks and fields of AllenNLP 2 instead of those of 0.9.
    """
    folder = None if weights is None else str(Path(weights).expanduser().absolute())
    write_settings(state=state, weights=folder, version=version)
    # at once, since another thread may be importing
    sys.meta_path[:] = [*other_finders(), StandInFinder()]
    for root in ROOTS:
        replace_folder(root)
    paths = search_path()
    if STARTUP not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([STARTUP, *paths])


def search_path() -> list[str]:
    """The entries of PYTHONPATH; an empty one is the current folder."""
    given = os.environ.get("PYTHONPATH")
    return given.split(os.pathsep) if given else []


def replace_folder(root: str) -> None:
    """
    A folder of this name without `__init__.py`, somewhere on Python's path, would be found before
    us: then our module is put into its place.
    """
    try:
        spec = importlib.util.find_spec(root)
    except ValueError:
        # a module that somebody made by hand
        return
    if spec is not None and spec.origin is None and spec.submodule_search_locations is not None:
        ours = ModuleSpec(root, StandInLoader(), origin=HERE, is_package=True)
        sys.modules[root] = importlib.util.module_from_spec(ours)
        StandInLoader().exec_module(sys.modules[root])


def other_finders() -> list[Any]:
    """All but this one, and the one that waits in a process that was started by a program."""
    return [each for each in sys.meta_path if not getattr(each, "belongs_to_elmo_hf", False)]


def uninstall() -> None:
    """Undoes `install()`; what has been imported stays with who has it."""
    sys.meta_path[:] = other_finders()
    ours = [name for name, each in [*sys.modules.items()] if isinstance(each, StandInModule)]
    for name in ours:
        del sys.modules[name]
    clear_settings()
    paths = search_path()
    if STARTUP in paths:
        paths.remove(STARTUP)
        if paths:
            os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        else:
            del os.environ["PYTHONPATH"]
