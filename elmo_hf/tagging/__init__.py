# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Tagging: a ready tagger, and everything to train one."""

from typing import TYPE_CHECKING

from elmo_hf.system.lazy import lazy_names

if TYPE_CHECKING:
    from elmo_hf.tagging.batches import Batches as Batches
    from elmo_hf.tagging.batches import make_batches as make_batches
    from elmo_hf.tagging.conllu import format_sentence as format_sentence
    from elmo_hf.tagging.evaluation import Evaluation as Evaluation
    from elmo_hf.tagging.evaluation import Evaluator as Evaluator
    from elmo_hf.tagging.feature_cache import FeatureCache as FeatureCache
    from elmo_hf.tagging.formats import read_tagged as read_tagged
    from elmo_hf.tagging.gold import evaluate_tagger as evaluate_tagger
    from elmo_hf.tagging.model import new_tagger as new_tagger
    from elmo_hf.tagging.raw_evaluation import evaluate_raw as evaluate_raw
    from elmo_hf.tagging.report import write_report as write_report
    from elmo_hf.tagging.results import write_card as write_card
    from elmo_hf.tagging.results import write_results as write_results
    from elmo_hf.tagging.settings import DataSettings as DataSettings
    from elmo_hf.tagging.settings import HubSettings as HubSettings
    from elmo_hf.tagging.settings import ModelSettings as ModelSettings
    from elmo_hf.tagging.settings import TrainingSettings as TrainingSettings
    from elmo_hf.tagging.splits import load_splits as load_splits
    from elmo_hf.tagging.splits import load_tagged as load_tagged
    from elmo_hf.tagging.splits import number_tags as number_tags
    from elmo_hf.tagging.tagger import ElmoTagger as ElmoTagger
    from elmo_hf.tagging.tagger import TaggedSentence as TaggedSentence
    from elmo_hf.tagging.training import Progress as Progress
    from elmo_hf.tagging.training import check_run as check_run
    from elmo_hf.tagging.training import train_tagger as train_tagger
    from elmo_hf.tagging.treebank import fill_tags as fill_tags
    from elmo_hf.tagging.word_vectors import read_word_vectors as read_word_vectors

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    batches=["Batches", "make_batches"],
    conllu=["format_sentence"],
    evaluation=["Evaluation", "Evaluator"],
    feature_cache=["FeatureCache"],
    formats=["read_tagged"],
    gold=["evaluate_tagger"],
    model=["new_tagger"],
    raw_evaluation=["evaluate_raw"],
    report=["write_report"],
    results=["write_card", "write_results"],
    settings=["DataSettings", "HubSettings", "ModelSettings", "TrainingSettings"],
    splits=["load_splits", "load_tagged", "number_tags"],
    tagger=["ElmoTagger", "TaggedSentence"],
    training=["Progress", "check_run", "train_tagger"],
    treebank=["fill_tags"],
    word_vectors=["read_word_vectors"],
)
