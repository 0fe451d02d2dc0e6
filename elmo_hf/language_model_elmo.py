# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The biLM as a language model: each direction predicts the word it reads next."""

import os
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import nn
from transformers.utils import can_return_tuple

from .bilm_elmo import ElmoModel, ElmoPreTrainedModel, refuse_unknown, word_mask
from .configuration_elmo import ElmoConfig
from .outputs_elmo import ElmoForPreTrainingOutput, ElmoState
from .packing import ElmoPacking
from .private_interfaces import find_file
from .softmax_elmo import ElmoSoftmax
from .word_vocabulary import FILE_NAME, WordVocabulary


class ElmoForPreTraining(ElmoPreTrainedModel):
    """
    The biLM as a language model: each direction predicts the word it reads next.

    The forward LSTM reads `<S> w1 .. wn` and predicts `w1 .. wn </S>`; the backward one reads
    `</S> wn .. w1` and predicts `wn .. w1 <S>`. Both share one softmax over words. `vocabulary`
    holds these words; it is saved and loaded with the model.
    """

    # otherwise Trainer would leave the division by the words of all accumulated batches to us
    accepts_loss_kwargs = False

    def __init__(self, config: ElmoConfig):
        super().__init__(config)
        if config.lm_vocab_size is None:
            raise ValueError("`lm_vocab_size` is None, but a language model needs a vocabulary.")
        self.elmo = ElmoModel(config, add_scalar_mix=False)
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.softmax = ElmoSoftmax(config.projection_size, config.lm_vocab_size)
        self.vocabulary: WordVocabulary | None = None
        self.post_init()

    @property
    def num_negatives(self) -> int | None:
        """Words that a target is compared with in training; None for all of them."""
        count = self.config.num_negative_samples
        # drawing most of a vocabulary costs more than using all of it
        return None if count is None or 2 * count >= self.softmax.out_features else count

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        input_ids_backward: torch.Tensor | None = None,
        labels_backward: torch.Tensor | None = None,
        state: ElmoState | None = None,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> ElmoForPreTrainingOutput:
        r"""
        input_ids (`(batch, words, characters)`):
            Whole sentences, to which the model adds `<S>` and `</S>`; or, with
            `input_ids_backward`, a packed stream that has them inside.
        labels (`(batch, words)`, *optional*):
            The words' numbers, for sentences; the next words' numbers, for a stream. -100 counts
            for nothing.
        input_ids_backward, labels_backward (*optional*):
            The backward direction's own stream, in its reading order, and the words that come next
            in it. In training mode negative words may be sampled; otherwise the softmax is full.
        """
        refuse_unknown(kwargs)
        if input_ids_backward is None:
            return self.read_sentences(
                input_ids, attention_mask, labels, state, output_hidden_states
            )
        if labels is None or labels_backward is None:
            raise ValueError("Streams need both `labels` and `labels_backward`.")
        streams, new_state = self.elmo.read_streams(input_ids, input_ids_backward, state)
        # time steps first, as the streams lie
        targets = (labels.T.flatten(), labels_backward.T.flatten())
        losses = self.mean_losses(zip(streams, targets, strict=True))
        return pretraining_output(losses, new_state)

    def mean_losses(self, pairs: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
        """Mean -log P(target) of each direction, from its vectors and targets."""
        hidden, targets = (torch.stack(parts) for parts in zip(*pairs, strict=True))
        hidden = self.dropout(hidden)  # (directions, n, projection_size)
        negatives = self.num_negatives if self.training else None
        if negatives is not None:
            losses = self.softmax.sampled_losses(hidden, targets, negatives)
        else:
            losses = self.softmax.losses(hidden.flatten(0, 1), targets.flatten()).view_as(targets)
        return losses.sum(dim=1) / (targets >= 0).sum(dim=1).clamp(min=1)

    def read_sentences(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None,
        labels: torch.Tensor | None,
        state: ElmoState | None,
        output_hidden_states: bool | None,
    ) -> ElmoForPreTrainingOutput:
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        mask, packing, layers, new_state = self.read(input_ids, attention_mask, state)
        if labels is None:
            logits = [
                self.softmax(align(hidden, goal, packing, mask)) * mask.unsqueeze(-1)
                for hidden, goal in predictions(layers[-1], packing)
            ]
            output = ElmoForPreTrainingOutput(
                logits_forward=logits[0], logits_backward=logits[1], state=new_state
            )
        else:
            words = self.token_numbers(labels, packing)
            losses = self.mean_losses(
                (hidden, words[goal]) for hidden, goal in predictions(layers[-1], packing)
            )
            output = pretraining_output(losses, new_state)
        if output_hidden_states:
            output.hidden_states = tuple(
                packing.unpack(layer, mask.shape, boundaries=False) for layer in layers
            )
        return output

    def read(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None,
        state: ElmoState | None = None,
    ) -> tuple[torch.Tensor, ElmoPacking, list[torch.Tensor], ElmoState]:
        """Whole sentences: where there are words, and all layers as forward streams."""
        self.elmo.check_shape(input_ids, dimensions=3)
        mask = word_mask(input_ids, attention_mask)
        return mask, *self.elmo.read_sentences(input_ids, mask, state)

    def token_numbers(self, labels: torch.Tensor, packing: ElmoPacking) -> torch.Tensor:
        """The number in the vocabulary of each token of the forward stream."""
        boundaries = labels.new_tensor([self.config.lm_begin_id, self.config.lm_end_id])
        return torch.cat([labels.flatten()[packing.words], boundaries])[packing.tokens]

    def save_pretrained(self, save_directory: str | os.PathLike, *args, **kwargs):
        super().save_pretrained(save_directory, *args, **kwargs)
        if self.vocabulary is not None:
            self.vocabulary.save(Path(save_directory) / FILE_NAME)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path, *args, **kwargs):
        loaded = super().from_pretrained(pretrained_model_name_or_path, *args, **kwargs)
        # with `output_loading_info` there is more than the model
        model = loaded[0] if isinstance(loaded, tuple) else loaded
        path = find_file(pretrained_model_name_or_path, FILE_NAME, **kwargs)
        if path is not None:
            model.vocabulary = WordVocabulary.load(path)
            for name, value in model.vocabulary.config_fields().items():
                if getattr(model.config, name) != value:
                    raise ValueError(
                        f"{str(path)!r} does not belong to this model: by its lines `{name}` is "
                        f"{value}, but config.json says {getattr(model.config, name)}."
                    )
        return loaded


def pretraining_output(losses: torch.Tensor, state: ElmoState) -> ElmoForPreTrainingOutput:
    forward, backward = losses
    return ElmoForPreTrainingOutput((forward + backward) / 2, forward, backward, state=state)


def predictions(top: torch.Tensor, packing: ElmoPacking) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """For each direction: the vectors that predict a token, and these tokens' positions."""
    forward, backward = top.chunk(2, dim=-1)
    # a token is predicted by what comes before it, and by what comes after it
    return [
        (forward[packing.current], packing.following),
        (backward[packing.following], packing.current),
    ]


def align(
    stream: torch.Tensor,
    positions: torch.Tensor,
    packing: ElmoPacking,
    mask: torch.Tensor,
    boundaries: bool = False,
) -> torch.Tensor:
    """Rows that belong at `positions` of the forward stream, on the (batch, words) grid."""
    everywhere = stream.new_zeros(len(packing.tokens), stream.shape[1])
    return packing.unpack(everywhere.index_copy(0, positions, stream), mask.shape, boundaries)
