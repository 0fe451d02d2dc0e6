# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The sizes and switches of an ELMo model, under transformers' names.

Covers every published model in the layouts of bilm-tf, AllenNLP and ELMoForManyLangs; the defaults
are the "original" model of Peters et al. (2018), https://arxiv.org/abs/1802.05365. The others' own
spelling of these values is known only to the conversion.
"""

import unicodedata
from dataclasses import field
from typing import Any

from huggingface_hub.dataclasses import strict
from huggingface_hub.errors import StrictDataclassError
from transformers.configuration_utils import PreTrainedConfig

from .characters import (
    BEGIN_SENTENCE,
    BYTE_MARKERS,
    DEFAULT_WIDTH,
    END_SENTENCE,
    NO_WORD,
    VOCAB_SIZE,
)
from .crf_constraints import SCHEMES, find_odd_label
from .pooling import POOLINGS

# Raised when a folder of the new version would mean something else to older code. Folders without
# a version are of version 1.
FORMAT_VERSION = 1
# A configuration may come from a stranger, and a model is built from it. The largest published
# models have a cell size of 4096, a vocabulary of 800,000 words and two layers.
MOST_PARTS, LARGEST_SIZE, LONGEST_TOKEN = 1000, 1 << 24, 4096
# the largest number of float16, in which models may run as well
LARGEST_CLIP = 65504


def _original_filters() -> list[list[int]]:
    return [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]


def _byte_markers() -> list[int]:
    return [*BYTE_MARKERS]


def _is_pair(pair: Any) -> bool:
    return (
        isinstance(pair, list)
        and len(pair) == 2
        and all(type(size) is int and 0 < size <= LARGEST_SIZE for size in pair)
    )


def _is_label(label: Any) -> bool:
    """Tags are printed, one per line: no tabs, ends of lines or commands for a terminal."""
    return isinstance(label, str) and not any(unicodedata.category(c) == "Cc" for c in label)


@strict
class ElmoConfig(PreTrainedConfig):
    r"""
    char_ids (`str`, *optional*, defaults to `"bytes"`):
        What the ids of a word's characters are: `"bytes"` of its UTF-8, code points by a
        `"dictionary"` (ELMoForManyLangs), or `"none"` if only words have ids (word-level bilm).
    vocab_size (`int`, *optional*, defaults to 262):
        Ids of characters: 262 for bytes, one more than the dictionary of characters has entries.
    char_markers (`list[int]`, *optional*):
        The ids of the characters for begin and end of sentence, begin and end of word and padding.
    word_vocab_size, word_embedding_size (`int`, *optional*, default to 0):
        With dictionaries, how many ids words have (one more than entries), and the width of a
        word's own vector in the token encoder; 0 if words are known by their characters alone.
    word_markers (`list[int]`, *optional*):
        The ids of the words for begin and end of sentence.
    char_embedding_size (`int`, *optional*, defaults to 16):
        Width of a character's vector.
    char_filters (`list[list[int]]`, *optional*):
        One `[characters, filters]` pair for each convolution over a word's characters.
    char_activation (`str`, *optional*, defaults to `"relu"`):
        `"relu"` or `"tanh"`, after the maximum over a word's positions.
    num_highway_layers (`int`, *optional*, defaults to 2):
        Highway layers after the convolutions; may be 0.
    use_char_projection (`bool`, *optional*):
        Whether a linear layer brings the filters, and a word's own vector if there is one, to
        `projection_size`; by default if the widths differ.
    max_characters_per_token (`int`, *optional*, defaults to 50):
        Characters of a row of `input_ids`, the two word markers included. The word's own id, if
        words have one, comes before them.
    cell_size (`int`, *optional*, defaults to 4096):
        Width of an LSTM's memory cell, per direction.
    projection_size (`int`, *optional*, defaults to 512):
        Width of an LSTM's output, per direction; `hidden_size` is twice this.
    use_cell_projection (`bool`, *optional*):
        Whether a linear layer brings the cell to `projection_size`; by default if they differ.
    cell_clip (`float`, *optional*, defaults to 3.0):
        Bound of the memory cell's values, or `None`.
    projection_clip (`float`, *optional*, defaults to 3.0):
        Bound of the projected output, or `None`; without a cell projection it has no effect.
    use_skip_connections (`bool`, *optional*, defaults to `True`):
        Whether layers after the first add their input to their output.
    hidden_dropout (`float`, *optional*, defaults to 0.0):
        Dropout on what each biLSTM layer reads and, in pretraining, on what the softmax reads.
    lm_vocab_size (`int`, *optional*):
        Words of the language model's softmax; only `ElmoForPreTraining` needs it.
    lm_begin_id, lm_end_id (`int`, *optional*, default to 0 and 1):
        The numbers of `<S>` and `</S>` among these words.
    num_negative_samples (`int`, *optional*, defaults to 8192):
        Words that pretraining compares a target with, instead of all; `None` for all.
    output_layer (`str` or `int`, *optional*, defaults to `"mix"`):
        What `last_hidden_state` is: `"mix"` (learned weights), `"mean"`, `"top"`, or the number of
        one layer, where 0 is the token layer.
    aligned_layer (`int`, *optional*):
        A layer with a linear map into a space that several languages share, which `output_layer`
        must name. `last_hidden_state` is then mapped; `hidden_states` are the biLM's own.
    num_output_representations (`int`, *optional*, defaults to 1):
        How many mixes, each with weights and a scale of its own.
    mix_layer_norm (`bool`, *optional*, defaults to `False`):
        Whether each layer is normalised before it is mixed. As in AllenNLP, mean and variance are
        taken over the whole batch, so a sentence's vectors then depend on its batch.
    output_dropout (`float`, *optional*, defaults to 0.0):
        Dropout on each representation.
    classifier_dropout (`float`, *optional*, defaults to 0.5):
        Dropout before a head's linear layer.
    concatenate_layers (`bool`, *optional*, defaults to `False`):
        Whether heads read all layers side by side instead of the mixes.
    task_lstm_size (`int`, *optional*, defaults to 0):
        Width, per direction, of an LSTM between ELMo and the token classifier; 0 for none.
    mix_after_task_lstm (`bool`, *optional*, defaults to `False`):
        Whether the last of several mixes joins after the task LSTM instead of before it.
    classifier_decoder (`str`, *optional*, defaults to `"softmax"`):
        How a token classifier chooses tags: `"softmax"` for each word alone, or `"crf"` for all
        words of a sentence together, with learned scores of the transitions between tags.
    crf_constraints (`str`, *optional*):
        `"BIO"`, `"IOB1"` or `"BIOUL"`: the scheme of the labels, in which a CRF then decodes only
        what is allowed; `None` for no constraints.
    num_word_vectors, word_vector_size (`int`, *optional*, default to 0):
        How many words have a vector of their own that token classifiers read beside ELMo's, and its
        width.
    classifier_pooling (`str`, *optional*, defaults to `"mean"`):
        `"mean"` or `"max"` over a sentence's words, for sequence classification.
    provenance (`dict[str, str]`, *optional*):
        Names and hashes of the files the weights were converted from.
    format_version (`int`, *optional*, defaults to 1):
        The version of the folder's format; a folder made by a newer elmo_hf is refused.
    """

    model_type = "elmo"
    # States are for the caller's next call, not for an evaluation loop to gather. It is a list
    # because Trainer adds to it.
    keys_to_ignore_at_inference = ["state"]

    char_ids: str = "bytes"
    vocab_size: int = VOCAB_SIZE
    char_markers: list | tuple = field(default_factory=_byte_markers)
    word_vocab_size: int = 0
    word_embedding_size: int = 0
    word_markers: list | tuple = field(default_factory=list)
    char_embedding_size: int = 16
    char_filters: list | tuple = field(default_factory=_original_filters)
    char_activation: str = "relu"
    num_highway_layers: int = 2
    use_char_projection: bool | None = None
    max_characters_per_token: int = DEFAULT_WIDTH
    cell_size: int = 4096
    projection_size: int = 512
    use_cell_projection: bool | None = None
    num_hidden_layers: int = 2
    cell_clip: float | int | None = 3.0
    projection_clip: float | int | None = 3.0
    use_skip_connections: bool = True
    hidden_dropout: float | int = 0.0
    lm_vocab_size: int | None = None
    lm_begin_id: int = 0
    lm_end_id: int = 1
    num_negative_samples: int | None = 8192
    output_layer: str | int = "mix"
    aligned_layer: int | None = None
    num_output_representations: int = 1
    mix_layer_norm: bool = False
    output_dropout: float | int = 0.0
    classifier_dropout: float | int = 0.5
    concatenate_layers: bool = False
    task_lstm_size: int = 0
    mix_after_task_lstm: bool = False
    classifier_decoder: str = "softmax"
    crf_constraints: str | None = None
    num_word_vectors: int = 0
    word_vector_size: int = 0
    classifier_pooling: str = "mean"
    provenance: dict[str, str] | None = None
    format_version: int = FORMAT_VERSION
    initializer_range: float = 0.02
    pad_token_id: int | None = NO_WORD
    bos_token_id: int | None = BEGIN_SENTENCE
    eos_token_id: int | list[int] | None = END_SENTENCE
    tie_word_embeddings: bool = False

    def __post_init__(self, **kwargs):
        # JSON knows only lists, and a configuration must equal itself after a round trip
        self.char_filters = [
            list(pair) if isinstance(pair, tuple) else pair for pair in self.char_filters
        ]
        self.char_markers, self.word_markers = list(self.char_markers), list(self.word_markers)
        if self.use_char_projection is None:
            self.use_char_projection = self.token_size != self.projection_size
        if self.use_cell_projection is None:
            self.use_cell_projection = self.cell_size != self.projection_size
        super().__post_init__(**kwargs)

    @property
    def hidden_size(self) -> int:
        """Width of `last_hidden_state`: both directions side by side."""
        return 2 * self.projection_size

    @property
    def num_filters(self) -> int:
        """Width of a word after the convolutions."""
        return (
            0
            if self.char_ids == "none"
            else sum(pair[-1] for pair in self.char_filters if _is_pair(pair))
        )

    @property
    def token_size(self) -> int:
        """Width of a word before the projection."""
        return self.word_embedding_size + self.num_filters

    @property
    def row_width(self) -> int:
        """Ids of a word in `input_ids`."""
        characters = 0 if self.char_ids == "none" else self.max_characters_per_token
        return characters + (1 if self.word_embedding_size else 0)

    @property
    def boundary_rows(self) -> list[list[int]]:
        """The rows of `<S>` and `</S>`, which the model puts around each sentence."""
        rows: list[list[int]] = [[], []]
        if self.word_embedding_size:
            rows = [[number] for number in self.word_markers]
        if self.char_ids != "none":
            begin, end, first, last, padding = self.char_markers
            rest = [last, *[padding] * (self.max_characters_per_token - 3)]
            rows = [[*row, first, own, *rest] for row, own in zip(rows, (begin, end), strict=True)]
        return rows

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs):
        kind = config_dict.get("model_type", cls.model_type)
        if kind != cls.model_type:
            raise ValueError(f"This is the configuration of a model of type {kind!r}, not of ELMo.")
        labels = config_dict.get("num_labels") or 0
        # names are made for so many labels before anything can be validated
        if type(labels) is not int or labels > LARGEST_SIZE // 16:
            raise ValueError(f"`num_labels` is {labels!r}, which is not a usable number of labels.")
        try:
            found = super().from_dict({"format_version": 1, **config_dict}, **kwargs)
            # what `from_pretrained` is asked to change is only set, and must be checked as well
            (found[0] if isinstance(found, tuple) else found).validate()
        except StrictDataclassError as error:
            # the cause is the sentence that names the value
            raise ValueError(str(error.__cause__ or error)) from error
        return found

    def validate_format(self):
        if self.format_version > FORMAT_VERSION:
            raise ValueError(
                f"The model has format version {self.format_version}, but this elmo_hf reads up to "
                f"{FORMAT_VERSION}; upgrade elmo_hf."
            )

    def validate_sizes(self):
        bounds = {
            "char_embedding_size": (1, LARGEST_SIZE),
            "num_highway_layers": (0, MOST_PARTS),
            "max_characters_per_token": (3, LONGEST_TOKEN),
            "cell_size": (1, LARGEST_SIZE),
            "projection_size": (1, LARGEST_SIZE),
            "num_hidden_layers": (1, MOST_PARTS),
            "num_output_representations": (1, MOST_PARTS),
            "task_lstm_size": (0, LARGEST_SIZE),
            "num_word_vectors": (0, LARGEST_SIZE),
            "word_vector_size": (1 if self.num_word_vectors else 0, LARGEST_SIZE),
            "vocab_size": (1, LARGEST_SIZE),
            "word_vocab_size": (0, LARGEST_SIZE),
            "word_embedding_size": (1 if self.word_vocab_size else 0, LARGEST_SIZE),
        }
        for name, (low, high) in bounds.items():
            if getattr(self, name) < low:
                raise ValueError(f"`{name}` is {getattr(self, name)} but must be at least {low}.")
            if getattr(self, name) > high:
                raise ValueError(f"`{name}` is {getattr(self, name)} but must be at most {high}.")
        if self.lm_vocab_size is not None and not 1 <= self.lm_vocab_size <= LARGEST_SIZE:
            raise ValueError(
                f"`lm_vocab_size` is {self.lm_vocab_size} but must be at least 1 and at most "
                f"{LARGEST_SIZE}, or None."
            )
        if self.num_negative_samples is not None and self.num_negative_samples < 1:
            raise ValueError(
                f"`num_negative_samples` is {self.num_negative_samples} but must be at least 1, or "
                "None."
            )

    def validate_ids(self):
        """Only with dictionaries are the ids not those of the bytes."""
        if self.char_ids == "bytes":
            if self.vocab_size != VOCAB_SIZE:
                raise ValueError(
                    f"`vocab_size` is {self.vocab_size} but ELMo has {VOCAB_SIZE} ids; leave it "
                    "out."
                )
            if list(self.char_markers) != _byte_markers() or self.word_vocab_size:
                raise ValueError(
                    "`char_markers` and `word_vocab_size` belong to a model with dictionaries, but "
                    "`char_ids` is 'bytes'; leave them out."
                )
            return
        if self.char_ids == "none" and not self.word_vocab_size:
            raise ValueError("`char_ids` is 'none', so `word_vocab_size` must be at least 1.")
        counted = {"char_markers": 5 if self.char_ids == "dictionary" else 0, "word_markers": 2}
        limits = {"char_markers": self.vocab_size, "word_markers": self.word_vocab_size}
        for name, count in counted.items():
            ids, limit = getattr(self, name), limits[name]
            if name == "word_markers" and not self.word_vocab_size:
                count = 0
            if len(ids) != count or not all(type(i) is int and 0 < i < limit for i in ids):
                raise ValueError(
                    f"`{name}` is {ids} but must be {count} ids from 1 to {limit - 1}."
                )

    def validate_filters(self):
        if self.char_ids == "none":
            return
        for pair in self.char_filters:
            if not _is_pair(pair):
                raise ValueError(
                    f"`char_filters` holds {pair}, which is not a pair [characters, filters]."
                )
        if len(self.char_filters) > MOST_PARTS:
            raise ValueError(f"`char_filters` holds more than {MOST_PARTS} convolutions.")
        if not self.char_filters:
            raise ValueError("`char_filters` is empty but a word needs at least one convolution.")
        widest = max(width for width, _ in self.char_filters)
        if widest > self.max_characters_per_token:
            raise ValueError(
                f"A character filter spans {widest} characters but tokens hold only "
                f"{self.max_characters_per_token}; raise `max_characters_per_token` or drop the "
                "filter."
            )

    def validate_labels(self):
        for label in (self.id2label or {}).values():
            if not _is_label(label):
                raise ValueError(
                    f"`id2label` holds {label!r}, but a tag is text without control characters."
                )

    def validate_constraints(self):
        scheme = self.crf_constraints
        if scheme is None:
            return
        if scheme not in SCHEMES:
            raise ValueError(
                f"`crf_constraints` is {scheme!r} but must be one of {', '.join(SCHEMES)}, or None."
            )
        if self.classifier_decoder != "crf":
            raise ValueError(
                f'`crf_constraints` is {scheme!r}, which requires `classifier_decoder` "crf".'
            )
        odd = find_odd_label(scheme, [*(self.id2label or {}).values()])
        if odd is not None:
            raise ValueError(
                f"`crf_constraints` is {scheme!r}, but {odd!r} is not a label of this scheme; "
                "leave it out."
            )

    def validate_projections(self):
        if not self.use_char_projection and self.token_size != self.projection_size:
            what = "filters" if self.char_ids == "bytes" else "numbers of a token"
            raise ValueError(
                f"`use_char_projection` is False, so the {self.token_size} {what} must equal "
                f"`projection_size`, which is {self.projection_size}."
            )
        if not self.use_cell_projection and self.cell_size != self.projection_size:
            raise ValueError(
                f"`use_cell_projection` is False, so `cell_size` {self.cell_size} must equal "
                f"`projection_size`, which is {self.projection_size}."
            )

    def validate_choices(self):
        for name, choices in {
            "char_activation": ("relu", "tanh"),
            "char_ids": ("bytes", "dictionary", "none"),
            "classifier_pooling": tuple(POOLINGS),
            "classifier_decoder": ("softmax", "crf"),
        }.items():
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"`{name}` is {getattr(self, name)!r} but must be one of {', '.join(choices)}."
                )
        for name in ("cell_clip", "projection_clip"):
            clip = getattr(self, name)
            if clip is not None and not 0 < clip <= LARGEST_CLIP:
                raise ValueError(
                    f"`{name}` is {clip} but must be positive and at most {LARGEST_CLIP}, or None "
                    "for no clipping."
                )
        for name in ("hidden_dropout", "output_dropout", "classifier_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(
                    f"`{name}` is {getattr(self, name)} but must be at least 0 and less than 1."
                )

    def validate_outputs(self):
        names = ("mix", "mean", "top")
        is_layer = (
            isinstance(self.output_layer, int) and 0 <= self.output_layer <= self.num_hidden_layers
        )
        if self.output_layer not in names and not is_layer:
            raise ValueError(
                f"`output_layer` is {self.output_layer!r} but must be one of {', '.join(names)} or "
                f"a layer from 0 to {self.num_hidden_layers}."
            )
        if self.num_output_representations > 1 and self.output_layer != "mix":
            raise ValueError(
                f"`num_output_representations` is {self.num_output_representations}, which only "
                f"makes sense for mixes, but `output_layer` is {self.output_layer!r}."
            )
        if self.aligned_layer is not None and (
            self.aligned_layer != self.output_layer or self.concatenate_layers
        ):
            raise ValueError(
                f"`aligned_layer` is {self.aligned_layer}, the only layer that has a map, so "
                f"`output_layer` must be {self.aligned_layer} without `concatenate_layers`, but "
                f"these are {self.output_layer!r} and {self.concatenate_layers}."
            )
        if self.mix_after_task_lstm and (
            not self.task_lstm_size
            or self.num_output_representations < 2
            or self.concatenate_layers
        ):
            raise ValueError(
                "`mix_after_task_lstm` needs a `task_lstm_size`, at least 2 "
                "`num_output_representations` and no `concatenate_layers`, but these are "
                f"{self.task_lstm_size}, {self.num_output_representations} and "
                f"{self.concatenate_layers}."
            )


__all__ = ["ElmoConfig"]
