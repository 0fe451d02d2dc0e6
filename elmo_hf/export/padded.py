# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The same network on padded batches, for exporters: no shape in it depends on what is read.

The models themselves pack the live words of a batch and count its distinct ones, which no exporter
can follow, nor a loop over time whose length changes. Here every place of a batch is computed, and
time is one `scan`. The weights are the model's own.
"""

import torch
from torch import nn

from elmo_hf.characters import BEGIN_SENTENCE, END_SENTENCE, boundary_row
from elmo_hf.modeling_elmo import (
    ElmoForSequenceClassification,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoPreTrainedModel,
)
from elmo_hf.pooling import pool_words
from elmo_hf.private_interfaces import scan

State = tuple[torch.Tensor, torch.Tensor]


class PaddedElmo(nn.Module):
    """
    Reads `input_ids` (batch, words, characters) and `attention_mask` (batch, words), padded at the
    end, from fresh states; returns `last_hidden_state` and all layers (batch, layers, words,
    hidden_size), or a head's `logits`.
    """

    begin: torch.Tensor
    end: torch.Tensor

    def __init__(self, model: ElmoPreTrainedModel):
        super().__init__()
        if not isinstance(
            model, (ElmoModel, ElmoForTokenClassification, ElmoForSequenceClassification)
        ):
            raise ValueError(f"{type(model).__name__} has no form for exporters.")
        if model.config.mix_layer_norm:
            raise ValueError("A model with `mix_layer_norm` has no form for exporters.")
        if model.config.num_word_vectors:
            raise ValueError("A model with word vectors of its own has no form for exporters.")
        self.model = model.eval()
        self.elmo: ElmoModel = model if isinstance(model, ElmoModel) else model.elmo
        width = model.config.max_characters_per_token
        for name, marker in (("begin", BEGIN_SENTENCE), ("end", END_SENTENCE)):
            row = torch.tensor(boundary_row(marker, width), device=model.device)
            self.register_buffer(name, row, persistent=False)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor):
        mask = attention_mask.bool()
        layers = self.read(input_ids, mask)
        if isinstance(self.model, ElmoModel):
            return self.model.represent(layers)[:, :, 0], torch.stack(layers, dim=1)
        if self.model.config.concatenate_layers:
            vectors = torch.stack(layers, dim=2)
        else:
            vectors = self.elmo.represent(layers)
        if isinstance(self.model, ElmoForSequenceClassification):
            pooled = pool_words(vectors.flatten(2), mask, self.model.config.classifier_pooling)
            return self.model.classifier(pooled)
        return self.model.classify(vectors, mask, input_ids, run_over_places)

    def read(self, input_ids: torch.Tensor, mask: torch.Tensor) -> list[torch.Tensor]:
        """All layers, (batch, words, hidden_size) each, zeros where there is no word."""
        batch, words, _ = input_ids.shape
        lengths = mask.sum(dim=1, keepdim=True)
        places = torch.arange(words + 2, device=mask.device)
        begins = self.begin.expand(batch, 1, -1)
        rows = torch.cat([begins, input_ids, torch.zeros_like(begins)], dim=1)
        rows = torch.where((places == lengths + 1).unsqueeze(-1), self.end, rows)
        turned = turn(places, lengths + 2)

        encoder = self.elmo.token_encoder
        embedded = encoder.char_embeddings(rows.flatten(0, 1))
        forward = encoder.encode_embedded(embedded).unflatten(0, (batch, words + 2))
        layers = [torch.cat([forward, forward], dim=-1)]
        # time first, as the layers read rows of which none ends early
        streams = (forward.transpose(0, 1), take(forward, turned).transpose(0, 1))
        for layer in self.elmo.layers:
            *streams, _, _ = layer(*streams, (None, None), None, None)
            forward, backward = (stream.transpose(0, 1) for stream in streams)
            layers.append(torch.cat([forward, take(backward, turned)], dim=-1))
        return [layer[:, 1:-1] * mask.unsqueeze(-1) for layer in layers]


def turn(places: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """(batch, time): where each place's token stands when its sentence is turned round."""
    return torch.where(places < lengths, lengths - 1 - places, places)


def take(hidden: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    return hidden.gather(1, places.unsqueeze(-1).expand(-1, -1, hidden.shape[-1]))


def run_over_places(lstm: nn.LSTM, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """As `run_over_words`, but it reads the padding, too."""
    places = torch.arange(mask.shape[1], device=mask.device)
    turned = turn(places, mask.sum(dim=1, keepdim=True))
    forward = read_task(lstm, hidden, "")
    backward = read_task(lstm, take(hidden, turned), "_reverse")
    return torch.cat([forward, take(backward, turned)], dim=-1) * mask.unsqueeze(-1)


def read_task(lstm: nn.LSTM, hidden: torch.Tensor, direction: str) -> torch.Tensor:
    """One direction of torch's LSTM, whose gates lie in the order input, forget, cell, output."""
    weights = [
        getattr(lstm, f"{name}_l0{direction}")
        for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
    ]
    inputs = nn.functional.linear(hidden, *weights[:2])

    def step(state: State, gates: torch.Tensor) -> tuple[State, torch.Tensor]:
        output, memory = state
        gates = gates + nn.functional.linear(output, *weights[2:])
        input_gate, forget_gate, candidate, output_gate = gates.chunk(4, dim=-1)
        memory = torch.sigmoid(forget_gate) * memory
        memory = memory + torch.sigmoid(input_gate) * torch.tanh(candidate)
        output = torch.sigmoid(output_gate) * torch.tanh(memory)
        return (output, memory), output.clone()

    first = tuple(hidden.new_zeros(len(hidden), lstm.hidden_size) for _ in range(2))
    _, outputs = scan(step, first, inputs.transpose(0, 1))
    return outputs.transpose(0, 1)
