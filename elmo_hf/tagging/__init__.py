# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Tagging: a ready tagger, and everything to train one."""

from elmo_hf.system.lazy import lazy_names

__getattr__, __all__ = lazy_names(
    __name__,
    batches=["Batches", "make_batches"],
    conllu=["format_sentence"],
    evaluation=["Evaluation", "Evaluator"],
    feature_cache=["FeatureCache"],
    formats=["read_tagged"],
    model=["new_tagger"],
    report=["write_report"],
    results=["write_card", "write_results"],
    settings=["DataSettings", "HubSettings", "ModelSettings", "TrainingSettings"],
    splits=["load_splits", "load_tagged", "number_tags"],
    tagger=["ElmoTagger", "TaggedSentence"],
    training=["Progress", "train_tagger"],
    word_vectors=["read_word_vectors"],
)
