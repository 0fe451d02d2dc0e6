# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""ELMo (Peters et al. 2018, https://arxiv.org/abs/1802.05365): a character CNN under a deep biLSTM.

What is unusual here:
- `input_ids` is three-dimensional, (batch, words, characters). The model puts `<S>` and `</S>`
  around each sentence and takes them off again, so every public tensor is aligned with the words.
- Inside, there is no padding, and each distinct word of a batch is encoded once: `layers_elmo`.
- The LSTM's state is an argument and a result. Nothing is remembered between calls.
"""

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self, cast

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import initialization as init
from transformers.modeling_outputs import ModelOutput, SequenceClassifierOutput
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import cached_file, can_return_tuple, logging

from .characters import BEGIN_SENTENCE, END_SENTENCE, NO_WORD, boundary_row, encode_word
from .configuration_elmo import ElmoConfig
from .layers_elmo import (
    ElmoLayer,
    ElmoLinear,
    ElmoPacking,
    ElmoScalarMix,
    ElmoTokenEncoder,
    ElmoWordVectors,
    distinct_rows,
    normalize,
)
from .remote_code import PushesCode
from .softmax_elmo import LOGITS_AT_ONCE, ElmoSoftmax
from .word_vocabulary import FILE_NAME, SPECIAL_WORDS, WordVocabulary

logger = logging.get_logger(__name__)


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
    last_hidden_state: one vector a word, (batch, words, hidden_size), by `config.output_layer`.
    hidden_states: the token layer beside itself, then each biLSTM layer; each of the same shape.
    representations: all of them, (batch, words, num_output_representations, hidden_size).
    state: the LSTMs' state after each sentence, for the next call of who wants it carried on.
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
        from what stands left of it and from what stands right of it, (batch, words,
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


class SentenceScore(NamedTuple):
    """Natural logarithms of the probabilities that the two directions give to a sentence."""

    # of each word and of `</S>`, from what stands left of it
    forward: list[float]
    # of `<S>` and of each word, from what stands right of it
    backward: list[float]

    @property
    def perplexity_forward(self) -> float:
        return math.exp(-sum(self.forward) / len(self.forward))

    @property
    def perplexity_backward(self) -> float:
        return math.exp(-sum(self.backward) / len(self.backward))

    @property
    def perplexity(self) -> float:
        """exp of the mean of both directions' mean losses."""
        return math.sqrt(self.perplexity_forward * self.perplexity_backward)


class Substitute(NamedTuple):
    """A word that fits a place, and the logarithms of its probability there."""

    word: str
    # the mean of the two directions
    score: float
    forward: float
    backward: float


@dataclass
class ElmoTokenClassifierOutput(ModelOutput):
    """
    loss: cross-entropy over the words whose label is not -100.
    logits: scores before the softmax, (batch, words, num_labels).
    hidden_states, state: as in [`ElmoModelOutput`].
    """

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    state: ElmoState | None = None


def one_input(input_ids: torch.Tensor | None, inputs_embeds: torch.Tensor | None) -> torch.Tensor:
    """Whichever of the two was given."""
    if input_ids is not None and inputs_embeds is None:
        return input_ids
    if inputs_embeds is not None and input_ids is None:
        return inputs_embeds
    raise ValueError("Give exactly one of `input_ids` and `inputs_embeds`.")


def word_mask(given: torch.Tensor, attention_mask: torch.Tensor | None) -> torch.Tensor:
    """(batch, words): where there is a word. `given` is `input_ids` or `inputs_embeds`."""
    if attention_mask is None:
        return given.flatten(2).any(dim=-1)
    if attention_mask.shape != given.shape[:2]:
        raise ValueError(
            f"`attention_mask` has shape {tuple(attention_mask.shape)} but the input has "
            f"{tuple(given.shape[:2])} sentences and words."
        )
    return attention_mask.bool()


