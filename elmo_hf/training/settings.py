# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Settings as dataclasses, which are the options of a script as well.

A field made by `option` has its help beside its default; `parse_settings` makes the command line of
such classes, in the style of transformers' examples. A class with an `_argument_group_name` has a
heading of its own in the help, also where it is one of the bases of the settings class.
"""

import argparse
import dataclasses
from typing import Any

from transformers import HfArgumentParser


def option(default: Any = dataclasses.MISSING, *, help: str, **more: Any) -> Any:
    """A field of a settings class; its help names the default where that is informative."""
    # by identity, because 0 equals False
    if not any(default is one for one in (dataclasses.MISSING, None, False)):
        help = f"{help} (default: {default})"
    return dataclasses.field(default=default, metadata={"help": help, **more})


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


def groups_of(kind: type) -> tuple[type, ...]:
    """The classes with headings that a settings class is made of, or the class itself."""
    return tuple(base for base in kind.__bases__ if dataclasses.is_dataclass(base)) or (kind,)
