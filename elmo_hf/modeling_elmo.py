# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""All ELMo models: the biLM, the language model, and the heads defined here."""

from collections.abc import Callable
from typing import cast

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.utils import can_return_tuple

from .bilm_elmo import ElmoModel, ElmoPreTrainedModel, one_input, refuse_unknown, word_mask
from .configuration_elmo import ElmoConfig
from .crf_elmo import ElmoCrf
from .language_model_elmo import ElmoForPreTraining
from .layers_elmo import ElmoWordVectors
from .outputs_elmo import ElmoModelOutput, ElmoState, ElmoTokenClassifierOutput
from .pooling import pool_words

# what a word without a label has in its place
NO_LABEL = -100


def read_words(
    elmo: ElmoModel, output_hidden_states: bool | None, **inputs
) -> tuple[torch.Tensor, ElmoModelOutput]:
    """
    What a head reads, all layers or all mixes, (batch, words, vectors, hidden_size), and the
    model's output as asked for.
    """
    if output_hidden_states is None:
        output_hidden_states = elmo.config.output_hidden_states
    needs_layers = elmo.config.concatenate_layers
    output = elmo(
        **inputs, output_hidden_states=output_hidden_states or needs_layers, return_dict=True
    )
    vectors = output.representations
    if needs_layers:
        vectors = torch.stack(output.hidden_states, dim=2)
    if not output_hidden_states:
        output.hidden_states = None
    return vectors, output


def num_vectors(config: ElmoConfig) -> int:
    """How many vectors of `hidden_size` `read_words` gives for each word."""
    layers = config.num_hidden_layers + 1
    return layers if config.concatenate_layers else config.num_output_representations


