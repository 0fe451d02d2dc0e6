# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The vocabulary and the model that a run trains: new ones, or those to continue from."""

from collections import Counter
from typing import Any

from accelerate import PartialState
from accelerate.utils import set_seed

from elmo_hf.configuration_elmo import ElmoConfig
from elmo_hf.hub.bundled import find_model
from elmo_hf.hub.loading import load_elmo, load_model
from elmo_hf.modeling_elmo import ElmoForPreTraining
from elmo_hf.pretraining.settings import PretrainingSettings
from elmo_hf.word_vocabulary import WordVocabulary


def make_vocabulary(
    settings: PretrainingSettings, word_counts: Counter[str] | None
) -> WordVocabulary | None:
    """The words of a new softmax; None if the model to continue from brings its own."""
    if settings.vocab_file is not None:
        return WordVocabulary.load(settings.vocab_file)
    return None if word_counts is None else WordVocabulary.of_counts(word_counts)


def make_model(
    settings: PretrainingSettings, vocabulary: WordVocabulary | None
) -> ElmoForPreTraining:
    """
    A new model, or the one to continue from; a vocabulary means a new softmax.

    All random generators start from the seed here. The weights of the first process become
    everyone's; each process draws its own negative samples and dropout.
    """
    set_seed(settings.seed + PartialState().process_index)
    if settings.model_name_or_path is not None:
        return continued_model(find_model(settings.model_name_or_path), vocabulary)
    if vocabulary is None:
        raise ValueError("A new model needs a vocabulary, as `make_vocabulary` makes it.")
    model = ElmoForPreTraining(settings.new_config(**vocabulary.config_fields()))
    model.vocabulary = vocabulary
    return model


def continued_model(name: str, vocabulary: WordVocabulary | None) -> ElmoForPreTraining:
    """A saved language model; with a vocabulary, its biLM under a new softmax over these words."""
    if vocabulary is None:
        return load_model(ElmoForPreTraining, name)
    words: dict[str, Any] = vocabulary.config_fields()
    model = ElmoForPreTraining(ElmoConfig.from_pretrained(name, **words))
    bilm = load_elmo(name)
    model.elmo.dictionaries, weights = bilm.dictionaries, bilm.state_dict()
    # a language model has no mix of layers
    shared = {key: weight for key, weight in weights.items() if not key.startswith("mixes.")}
    model.elmo.load_state_dict(shared)
    model.vocabulary = vocabulary
    return model
