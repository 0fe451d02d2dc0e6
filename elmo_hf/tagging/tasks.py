# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The kinds of tagging: which metric measures each, and which columns hold its tags."""

from typing import NamedTuple


class Task(NamedTuple):
    """One kind of tagging."""

    # A folder in metrics/, which holds a module for `evaluate`.
    metric: str
    # Names of columns that hold such tags, the likeliest first.
    tag_columns: tuple[str, ...]


TASKS = {
    "pos": Task("tagging", ("upos", "upos_tags", "pos_tags", "pos", "tags", "labels", "xpos")),
    "ner": Task("spans", ("ner_tags", "ner", "entities", "tags", "labels")),
}