class ElmoForTokenClassification(ElmoPreTrainedModel):
    """
    Dropout and one linear layer over each word, on request with a task LSTM before it and a CRF
    after it.
    """

    def __init__(self, config: ElmoConfig):
        super().__init__(config)
        self.num_labels = cast(int, config.num_labels)
        self.elmo = ElmoModel(config, add_scalar_mix=not config.concatenate_layers)
        after = config.hidden_size if config.mix_after_task_lstm else 0
        width = config.hidden_size * num_vectors(config) - after
        self.word_vectors = None
        if config.num_word_vectors:
            self.word_vectors = ElmoWordVectors(config)
            width += config.word_vector_size
        self.dropout = nn.Dropout(config.classifier_dropout)
        self.task_lstm = None
        if config.task_lstm_size:
            size = config.task_lstm_size
            self.task_lstm = nn.LSTM(width, size, batch_first=True, bidirectional=True)
            width = 2 * size
        self.classifier = nn.Linear(width + after, self.num_labels)
        self.crf = ElmoCrf(config) if config.classifier_decoder == "crf" else None
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        state: ElmoState | None = None,
        labels: torch.Tensor | None = None,
        layers: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> ElmoTokenClassifierOutput:
        r"""
        labels (`(batch, words)`, *optional*):
            A class for each word; -100 where there is none to learn.
        layers (`(batch, words, layers, hidden_size)`, *optional*):
            What the biLM made of these words before, all its `hidden_states`: a frozen biLM need
            not read them again. With it, `attention_mask` must be given, and `input_ids` is only
            needed for word vectors.
        """
        refuse_unknown(kwargs)
        if layers is None:
            mask = word_mask(one_input(input_ids, inputs_embeds), attention_mask)
            vectors, output = read_words(
                self.elmo,
                output_hidden_states,
                input_ids=input_ids,
                attention_mask=mask,
                inputs_embeds=inputs_embeds,
                state=state,
            )
        else:
            mask = word_mask(layers, attention_mask)
            vectors, output = layers, ElmoModelOutput()
            if not self.config.concatenate_layers:
                vectors = self.elmo.represent([*layers.unbind(dim=2)])
        logits = self.classify(vectors, mask, input_ids)
        loss = None
        if labels is not None and self.crf is None:
            loss = self.loss_function(logits, labels, self.config, **kwargs)
        elif labels is not None:
            count = kwargs.get("num_items_in_batch")
            count = (labels != NO_LABEL).sum() if count is None else count
            loss = self.sentence_losses(logits, labels, mask).sum() / count
        return ElmoTokenClassifierOutput(loss, logits, output.hidden_states, output.state)

    def classify(
        self,
        vectors: torch.Tensor,
        mask: torch.Tensor,
        input_ids: torch.Tensor | None,
        run_lstm: Callable[[nn.LSTM, torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """
        (batch, words, vectors, hidden_size) -> (batch, words, num_labels); `run_lstm` may replace
        `run_over_words`.
        """
        after = 1 if self.config.mix_after_task_lstm else 0
        before, after_lstm = vectors.split([vectors.shape[2] - after, after], dim=2)
        hidden = before.flatten(2)
        if self.word_vectors is not None:
            if input_ids is None:
                raise ValueError("This model has word vectors, which need `input_ids`.")
            hidden = torch.cat([hidden, self.word_vectors(input_ids)], dim=-1)
        hidden = self.dropout(hidden)
        if self.task_lstm is not None:
            read = (run_lstm or run_over_words)(self.task_lstm, hidden, mask)
            hidden = self.dropout(torch.cat([read, after_lstm.flatten(2)], dim=-1))
        return self.classifier(hidden)

    def decode(
        self, logits: torch.Tensor, attention_mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """
        The tag of each word: the numbers of the labels, (batch, words), and how probable the model
        considers each of them. Positions without a word have tags without meaning; a CRF, which
        looks at neighbours, takes every position for a word unless a mask is given.
        """
        if self.crf is not None:
            mask = logits.new_ones(logits.shape[:2]) if attention_mask is None else attention_mask
            return self.crf.decode(logits, mask)
        probabilities, numbers = logits.float().softmax(dim=-1).max(dim=-1)
        return numbers, probabilities

    def sentence_losses(
        self, logits: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """-log P(labels) of each sentence, (batch,), over its words with a label."""
        if self.crf is not None:
            return self.crf.losses(logits, labels, mask)
        losses = nn.functional.cross_entropy(
            logits.float().transpose(1, 2), labels, ignore_index=NO_LABEL, reduction="none"
        )
        return losses.double().sum(dim=1)


def run_over_words(lstm: nn.LSTM, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """A bidirectional LSTM over the live words only, wherever the padding is."""
    if not mask.any():
        return hidden.new_zeros(*mask.shape, 2 * lstm.hidden_size)
    words_first = mask.long().argsort(dim=1, descending=True, stable=True).unsqueeze(-1)
    # torch packs no empty sentence; an empty one reads a zero and is masked again below
    lengths = mask.sum(dim=1).clamp(min=1).cpu()
    moved = hidden.take_along_dim(words_first, dim=1)
    packed = pack_padded_sequence(moved, lengths, batch_first=True, enforce_sorted=False)
    read, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=mask.shape[1])
    restored = torch.zeros_like(read).scatter(1, words_first.expand_as(read), read)
    return restored * mask.unsqueeze(-1).to(read.dtype)


class ElmoForSequenceClassification(ElmoPreTrainedModel):
    """A masked mean or maximum over a sentence's words, dropout and one linear layer."""

    def __init__(self, config: ElmoConfig):
        super().__init__(config)
        self.num_labels = cast(int, config.num_labels)
        self.elmo = ElmoModel(config, add_scalar_mix=not config.concatenate_layers)
        self.dropout = nn.Dropout(config.classifier_dropout)
        self.classifier = nn.Linear(config.hidden_size * num_vectors(config), self.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> SequenceClassifierOutput:
        r"""
        labels (`(batch,)` or `(batch, num_labels)`, *optional*):
            A class, a number or a set of classes for each sentence, by `config.problem_type`.
        """
        refuse_unknown(kwargs)
        mask = word_mask(one_input(input_ids, inputs_embeds), attention_mask)
        vectors, output = read_words(
            self.elmo,
            output_hidden_states,
            input_ids=input_ids,
            attention_mask=mask,
            inputs_embeds=inputs_embeds,
        )
        pooled = pool_words(vectors.flatten(2), mask, self.config.classifier_pooling)
        logits = self.classifier(self.dropout(pooled))
        loss = None
        if labels is not None:
            loss = self.loss_function(labels, logits, self.config, **kwargs)
        return SequenceClassifierOutput(
            loss=loss, logits=logits, hidden_states=cast(tuple | None, output.hidden_states)
        )


__all__ = [
    "ElmoForPreTraining",
    "ElmoForSequenceClassification",
    "ElmoForTokenClassification",
    "ElmoModel",
    "ElmoPreTrainedModel",
    "ElmoState",
]
