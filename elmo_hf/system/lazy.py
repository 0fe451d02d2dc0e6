# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Public names of a room whose modules need extras: a module is imported when a name is used.

Type checkers and editors do not see such names; a room lists them again under `TYPE_CHECKING`.
"""

import sys
from collections.abc import Callable
from typing import Any

from elmo_hf.extras import require


def lazy_names(
    package: str, **modules: list[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """
    A package's `__getattr__`, `__dir__` and `__all__`, from the names that its modules define.

        __getattr__, __dir__, __all__ = lazy_names(__name__, settings=["DataSettings"])
    """
    places = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = f"{package}.{places[name]}"
        return getattr(require(module, f"{package}.{name}"), name)

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *places})

    return get, list_names, sorted(places)
