# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What the models return."""

from dataclasses import dataclass

import torch
from transformers.modeling_outputs import ModelOutput


@dataclass
class ElmoState(ModelOutput):
    """
    What the LSTMs remember after each sentence; the third axis is the direction, forward first.

    outputs: what they gave out last, (batch, layers, 2, projection_size).
    cells: their memory cells, (batch, layers, 2, cell_size).
    """

    outputs: torch.Tensor | None = None
    cells: torch.Tensor | None = None

    def detach(self) -> "ElmoState":
        """The same state without its history, to carry it on in training."""
        return ElmoState(**{name: tensor.detach() for name, tensor in self.items()})


@dataclass
class ElmoModelOutput(ModelOutput):
    """
    last_hidden_state: one vector per word, (batch, words, hidden_size), by `config.output_layer`.
    hidden_states: the token layer, repeated for both directions, then each biLSTM layer; each has
        that shape.
    representations: all of them, (batch, words, num_output_representations, hidden_size).
    state: the LSTMs' state after each sentence; pass it to the next call to continue from there.
    """

    last_hidden_state: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    representations: torch.Tensor | None = None
    state: ElmoState | None = None


@dataclass
class ElmoForPreTrainingOutput(ModelOutput):
    """
    loss: the mean of the two directions' losses, each the mean of -log P(word) over its words.
    loss_forward, loss_backward: the two.
    logits_forward, logits_backward: scores of every word of the vocabulary at each word's place,
        from the words to its left and from the words to its right, (batch, words,
        lm_vocab_size); only where no labels are given.
    hidden_states, state: as in [`ElmoModelOutput`]; a stream has no hidden states on words.
    """

    loss: torch.Tensor | None = None
    loss_forward: torch.Tensor | None = None
    loss_backward: torch.Tensor | None = None
    logits_forward: torch.Tensor | None = None
    logits_backward: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    state: ElmoState | None = None


@dataclass
class ElmoTokenClassifierOutput(ModelOutput):
    """
    loss: the mean of -log P(label) over the words whose label is not -100; with a CRF, -log P of
        each sentence's labels together, divided by the number of these words.
    logits: scores before the softmax or the CRF, (batch, words, num_labels).
    hidden_states, state: as in [`ElmoModelOutput`].
    """

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    state: ElmoState | None = None
