# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Settings as dataclasses, which are the options of a script as well.

A field made by `option` has its help and its range beside its default. `check_values`, which the
classes call in `__post_init__`, refuses everything else. `parse_settings` makes the command line of
such classes, in the style of transformers' examples. A class with an `_argument_group_name` has a
heading of its own in the help, also where it is one of the bases of the settings class.
"""

import argparse
import dataclasses
import math
import operator
from typing import Any

from transformers import HfArgumentParser

# How a field says which numbers it takes, how this is tested, and how it is called.
BOUNDS = {
    "at_least": (operator.ge, "at least"),
    "above": (operator.gt, "greater than"),
    "at_most": (operator.le, "at most"),
    "below": (operator.lt, "less than"),
}
# What the random generators of torch and numpy take.
SEEDS = {"at_least": 0, "at_most": 2**32 - 1}
# Larger ones overflow in an optimizer before a run is seen to diverge.
RATES = {"above": 0, "at_most": 1e30}


class Metadata(dict):
    """
    The metadata of a field. Its copy has no bounds: transformers makes one and passes all of it to
    argparse, which knows only help and choices.
    """

    def copy(self) -> dict[str, Any]:
        return {name: value for name, value in self.items() if name not in BOUNDS}


def option(default: Any = dataclasses.MISSING, *, help: str, **more: Any) -> Any:
    """
    A field of a settings class; its help names the default where that is informative. `choices`
    lists its values, and `at_least`, `above`, `at_most` and `below` are bounds of a number.
    """
    # by identity, because 0 equals False
    if not any(default is one for one in (dataclasses.MISSING, None, False)):
        help = f"{help} (default: {default})"
    return dataclasses.field(default=default, metadata=Metadata(help=help, **more))


def check_values(settings: Any) -> None:
    """Refuses values that are not among their field's choices or within its bounds."""
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if value is None:
            continue
        choices = field.metadata.get("choices")
        if choices is not None and value not in choices:
            raise ValueError(
                f"`{field.name}` is {value!r} but must be one of {', '.join(choices)}."
            )
        bounds = {name: field.metadata[name] for name in BOUNDS if name in field.metadata}
        if not bounds:
            continue
        within = all(BOUNDS[name][0](value, bound) for name, bound in bounds.items())
        if not (within and math.isfinite(value)):
            wanted = " and ".join(f"{BOUNDS[name][1]} {bound}" for name, bound in bounds.items())
            finite = "" if math.isfinite(value) else ", and finite"
            raise ValueError(f"`{field.name}` is {value} but must be {wanted}{finite}.")


def parse_settings(kinds: Any, description: str | None) -> Any:
    """
    The settings that a command line asks for: one class, or a tuple of several, gives one object
    or as many.
    """
    groups = kinds if isinstance(kinds, tuple) else groups_of(kinds)
    parser = HfArgumentParser(
        groups, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    # What is not on the command line is not set: no file beside the script is looked for.
    *parsed, unknown = parser.parse_args_into_dataclasses(
        return_remaining_strings=True, look_for_args_file=False
    )
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if isinstance(kinds, tuple):
        return tuple(parsed)
    return kinds(**{name: value for group in parsed for name, value in vars(group).items()})


def groups_of(kind: Any) -> tuple[Any, ...]:
    """The classes with headings that a settings class is made of, or the class itself."""
    return tuple(base for base in kind.__bases__ if dataclasses.is_dataclass(base)) or (kind,)
