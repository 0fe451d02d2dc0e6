# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Pages and pictures to look at: an HTML frame, plots, planes of vectors, and word senses."""

from elmo_hf.pages.page import section, write_page
from elmo_hf.pages.plane import Dot, draw_plane, layer_name, project_to_plane
from elmo_hf.pages.plots import as_label, new_figure, save_figure
from elmo_hf.pages.senses import (
    Occurrence,
    WordStudy,
    chance_share,
    nearest_neighbours,
    read_occurrences,
    same_sense_share,
    study_words,
    vectors_in_context,
)
from elmo_hf.pages.senses_page import draw_senses, write_senses_page

__all__ = [
    "Dot",
    "Occurrence",
    "WordStudy",
    "as_label",
    "chance_share",
    "draw_plane",
    "draw_senses",
    "layer_name",
    "nearest_neighbours",
    "new_figure",
    "project_to_plane",
    "read_occurrences",
    "same_sense_share",
    "save_figure",
    "section",
    "study_words",
    "vectors_in_context",
    "write_page",
    "write_senses_page",
]
