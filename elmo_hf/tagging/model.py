# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""A new head on a pretrained biLM."""

from datasets import Dataset

from elmo_hf.characters import WordRows
from elmo_hf.configuration_elmo import ElmoConfig
from elmo_hf.hub.bundled import find_model
from elmo_hf.hub.loading import load_config, load_elmo, load_model, make_tokenizer
from elmo_hf.modeling_elmo import ElmoForTokenClassification
from elmo_hf.tagging.settings import ModelSettings
from elmo_hf.tagging.word_vectors import read_word_vectors


def new_tagger(
    settings: ModelSettings, labels: list[str], train: Dataset
) -> ElmoForTokenClassification:
    """
    A tagger for these labels, whose head has random weights. The biLM is frozen unless it is to be
    fine-tuned. Static word vectors, if there are any, are those of the training words.
    """
    name = find_model(settings.model_name_or_path)
    own = load_config(name)
    layer = chosen_layer(settings.layers, own)
    vectors = None
    if settings.word_vectors is not None:
        # only dictionaries have to be loaded with the model
        tokenizer = make_tokenizer(own if own.char_ids == "bytes" else load_elmo(name))
        known = distinct_words(tokenizer.rows, train)
        words, vectors = read_word_vectors(settings.word_vectors, known)
    config = ElmoConfig.from_pretrained(
        name,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        output_layer="mix" if layer == "all" else layer,
        concatenate_layers=layer == "all",
        num_output_representations=settings.num_mixes,
        mix_after_task_lstm=settings.mix_after_lstm,
        task_lstm_size=settings.task_lstm_size,
        classifier_decoder="crf" if settings.crf else "softmax",
        crf_constraints=settings.crf_constraints,
        output_dropout=settings.elmo_dropout,
        classifier_dropout=settings.dropout,
        num_word_vectors=0 if vectors is None else len(vectors),
        word_vector_size=0 if vectors is None else vectors.shape[1],
    )
    if not settings.finetune_bilm:
        # A frozen biLM gives the same vectors in every epoch.
        config.hidden_dropout = 0.0
    model = load_model(ElmoForTokenClassification, name, config=config)
    if vectors is not None and model.word_vectors is not None:
        batch = tokenizer([words], is_split_into_words=True, return_tensors="pt")
        model.word_vectors.fill(batch["input_ids"][0], vectors)
    if not settings.finetune_bilm:
        model.freeze_bilm()
    return model


def distinct_words(rows: WordRows, train: Dataset) -> set[str]:
    """
    The training words that no other word looks like to the model. A word that a dictionary lacks,
    or that is cut, shares its row of ids with others.
    """
    words = {word for tokens in train["tokens"] for word in tokens}
    return {word for word in words if rows.decode(rows.encode(word)) == word}


def chosen_layer(layers: str, config: ElmoConfig) -> str | int:
    """The setting `layers`, where a number is one; refused if the biLM of `config` lacks it."""
    top, aligned = config.num_hidden_layers, config.aligned_layer
    number = int(layers) if layers.isdecimal() else layers
    if isinstance(number, int) and number > top:
        raise ValueError(f"`layers` is {layers} but must be at most {top}, the model's top layer.")
    if aligned is None:
        return number
    if (top if number == "top" else number) != aligned:
        raise ValueError(
            f"Layer {aligned} of this model is mapped into a space of several languages, and a "
            f"tagger reads no other layer of it: pass --layers {aligned}, not --layers {layers}."
        )
    return aligned
