# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The biLM (Peters et al. 2018, https://arxiv.org/abs/1802.05365): a character CNN under biLSTMs.

What is unusual here:
- `input_ids` is three-dimensional, (batch, words, characters). The model puts `<S>` and `</S>`
  around each sentence and takes them off again, so every public tensor is aligned with the words.
- Inside, there is no padding, and each distinct word of a batch is encoded once: `packing`.
- The LSTM's state is an argument and a result. Nothing is remembered between calls.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self, cast

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle
from transformers import initialization as init
from transformers.modeling_utils import PreTrainedModel
from transformers.utils import can_return_tuple, logging

from .characters import ByteRows, WordRows
from .configuration_elmo import ElmoConfig
from .crf_elmo import ElmoCrf
from .dictionaries import Dictionaries, DictionaryRows
from .initial_weights import identity
from .layers_elmo import (
    ElmoLayer,
    ElmoLinear,
    ElmoScalarMix,
    ElmoTokenEncoder,
    PackedLinear,
    normalize,
)
from .outputs_elmo import ElmoModelOutput, ElmoState
from .packing import ElmoPacking, distinct_rows
from .private_interfaces import find_file, is_loaded
from .remote_code import PushesCode
from .softmax_elmo import ElmoSoftmax

logger = logging.get_logger(__name__)


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


# what transformers' own code passes to any model
COMMON_ARGUMENTS = {"return_dict", "output_attentions", "use_cache", "num_items_in_batch"}


