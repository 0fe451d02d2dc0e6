# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Training of a biLM on plain text, and what it knows of words as a language model."""

from elmo_hf.system.lazy import lazy_names

__getattr__, __all__ = lazy_names(
    __name__,
    corpus=["Corpus", "DatasetCorpus"],
    curve=["draw_curve"],
    evaluation=["evaluate", "format_figures"],
    model=["make_model", "make_vocabulary"],
    scoring=["ElmoScorer"],
    settings=["PretrainingSettings"],
    splits=["read_splits"],
    streams=["make_streams"],
    training=["Pretraining"],
)
