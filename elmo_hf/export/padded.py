# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The same network on padded batches, for exporters: no shape depends on the input's values.

The models pack the words of a batch and look for distinct ones, which exporters cannot trace, and
neither can they trace a loop of variable length over time. Here every position of a batch is
computed, padding included, and time is one `scan`. The weights are shared with the model.
"""

import torch
from torch import nn

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
            raise ValueError(f"{type(model).__name__} cannot be exported.")
        if model.config.mix_layer_norm:
            raise ValueError("A model with `mix_layer_norm` cannot be exported.")
        if isinstance(model, ElmoForTokenClassification) and model.crf is not None:
            raise ValueError(
                "A tagger with a CRF cannot be exported: ONNX has no search for its best tags."
            )
        if model.config.num_word_vectors:
            raise ValueError("A model with its own word vectors cannot be exported.")
        self.model = model.eval()
        self.elmo: ElmoModel = model if isinstance(model, ElmoModel) else model.elmo
        for name, boundary in zip(("begin", "end"), model.config.boundary_rows, strict=True):
            row = torch.tensor(boundary, device=model.device)
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
        return self.model.classify(vectors, mask, input_ids, run_over_positions)

    def read(self, input_ids: torch.Tensor, mask: torch.Tensor) -> list[torch.Tensor]:
        """All layers, (batch, words, hidden_size) each, with zeros where there is no word."""
        batch, words, _ = input_ids.shape
        lengths = mask.sum(dim=1, keepdim=True)
        positions = torch.arange(words + 2, device=mask.device)
        begins = self.begin.expand(batch, 1, -1)
        rows = torch.cat([begins, input_ids, torch.zeros_like(begins)], dim=1)
        rows = torch.where((positions == lengths + 1).unsqueeze(-1), self.end, rows)
        reverse = reversed_positions(positions, lengths + 2)

        encoder = self.elmo.token_encoder
        forward = encoder.encode_whole_rows(rows.flatten(0, 1)).unflatten(0, (batch, words + 2))
        layers = [torch.cat([forward, forward], dim=-1)]
        # time first, as the layers read rows of which none ends early
        streams = (forward.transpose(0, 1), gather_positions(forward, reverse).transpose(0, 1))
        for layer in self.elmo.layers:
            *streams, _, _ = layer(*streams, (None, None), None, None)
            forward, backward = (stream.transpose(0, 1) for stream in streams)
            layers.append(torch.cat([forward, gather_positions(backward, reverse)], dim=-1))
        return [layer[:, 1:-1] * mask.unsqueeze(-1) for layer in layers]


def reversed_positions(positions: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """(batch, time): the position of each token in its reversed sentence."""
    return torch.where(positions < lengths, lengths - 1 - positions, positions)


def gather_positions(hidden: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    return hidden.gather(1, positions.unsqueeze(-1).expand(-1, -1, hidden.shape[-1]))


def run_over_positions(lstm: nn.LSTM, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Like `run_over_words`, but it reads the padding as well."""
    positions = torch.arange(mask.shape[1], device=mask.device)
    reverse = reversed_positions(positions, mask.sum(dim=1, keepdim=True))
    forward = read_torch_lstm(lstm, hidden, "")
    backward = read_torch_lstm(lstm, gather_positions(hidden, reverse), "_reverse")
    return torch.cat([forward, gather_positions(backward, reverse)], dim=-1) * mask.unsqueeze(-1)


def read_torch_lstm(lstm: nn.LSTM, hidden: torch.Tensor, direction: str) -> torch.Tensor:
    """One direction of torch's LSTM, whose gates are in the order input, forget, cell, output."""
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

    # not `len`, which an exporter takes for a constant
    first = tuple(hidden.new_zeros(hidden.shape[0], lstm.hidden_size) for _ in range(2))
    _, outputs = scan(step, first, inputs.transpose(0, 1))
    return outputs.transpose(0, 1)