def refuse_unknown(arguments: dict[str, Any]) -> None:
    """A misspelt argument is an error, as in any Python function."""
    unknown = sorted(arguments.keys() - COMMON_ARGUMENTS)
    if unknown:
        raise TypeError(f"ELMo models have no argument {', '.join(map(repr, unknown))}.")


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switches dropout off, and on again afterwards if the model was in training."""
    training = model.training
    if training:
        model.eval()
    try:
        yield
    finally:
        if training:
            model.train()


class ElmoPreTrainedModel(PushesCode, PreTrainedModel):
    """What all ELMo models share; weights start as in bilm-tf."""

    config: ElmoConfig
    config_class = ElmoConfig
    base_model_prefix = "elmo"
    main_input_name = "input_ids"
    supports_gradient_checkpointing = True
    _no_split_modules = ["ElmoTokenEncoder", "ElmoLayer"]
    input_hook: RemovableHandle | None = None
    # a biLM can be used without the softmax it was trained with
    _keys_to_ignore_on_load_unexpected = [r"^softmax\."]

    @torch.no_grad()
    def _init_weights(self, module: nn.Module):
        super()._init_weights(module)
        if isinstance(module, ElmoScalarMix):
            init.zeros_(module.scalars)
            init.ones_(module.gamma)
        elif isinstance(module, ElmoCrf):
            # a new CRF is a softmax
            for scores in module.parameters():
                init.zeros_(scores)
        elif isinstance(module, nn.Embedding) and module.padding_idx is not None:
            init.uniform_(module.weight, -1.0, 1.0)
            if not is_loaded(module.weight):
                init.zeros_(module.weight[module.padding_idx])
        elif isinstance(module, nn.Conv1d):
            if self.config.char_activation == "relu":
                init.uniform_(module.weight, -0.05, 0.05)
            else:
                init.normal_(module.weight, std=module.weight[0].numel() ** -0.5)
        elif isinstance(module, ElmoSoftmax):
            init.normal_(module.weight, std=module.in_features**-0.5)
        elif isinstance(module, ElmoLinear):
            module.start(module)

    def prepare_for_inference(self) -> Self:
        """
        Puts the model into `eval` mode and copies its weights for fast products on a CPU.

        The copies are used only when gradients are off. They take as much memory as the weights
        and are dropped by `train()`. A copy is ignored once its weight was moved, replaced or
        written in place (an optimizer's step, `load_state_dict`); call this again then, and always
        after a write through `.data` or numpy, which cannot be noticed reliably. On other devices
        and in other precisions nothing is copied.
        """
        self.eval()
        for module in self.modules():
            if isinstance(module, (PackedLinear, ElmoLayer, ElmoTokenEncoder)):
                module.prepare()
        return self

    def train(self, mode: bool = True) -> Self:
        if mode:
            for module in self.modules():
                if isinstance(module, (PackedLinear, ElmoLayer, ElmoTokenEncoder)):
                    module.drop_copies()
        return super().train(mode)

    def enable_input_require_grads(self):
        """Makes what the layers read require gradients, for adapters on a frozen biLM."""

        def require(module: nn.Module, given: tuple, output: torch.Tensor) -> None:
            if torch.is_grad_enabled():
                output.requires_grad_(True)

        # Not on the character embeddings, as in transformers: a hook there would keep the encoder
        # from its faster tables.
        self.disable_input_require_grads()
        self.input_hook = self.base_model.token_encoder.register_forward_hook(require)

    def disable_input_require_grads(self):
        if self.input_hook is not None:
            self.input_hook.remove()
            self.input_hook = None

    def freeze_bilm(self):
        """Makes the biLM a fixed feature extractor: only the mixes and the heads are trained."""
        self.base_model.token_encoder.requires_grad_(False)
        self.base_model.layers.requires_grad_(False)
        if self.base_model.alignment is not None:
            self.base_model.alignment.requires_grad_(False)

    @property
    def word_rows(self) -> WordRows:
        """How words become the rows of `input_ids` that this model reads."""
        width = self.config.max_characters_per_token
        dictionaries = cast(ElmoModel, self.base_model).dictionaries
        if self.config.char_ids == "bytes":
            return ByteRows(width)
        if dictionaries is None:
            raise ValueError(
                "This model knows words by its dictionaries, which it was made without: set "
                "`model.base_model.dictionaries`, or load it with `from_pretrained`."
            )
        return DictionaryRows(dictionaries, width)

    def save_pretrained(self, save_directory: str | os.PathLike, *args, **kwargs):
        super().save_pretrained(save_directory, *args, **kwargs)
        dictionaries = cast(ElmoModel, self.base_model).dictionaries
        if dictionaries is not None:
            dictionaries.save(save_directory)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path, *args, **kwargs):
        loaded = super().from_pretrained(pretrained_model_name_or_path, *args, **kwargs)
        # with `output_loading_info` there is more than the model
        model = loaded[0] if isinstance(loaded, tuple) else loaded
        config, place = model.config, pretrained_model_name_or_path
        if config.char_ids != "bytes" and place is not None:
            dictionaries = Dictionaries.load(
                lambda name: find_file(place, name, **kwargs),
                with_characters=config.char_ids == "dictionary",
                with_words=config.word_vocab_size > 0,
            )
            dictionaries.check_config(config, place)
            model.base_model.dictionaries = dictionaries
        return loaded


class ElmoModel(ElmoPreTrainedModel):
    """
    The biLM, and the choice among its layers.

    `add_scalar_mix=False` is for heads that read the layers themselves; `last_hidden_state` is then
    the top layer.
    """

    # the mixes belong to a task: a biLM file has none, and they start the same each time
    _keys_to_ignore_on_load_missing = [r"^mixes\."]
    # of a model that knows its words by them; saved and loaded with it
    dictionaries: Dictionaries | None = None

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
        self.alignment = None
        if config.aligned_layer is not None:
            size = config.hidden_size
            self.alignment = ElmoLinear(size, size, identity, bias=False)
        self.dropout = nn.Dropout(config.output_dropout)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        encoder = self.token_encoder
        return cast(nn.Module, encoder.char_embeddings or encoder.word_embeddings)

    def set_input_embeddings(self, value: nn.Module):
        name = "word_embeddings" if self.config.char_ids == "none" else "char_embeddings"
        setattr(self.token_encoder, name, value)

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
            Character ids, as [`ElmoTokenizer`] makes them; before them a word's own id, where words
            have one.
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
        refuse_unknown(kwargs)
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
        positions = (number[packing.tokens], number[packing.backward_tokens])
        streams, new_state = self.run_layers(rows, positions, packing, state)
        tokens = (rows[positions[0]], rows[positions[1]])
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
        positions = (number[: batch * steps], number[batch * steps :])
        streams, state = self.run_layers(self.token_encoder(distinct), positions, packing, state)
        return streams[-1], state

    def check_shape(self, given: torch.Tensor, dimensions: int):
        characters = self.config.row_width
        if not len(given):
            raise ValueError("The batch is empty; ELMo reads at least one sentence.")
        if dimensions == 4 and self.config.word_vocab_size:
            raise ValueError("This model reads the ids of words as well; give `input_ids`.")
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
        boundaries = torch.tensor(self.config.boundary_rows, device=given.device)
        words = given.flatten(0, 1)[packing.words]
        if words.dim() == 3:
            embedded = torch.cat([words, self.get_input_embeddings()(boundaries)])
            number = torch.arange(len(embedded), device=given.device)
            return self.token_encoder.encode_embedded(embedded), number
        distinct, number = distinct_rows(torch.cat([words, boundaries]))
        return self.token_encoder(distinct), number

    def run_layers(
        self,
        rows: torch.Tensor,
        positions: tuple[torch.Tensor | None, torch.Tensor | None],
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
                forward, backward, positions, packing.batch_sizes, start
            )
            # from here on the rows are streams themselves
            positions = (None, None)
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
        """
        Representations: every mix, or one that is `mean`, `top` or the number of a layer, mapped
        if this is the layer that has a map.
        """
        if wanted == "mix":
            return [mix(layers) for mix in self.mixes]
        if wanted == "mean":
            return [torch.stack(layers).mean(dim=0)]
        number = len(layers) - 1 if wanted == "top" else cast(int, wanted)
        chosen = layers[number]
        if self.alignment is not None and number == self.config.aligned_layer:
            chosen = self.alignment(chosen)
        return [chosen]

    @torch.no_grad()
    def warm_state(self, tolerance: float = 1e-6, max_rounds: int = 1000) -> ElmoState:
        """
        The state, for one sentence, in which reading the empty sentence `<S> </S>` over and over
        settles.

        Passed as `state=`, it spares every sentence the cold start from zeros, which the published
        models hardly saw in training, and still gives a sentence the same vectors every time.
        """
        nothing = torch.zeros(1, 0, self.config.row_width, dtype=torch.long, device=self.device)
        state = self(nothing, return_dict=True).state
        for _ in range(max_rounds):
            previous, state = state, self(nothing, state=state, return_dict=True).state
            change = max((state[name] - previous[name]).abs().max().item() for name in state)
            if change <= tolerance:
                return state
        logger.warning(f"The state still changes by {change:.1e} after {max_rounds} rounds.")
        return state
