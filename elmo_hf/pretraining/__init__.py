# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Training of a biLM on plain text, and what it knows of words as a language model."""

from typing import TYPE_CHECKING

from elmo_hf.system.lazy import lazy_names

if TYPE_CHECKING:
    from elmo_hf.pretraining.corpus import Corpus as Corpus
    from elmo_hf.pretraining.corpus import DatasetCorpus as DatasetCorpus
    from elmo_hf.pretraining.curve import draw_curve as draw_curve
    from elmo_hf.pretraining.evaluation import evaluate as evaluate
    from elmo_hf.pretraining.evaluation import format_figures as format_figures
    from elmo_hf.pretraining.model import make_model as make_model
    from elmo_hf.pretraining.model import make_vocabulary as make_vocabulary
    from elmo_hf.pretraining.scoring import ElmoScorer as ElmoScorer
    from elmo_hf.pretraining.settings import PretrainingSettings as PretrainingSettings
    from elmo_hf.pretraining.splits import read_splits as read_splits
    from elmo_hf.pretraining.streams import make_streams as make_streams
    from elmo_hf.pretraining.training import Pretraining as Pretraining

__getattr__, __dir__, __all__ = lazy_names(
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