class ElmoPreTrainedModel(PushesCode, PreTrainedModel):
    """What all ELMo models share; weights start as in bilm-tf."""

    config: ElmoConfig
    config_class = ElmoConfig
    base_model_prefix = "elmo"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _no_split_modules = ["ElmoTokenEncoder", "ElmoLayer"]
    # a biLM serves without its softmax, and a mix of its layers starts the same each time
    _keys_to_ignore_on_load_unexpected = [r"^softmax\."]
    _keys_to_ignore_on_load_missing = [r"^(elmo\.)?mixes\."]

    @torch.no_grad()
    def _init_weights(self, module: nn.Module):
        super()._init_weights(module)
        if isinstance(module, ElmoScalarMix):
            init.zeros_(module.scalars)
            init.ones_(module.gamma)
        elif isinstance(module, nn.Embedding) and module.padding_idx is not None:
            init.uniform_(module.weight, -1.0, 1.0)
            if not getattr(module.weight, "_is_hf_initialized", False):
                init.zeros_(module.weight[module.padding_idx])
        elif isinstance(module, nn.Conv1d):
            if self.config.char_activation == "relu":
                init.uniform_(module.weight, -0.05, 0.05)
            else:
                init.normal_(module.weight, std=module.weight[0].numel() ** -0.5)
        elif isinstance(module, ElmoSoftmax):
            init.normal_(module.weight, std=module.in_features**-0.5)
        elif isinstance(module, ElmoLinear):
            self._init_linear(module)

    def _init_linear(self, linear: ElmoLinear):
        if linear.role in ("carry", "transform", "char_projection"):
            init.normal_(linear.weight, std=linear.in_features**-0.5)
            if linear.role == "carry":
                init.constant_(linear.bias, -2.0)
        elif linear.role == "cell_projection":
            init.xavier_uniform_(linear.weight)
        elif linear.role in ("gates", "recurrent"):
            # Glorot's bound for the matrix of both inputs, which TensorFlow keeps in one piece
            bound = (6 / (2 * linear.in_features + linear.out_features)) ** 0.5
            init.uniform_(linear.weight, -bound, bound)
            if linear.bias is not None:
                # TensorFlow adds this 1 to the forget gate at run time
                start = linear.bias.new_tensor([0.0, 1.0, 0.0, 0.0])
                init.copy_(linear.bias, start.repeat_interleave(linear.out_features // 4))

    def prepare_for_inference(self) -> Self:
        """
        Puts the model into `eval` mode and copies its weights for fast products on a CPU.

        The copies serve while gradients are off. They take as much memory again as the
        weights, are dropped by `train()`, and are passed over when a weight has changed or moved
        since: call this again then. Elsewhere than on a CPU in float32 nothing is copied.
        """
        self.eval()
        for module in self.modules():
            if isinstance(module, (ElmoLinear, ElmoLayer, ElmoTokenEncoder)):
                module.prepare(True)
        return self

    def train(self, mode: bool = True) -> Self:
        if mode:
            for module in self.modules():
                if isinstance(module, (ElmoLinear, ElmoLayer, ElmoTokenEncoder)):
                    module.prepare(False)
        return super().train(mode)

    def freeze_bilm(self):
        """Makes the biLM a fixed feature extractor: only the mixes and the heads go on learning."""
        self.base_model.token_encoder.requires_grad_(False)
        self.base_model.layers.requires_grad_(False)


class ElmoModel(ElmoPreTrainedModel):
    """
    The biLM, and the choice among its layers.

    `add_scalar_mix=False` is for heads that read the layers themselves; `last_hidden_state` is then
    the top layer.
    """

    def __init__(self, config: ElmoConfig, add_scalar_mix: bool = True):
        super().__init__(config)
        self.token_encoder = ElmoTokenEncoder(config)
        layers = range(config.num_hidden_layers)
        self.layers = nn.ModuleList(ElmoLayer(config, index) for index in layers)
        self.output_layer = config.output_layer
        if self.output_layer == "mix" and not add_scalar_mix:
            self.output_layer = "top"
        mixes = range(config.num_output_representations if self.output_layer == "mix" else 0)
        self.mixes = nn.ModuleList(ElmoScalarMix(config) for _ in mixes)
        self.dropout = nn.Dropout(config.output_dropout)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.token_encoder.char_embeddings

    def set_input_embeddings(self, value: nn.Module):
        self.token_encoder.char_embeddings = cast(nn.Embedding, value)

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        state: ElmoState | None = None,
        keep_sentence_boundaries: bool = False,
        output_hidden_states: bool | None = None,
        **kwargs,
    ) -> ElmoModelOutput:
        r"""
        input_ids (`(batch, words, characters)`):
            Character ids, as [`ElmoTokenizer`] makes them.
        attention_mask (`(batch, words)`, *optional*):
            1 where there is a word. By default, wherever `input_ids` has any character.
        inputs_embeds (`(batch, words, characters, char_embedding_size)`, *optional*):
            Embedded characters instead of `input_ids`.
        state (*optional*):
            What an earlier call returned as `state`, for as many sentences or for one. By default
            the LSTMs start from zeros: a sentence's vectors do not depend on what was read before.
        keep_sentence_boundaries (`bool`, *optional*, defaults to `False`):
            Whether the outputs keep `<S>` and `</S>` and are `words + 2` long.
        """
        given = one_input(input_ids, inputs_embeds)
        self.check_shape(given, dimensions=3 if inputs_embeds is None else 4)
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        mask = word_mask(given, attention_mask)
        packing, layers, new_state = self.read_sentences(given, mask, state)

        def unpack(streams: list[torch.Tensor]) -> list[torch.Tensor]:
            boundaries = keep_sentence_boundaries
            return [packing.unpack(stream, mask.shape, boundaries) for stream in streams]

        hidden_states = unpack(layers)
        mixed = unpack(normalize(layers)) if self.config.mix_layer_norm else hidden_states
        representations = self.represent(mixed)
        return ElmoModelOutput(
            last_hidden_state=representations[:, :, 0],
            hidden_states=tuple(hidden_states) if output_hidden_states else None,
            representations=representations,
            state=new_state,
        )

    def read_sentences(
        self, given: torch.Tensor, mask: torch.Tensor, state: ElmoState | None
    ) -> tuple[ElmoPacking, list[torch.Tensor], ElmoState]:
        """All layers of whole sentences as forward streams, `<S>` and `</S>` included."""
        packing = ElmoPacking.of(mask)
        rows, number = self.embed_tokens(given, packing)
        return packing, *self.read_rows(rows, number, packing, state)

    def read_rows(
        self,
        rows: torch.Tensor,
        number: torch.Tensor,
        packing: ElmoPacking,
        state: ElmoState | None,
    ) -> tuple[list[torch.Tensor], ElmoState]:
        """The same from vectors, and which of them each live word, `<S>` and `</S>` has."""
        places = (number[packing.tokens], number[packing.backward_tokens])
        streams, new_state = self.run_layers(rows, places, packing, state)
        tokens = (rows[places[0]], rows[places[1]])
        # with a `device_map` the layers may lie on several devices
        layers = [packing.join(*pair).to(rows.device) for pair in (tokens, *streams)]
        return layers, new_state

    def read_streams(
        self, forward_ids: torch.Tensor, backward_ids: torch.Tensor, state: ElmoState | None
    ) -> tuple[tuple[torch.Tensor, torch.Tensor], ElmoState]:
        """
        The top layer of two packed streams, each (batch, steps, characters) in its own reading
        order, with the boundary rows inside: (steps * batch, projection_size), time steps first.
        """
        for ids in (forward_ids, backward_ids):
            self.check_shape(ids, dimensions=3)
        batch, steps, _ = forward_ids.shape
        packing = ElmoPacking.of_streams(batch, steps, forward_ids.device)
        both = torch.cat([ids.transpose(0, 1).flatten(0, 1) for ids in (forward_ids, backward_ids)])
        distinct, number = distinct_rows(both)
        places = (number[: batch * steps], number[batch * steps :])
        streams, state = self.run_layers(self.token_encoder(distinct), places, packing, state)
        return streams[-1], state

    def check_shape(self, given: torch.Tensor, dimensions: int):
        characters = self.config.max_characters_per_token
        if not len(given):
            raise ValueError("The batch is empty; ELMo reads at least one sentence.")
        if given.dim() != dimensions or given.shape[2] != characters:
            expected = f"(batch, words, {characters}{', char_embedding_size' * (dimensions - 3)})"
            raise ValueError(
                f"The input has shape {tuple(given.shape)} but ELMo reads {expected}; make it with "
                "`ElmoTokenizer`."
            )

    def embed_tokens(
        self, given: torch.Tensor, packing: ElmoPacking
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Vectors (rows, projection_size), and which of them each word, `<S>` and `</S>` has."""
        width = self.config.max_characters_per_token
        markers = (BEGIN_SENTENCE, END_SENTENCE)
        boundaries = torch.tensor([boundary_row(m, width) for m in markers], device=given.device)
        words = given.flatten(0, 1)[packing.words]
        if words.dim() == 3:
            embedded = torch.cat([words, self.token_encoder.char_embeddings(boundaries)])
            number = torch.arange(len(embedded), device=given.device)
            return self.token_encoder.encode_embedded(embedded), number
        distinct, number = distinct_rows(torch.cat([words, boundaries]))
        return self.token_encoder(distinct), number

    def run_layers(
        self,
        rows: torch.Tensor,
        places: tuple[torch.Tensor | None, torch.Tensor | None],
        packing: ElmoPacking,
        state: ElmoState | None,
    ) -> tuple[list[tuple[torch.Tensor, torch.Tensor]], ElmoState]:
        """
        The two streams of each layer, (tokens, projection_size) in their reading order, and the
        state after them.
        """
        streams, new_outputs, new_cells = [], [], []
        forward, backward = rows, rows
        for index, layer in enumerate(self.layers):
            start = self.layer_state(state, index, packing)
            forward, backward, outputs, cells = layer(
                forward, backward, places, packing.batch_sizes, start
            )
            # from here on the rows are streams themselves
            places = (None, None)
            streams.append((forward, backward))
            new_outputs.append(outputs.to(rows.device))
            new_cells.append(cells.to(rows.device))
        restore = packing.order.argsort()
        outputs, cells = (
            torch.stack(parts).movedim(2, 0)[restore] for parts in (new_outputs, new_cells)
        )
        return streams, ElmoState(outputs, cells)

    def layer_state(
        self, state: ElmoState | None, index: int, packing: ElmoPacking
    ) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The state a layer starts from, longest sentence first; None for zeros."""
        if state is None:
            return None
        batch = len(packing.order)
        for part in state.values():
            if len(part) not in (1, batch):
                raise ValueError(f"`state` is of {len(part)} sentences but the batch has {batch}.")
        outputs, cells = (part[:, index].expand(batch, -1, -1) for part in state.values())
        return outputs[packing.order].transpose(0, 1), cells[packing.order].transpose(0, 1)

    def represent(self, layers: list[torch.Tensor]) -> torch.Tensor:
        """All representations, (batch, words, num_output_representations, hidden_size)."""
        return self.dropout(torch.stack(self.combine(layers, self.output_layer), dim=2))

    def combine(self, layers: list[torch.Tensor], wanted: str | int) -> list[torch.Tensor]:
        """Representations: every mix, or one that is `mean`, `top` or the number of a layer."""
        if wanted == "mix":
            return [mix(layers) for mix in self.mixes]
        if wanted == "mean":
            return [torch.stack(layers).mean(dim=0)]
        return [layers[-1] if wanted == "top" else layers[cast(int, wanted)]]

    @torch.no_grad()
    def warm_state(self, tolerance: float = 1e-6, max_rounds: int = 1000) -> ElmoState:
        """
        The state, for one sentence, in which reading the empty sentence `<S> </S>` over and over
        settles.

        Passed as `state=`, it spares every sentence the cold start from zeros, which the published
        models hardly saw in training, and still gives a sentence the same vectors every time.
        """
        width = self.config.max_characters_per_token
        nothing = torch.zeros(1, 0, width, dtype=torch.long, device=self.device)
        state = self(nothing, return_dict=True).state
        for _ in range(max_rounds):
            previous, state = state, self(nothing, state=state, return_dict=True).state
            change = max((state[name] - previous[name]).abs().max().item() for name in state)
            if change <= tolerance:
                return state
        logger.warning(f"The state still changes by {change:.1e} after {max_rounds} rounds.")
        return state


class ElmoForPreTraining(ElmoPreTrainedModel):
    """
    The biLM as a language model: each direction predicts the word it reads next.

    The forward LSTM reads `<S> w1 .. wn` and predicts `w1 .. wn </S>`; the backward one reads
    `</S> wn .. w1` and predicts `wn .. w1 <S>`. Both share one softmax over words. `vocabulary`
    holds these words; it is saved and loaded with the model.
    """

    # Trainer would else leave it to us to divide by the words of all accumulated batches
    accepts_loss_kwargs = False

    def __init__(self, config: ElmoConfig):
        super().__init__(config)
        if config.lm_vocab_size is None:
            raise ValueError("`lm_vocab_size` is None; a language model needs to know its words.")
        self.elmo = ElmoModel(config, add_scalar_mix=False)
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.softmax = ElmoSoftmax(config.projection_size, config.lm_vocab_size)
        self.vocabulary: WordVocabulary | None = None
        self.post_init()

    @property
    def num_negatives(self) -> int | None:
        """Words a target is compared with in training; None for all of them."""
        count, vocab_size = self.config.num_negative_samples, self.softmax.out_features
        # to draw most of a vocabulary costs more than to use all of it
        if count is not None and 2 * count >= vocab_size:
            logger.warning_once(
                f"{vocab_size} words are few beside {count} negative samples: training uses the "
                "full softmax."
            )
            return None
        return count

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

    @torch.no_grad()
    def score(
        self, sentences: Sequence[Sequence[str]], batch_size: int = 32
    ) -> list[SentenceScore]:
        """
        How probable each word of tokenised sentences is for each direction, by the full softmax.

        Every sentence is read by itself. A word the vocabulary lacks counts as `<UNK>`.
        """
        self.eval()
        vocabulary = self.known_words()
        scores = []
        for start in range(0, len(sentences), batch_size):
            some = [list(words) for words in sentences[start : start + batch_size]]
            input_ids, labels = self.encode(some, vocabulary)
            mask, packing, layers, _ = self.read(input_ids, labels >= 0)
            numbers = self.token_numbers(labels, packing)
            grids = []
            for hidden, goal in predictions(layers[-1], packing):
                chances = -self.softmax.losses(hidden, numbers[goal]).unsqueeze(1)
                grids.append(align(chances, goal, packing, mask, boundaries=True).squeeze(-1))
            for words, forward, backward in zip(some, *(g.tolist() for g in grids), strict=True):
                # the columns are `<S>`, the words, `</S>`
                size = len(words)
                scores.append(SentenceScore(forward[1 : size + 2], backward[: size + 1]))
        return scores

    @torch.no_grad()
    def substitutes(self, sentence: Sequence[str], k: int = 10) -> list[list[Substitute]]:
        """The `k` words that fit best at each place, by what stands left and right of it."""
        self.eval()
        vocabulary = self.known_words()
        input_ids, labels = self.encode([list(sentence)], vocabulary)
        mask, packing, layers, _ = self.read(input_ids, labels >= 0)
        forward, backward = (
            align(*part, packing, mask)[0] for part in predictions(layers[-1], packing)
        )
        specials = [vocabulary.number(word) for word in SPECIAL_WORDS]
        places = max(1, LOGITS_AT_ONCE // self.softmax.out_features)
        found = []
        for left, right in zip(forward.split(places), backward.split(places), strict=True):
            chances = [self.softmax(hidden).log_softmax(dim=-1) for hidden in (left, right)]
            mean = (chances[0] + chances[1]) / 2
            mean[:, specials] = float("-inf")
            best, numbers = mean.topk(min(k, len(vocabulary) - len(specials)))
            parts = [best, *(chance.gather(1, numbers) for chance in chances)]
            for chosen, *values in zip(numbers.tolist(), *(p.tolist() for p in parts), strict=True):
                found.append(
                    [
                        Substitute(vocabulary.words[number], *value)
                        for number, *value in zip(chosen, *values, strict=True)
                    ]
                )
        return found

    def known_words(self) -> WordVocabulary:
        if self.vocabulary is None:
            raise ValueError(
                "This model has no vocabulary: set `model.vocabulary = WordVocabulary.load(FILE)`."
            )
        return self.vocabulary

    def encode(
        self, sentences: list[list[str]], vocabulary: WordVocabulary
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Character ids and word numbers of tokenised sentences, padded with zeros and -100."""
        width, longest = self.config.max_characters_per_token, max(map(len, sentences))
        input_ids = torch.full((len(sentences), longest, width), NO_WORD)
        labels = torch.full((len(sentences), longest), -100)
        for number, words in enumerate(sentences):
            if words:
                rows = [encode_word(word, width) for word in words]
                input_ids[number, : len(words)] = torch.tensor(rows)
                labels[number, : len(words)] = torch.tensor([*map(vocabulary.number, words)])
        return input_ids.to(self.device), labels.to(self.device)

    def save_pretrained(self, save_directory: str | os.PathLike, *args, **kwargs):
        super().save_pretrained(save_directory, *args, **kwargs)
        if self.vocabulary is not None:
            self.vocabulary.save(Path(save_directory) / FILE_NAME)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path, *args, **kwargs):
        loaded = super().from_pretrained(pretrained_model_name_or_path, *args, **kwargs)
        # with `output_loading_info` there is more than the model
        model = loaded[0] if isinstance(loaded, tuple) else loaded
        hub = {name: kwargs[name] for name in HUB_ARGUMENTS if name in kwargs}
        path = cached_file(
            pretrained_model_name_or_path,
            FILE_NAME,
            _raise_exceptions_for_missing_entries=False,
            **hub,
        )
        if path is not None:
            model.vocabulary = WordVocabulary.load(path)
        return loaded


# what `from_pretrained` is told about a repository, for the vocabulary beside the weights
HUB_ARGUMENTS = (
    "cache_dir",
    "force_download",
    "local_files_only",
    "revision",
    "subfolder",
    "token",
)


def pretraining_output(losses: torch.Tensor, state: ElmoState) -> ElmoForPreTrainingOutput:
    forward, backward = losses
    return ElmoForPreTrainingOutput((forward + backward) / 2, forward, backward, state=state)


def predictions(top: torch.Tensor, packing: ElmoPacking) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """For each direction: the vectors that predict a token, and these tokens' places."""
    forward, backward = top.chunk(2, dim=-1)
    # what stands before a token predicts it, and so does what stands after it
    return [
        (forward[packing.current], packing.following),
        (backward[packing.following], packing.current),
    ]


def align(
    stream: torch.Tensor,
    places: torch.Tensor,
    packing: ElmoPacking,
    mask: torch.Tensor,
    boundaries: bool = False,
) -> torch.Tensor:
    """Rows that belong at `places` of the forward stream, on the (batch, words) grid."""
    everywhere = stream.new_zeros(len(packing.tokens), stream.shape[1])
    return packing.unpack(everywhere.index_copy(0, places, stream), mask.shape, boundaries)


def read_words(
    elmo: ElmoModel, output_hidden_states: bool | None, **inputs
) -> tuple[torch.Tensor, ElmoModelOutput]:
    """
    What a head stands on, all layers or all mixes, (batch, words, vectors, hidden_size), and the
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
    """Dropout and one linear layer over each word, with a task LSTM before it on request."""

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
        if labels is not None:
            loss = self.loss_function(logits, labels, self.config, **kwargs)
        return ElmoTokenClassifierOutput(loss, logits, output.hidden_states, output.state)

    def classify(
        self,
        vectors: torch.Tensor,
        mask: torch.Tensor,
        input_ids: torch.Tensor | None,
        run_lstm: Callable[[nn.LSTM, torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """
        (batch, words, vectors, hidden_size) -> (batch, words, num_labels); `run_lstm` may stand for
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
        self, logits: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The numbers of the words' tags and their probabilities, both (batch, words)."""
        probabilities, numbers = logits.float().softmax(dim=-1).max(dim=-1)
        return numbers, probabilities


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


def pool_words(hidden: torch.Tensor, mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """(batch, words, size) -> (batch, size) over the live words; zeros where there are none."""
    live = mask.unsqueeze(-1)
    if pooling == "mean" or not mask.shape[1]:
        return hidden.masked_fill(~live, 0).sum(dim=1) / live.sum(dim=1).clamp(min=1)
    lowest = torch.finfo(hidden.dtype).min
    return hidden.masked_fill(~live, lowest).amax(dim=1).masked_fill(~live.any(dim=1), 0)


__all__ = [
    "ElmoForPreTraining",
    "ElmoForSequenceClassification",
    "ElmoForTokenClassification",
    "ElmoModel",
    "ElmoPreTrainedModel",
    "ElmoState",
]
