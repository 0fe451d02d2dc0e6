# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Sentences become rows of character ids, one row per word: `input_ids` is (batch, words, 50).

What is unusual for a Hugging Face tokenizer:

- a token is a whole word, so truncation, strides, padding and `model_max_length` count words, and
  no sentence is too long for an LSTM: it is truncated on request, without warnings;
- an absent word is a row of zeros, and the model, not the tokenizer, puts the `<S>` and `</S>` rows
  around a sentence;
- it is plain Python and yet `is_fast`, which is how pipelines ask whether a tokenizer knows offsets
  and word ids;
- nothing is remembered between calls: `datasets` fingerprints every attribute, and a cache would
  change them.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, cast

import numpy as np
from transformers import BatchEncoding, BatchFeature, PreTrainedTokenizer
from transformers.tokenization_utils_base import TruncationStrategy
from transformers.utils import (
    PaddingStrategy,
    TensorType,
    is_numpy_array,
    is_torch_tensor,
    to_numpy,
    to_py_obj,
)

from .characters import DEFAULT_WIDTH, NO_WORD, ByteRows, WordRows
from .dictionaries import CHARACTERS_FILE, WORDS_FILE, Dictionaries, DictionaryRows
from .remote_code import PushesCode
from .text_splitting import WHITESPACE, SplitFunction, SplitSentence, find_splitter
from .word_encoding import SentenceEncoding, Span, check_words, depth, pad_list

# What an absent word has in the lists that run along the words.
FILLS = {"attention_mask": 0, "special_tokens_mask": 1, "token_type_ids": 0}


class ElmoTokenizer(PushesCode, PreTrainedTokenizer):
    """
    Words to rows of character ids; only models with dictionaries have files of their own.

    Equal words of one call share one row in the lists that are returned; tensors share nothing.

    Args:
        max_characters_per_token (`int`, *optional*, defaults to 50):
            The width of a row. A word keeps its first `max_characters_per_token - 2` bytes.
            In a model with dictionaries these are code points, and the word's own id comes first.
        boundary_words (`bool`, *optional*, defaults to `True`):
            Whether the words `<S>` and `</S>` become the boundary rows that the biLM was trained
            with. If `False`, they are spelled like any other word.
        word_splitter (`str` or a function, *optional*, defaults to `"whitespace"`):
            How a string becomes words. `"whitespace"`: between blanks. `"english"`: as in Universal
            Dependencies. `"moses"`: as in the training text of the published English models
            (`pip install 'elmo_hf[moses]'`). `"characters"`: one word per character.
            `"spacy:LANG"`: by spaCy's rules for a language (`pip install 'elmo_hf[spacy]'`). A
            function takes a text and returns its words, or its sentences of words; it cannot be
            saved.
        language (`str`, *optional*, defaults to `"en"`):
            The language whose rules the Moses splitter follows.
        char_ids (`str`, *optional*, defaults to `"bytes"`):
            What the ids of a word's characters are: `"bytes"`, `"dictionary"` for code points as in
            ELMoForManyLangs, or `"none"` for words alone; see [`ElmoConfig`].
        char_dictionary, word_dictionary (`str`, *optional*):
            The dictionaries as files, unless they are given as `dictionaries`, which are a
            `Dictionaries`.
    """

    vocab_files_names = {"char_dictionary": CHARACTERS_FILE, "word_dictionary": WORDS_FILE}

    def __init__(
        self,
        max_characters_per_token: int = DEFAULT_WIDTH,
        boundary_words: bool = True,
        word_splitter: str | SplitFunction = WHITESPACE,
        language: str = "en",
        bos_token: str | None = None,
        eos_token: str | None = None,
        pad_token: str = "<pad>",
        char_ids: str = "bytes",
        char_dictionary: str | None = None,
        word_dictionary: str | None = None,
        **kwargs,
    ):
        if max_characters_per_token < 3:
            raise ValueError(
                f"`max_characters_per_token` is {max_characters_per_token}; a row needs at least 3."
            )
        find_splitter(word_splitter)
        # not an argument by name: transformers saves those, and this one is in files of its own
        dictionaries: Dictionaries | None = kwargs.pop("dictionaries", None)
        if dictionaries is None and char_ids != "bytes":
            files = {CHARACTERS_FILE: char_dictionary, WORDS_FILE: word_dictionary}
            with_words = char_ids == "none" or word_dictionary is not None
            dictionaries = Dictionaries.load(files.get, char_ids == "dictionary", with_words)
        self.rows: WordRows = ByteRows(max_characters_per_token)
        if dictionaries is not None:
            self.rows = DictionaryRows(dictionaries, max_characters_per_token)
            char_ids = dictionaries.char_ids
        self.dictionaries = dictionaries
        begin, end = self.rows.boundary_words
        self.max_characters_per_token = max_characters_per_token
        self.boundary_words = boundary_words
        self.language = language
        super().__init__(
            max_characters_per_token=max_characters_per_token,
            boundary_words=boundary_words,
            word_splitter=word_splitter,
            language=language,
            bos_token=bos_token or begin,
            eos_token=eos_token or end,
            pad_token=pad_token,
            char_ids=char_ids,
            char_dictionary=char_dictionary,
            word_dictionary=word_dictionary,
            **kwargs,
        )
        # only now: the parent class takes a function for one of its own methods
        self.word_splitter = word_splitter

    @property
    def is_fast(self) -> bool:
        return True

    @property
    def vocab_size(self) -> int:
        return len(self.rows.vocabulary())

    def get_vocab(self) -> dict[str, int]:
        return {**self.rows.vocabulary(), **self._added_tokens_encoder}

    def _convert_token_to_id(self, token: str) -> int | list[int]:
        return self.rows.names[token] if token in self.rows.names else self._row(token)

    def _convert_id_to_token(self, index: int) -> str:
        return {number: name for name, number in self.rows.vocabulary().items()}[index]

    def convert_ids_to_tokens(self, ids: Any, skip_special_tokens: bool = False) -> Any:
        """The name of an id, the word of a row, or the words of a sentence of rows."""
        ids = to_py_obj(ids)
        if depth(ids) == 0:
            return super().convert_ids_to_tokens(ids)
        if depth(ids) == 1:
            return self._word(ids)
        shown = [row for row in ids if not (skip_special_tokens and self._is_special(row))]
        return [self._word(row) for row in shown]

    def decode(self, token_ids: Any, skip_special_tokens: bool = False, **kwargs) -> Any:
        """The text of a row or a sentence, or the texts of a batch, always without absent words."""
        ids = to_py_obj(token_ids)
        if depth(ids) == 3:
            return [self.decode(rows, skip_special_tokens, **kwargs) for rows in ids]
        if depth(ids) > 0:
            ids = [row for row in ([ids] if depth(ids) == 1 else ids) if any(row)]
        return self._decode(ids, skip_special_tokens=skip_special_tokens, **kwargs)

    def tokenize(self, text: str, **kwargs) -> list[str]:  # type: ignore[override]
        return [word for sentence in self.split(text) for word in sentence.words]

    def split(self, text: str) -> Iterable[SplitSentence]:
        """The sentences of a text, with the span of each word, as `word_splitter` finds them."""
        return find_splitter(self.word_splitter, self.language)(text)

    def save_pretrained(self, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(self.word_splitter, str):
            raise ValueError(
                "`word_splitter` is a function, which cannot be saved; set it to a name first, as "
                f"in tokenizer.word_splitter = {WHITESPACE!r}."
            )
        # it may have been set since
        self.init_kwargs["word_splitter"] = self.word_splitter
        return super().save_pretrained(*args, **kwargs)

    def save_vocabulary(
        self, save_directory: str, filename_prefix: str | None = None
    ) -> tuple[str, ...]:
        """The dictionaries, if there are any."""
        if self.dictionaries is None:
            return ()
        prefix = f"{filename_prefix}-" if filename_prefix else ""
        return tuple(self.dictionaries.save(save_directory, prefix))

    def _row(self, word: str) -> list[int]:
        if self.boundary_words and word in self.rows.boundary_words:
            return self.rows.boundaries[word]
        return self.rows.encode(word)

    def _is_special(self, row: list[int]) -> bool:
        return not any(row) or self.rows.is_boundary(row)

    def _input_ids(
        self, encodings: list[SentenceEncoding], as_array: bool
    ) -> list[list[list[int]]] | np.ndarray:
        """Each distinct word is encoded once; an array gathers rows, faster than from lists."""
        distinct = dict.fromkeys(chain.from_iterable(entry.words for entry in encodings))
        encode, boundaries = self.rows.encode, self.rows.boundaries
        row_of = {word: encode(word) for word in distinct}
        row_of.update({word: self._row(word) for word in row_of.keys() & boundaries.keys()})
        nothing = [NO_WORD] * self.rows.width
        if not as_array:
            return [
                pad_list([row_of[word] for word in entry.words], nothing, entry.absent)
                for entry in encodings
            ]
        table = np.array([nothing, *row_of.values()], dtype=np.int64)
        number_of = {word: number for number, word in enumerate(row_of, start=1)}
        numbers = [
            pad_list([number_of[word] for word in entry.words], 0, entry.absent)
            for entry in encodings
        ]
        return table[np.array(numbers, dtype=np.int64)]  # (sentences, words, characters)

    def _word(self, row: list[int]) -> str:
        return self.rows.decode(row) if any(row) else self.pad_token

    def _read(
        self, text: Any, is_split_into_words: bool
    ) -> tuple[list[list[str]], list[list[Span]], bool]:
        """The words of each sentence, their spans, and whether the sentences came as a batch."""
        if not isinstance(text, Sequence) or (is_split_into_words and isinstance(text, str)):
            wanted = (
                "a list of words, or of such lists"
                if is_split_into_words
                else "a string, or a list of strings"
            )
            raise ValueError(f"Got {text!r}; pass {wanted}.")
        if is_split_into_words:
            batched = len(text) > 0 and isinstance(text[0], (list, tuple))
            words = [
                check_words(given, number)
                for number, given in enumerate(text if batched else [list(text)])
            ]
            # like the Rust tokenizers: a span of a word that was given counts inside this word
            return words, [[(0, len(word)) for word in sentence] for sentence in words], batched
        batched = not isinstance(text, str)
        texts = text if batched else [text]
        for number, sentence in enumerate(texts):
            if not isinstance(sentence, str):
                remedy = (
                    "pass `is_split_into_words=True`"
                    if isinstance(sentence, (list, tuple))
                    else "give a string"
                )
                raise ValueError(f"Sentence {number} of the batch is {sentence!r}; {remedy}.")
        split = [list(self.split(sentence)) for sentence in cast(list[str], texts)]
        words = [[word for sentence in some for word in sentence.words] for some in split]
        spans = [[span for sentence in some for span in sentence.spans] for some in split]
        return words, spans, batched

    def _windows(self, length: int, limit: int | None, stride: int, overflow: bool) -> list[Span]:
        """What is kept of a sentence: one window, or with `overflow` as many as cover it."""
        for name, value in (("max_length", limit), ("stride", stride)):
            if value is not None and value < 0:
                raise ValueError(f"`{name}` is {value} but must be at least 0.")
        if overflow and limit is not None and stride >= limit:
            raise ValueError(
                f"`stride` is {stride}; choose it smaller than `max_length`, which is {limit}."
            )
        if limit is None or length <= limit:
            return [(0, length)]
        starts = range(0, length - stride, limit - stride) if overflow else [0]
        windows = [(start, min(start + limit, length)) for start in starts]
        if self.truncation_side == "left":
            return [(length - end, length - start) for start, end in windows]
        return windows

    def _absent(
        self,
        lengths: list[int],
        strategy: PaddingStrategy,
        max_length: int | None,
        multiple: int | None,
        side: str | None,
    ) -> list[tuple[int, int]]:
        """How many absent words go before and after each sentence."""
        side = side or self.padding_side
        if side not in ("left", "right"):
            raise ValueError(f"`padding_side` is {side!r}; choose 'left' or 'right'.")
        if strategy == PaddingStrategy.DO_NOT_PAD:
            return [(0, 0)] * len(lengths)
        if multiple is not None and multiple < 1:
            raise ValueError(f"`pad_to_multiple_of` is {multiple} but must be at least 1.")
        target = max(lengths, default=0) if strategy == PaddingStrategy.LONGEST else max_length or 0
        target += -target % (multiple or 1)
        missing = [max(target - length, 0) for length in lengths]
        return [(0, count) if side == "right" else (count, 0) for count in missing]

    def _encode_plus(  # type: ignore[override]
        self,
        text: Any,
        text_pair: Any = None,
        *,
        padding_strategy: PaddingStrategy = PaddingStrategy.DO_NOT_PAD,
        truncation_strategy: TruncationStrategy = TruncationStrategy.DO_NOT_TRUNCATE,
        max_length: int | None = None,
        stride: int = 0,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: str | TensorType | None = None,
        return_token_type_ids: bool | None = None,
        return_attention_mask: bool | None = None,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        return_length: bool = False,
        **kwargs,
    ) -> BatchEncoding:
        if text_pair is not None:
            raise ValueError("ELMo reads single sentences; encode the `text_pair` separately.")
        limit = None if truncation_strategy == TruncationStrategy.DO_NOT_TRUNCATE else max_length
        words, spans, batched = self._read(text, is_split_into_words)
        windows = [
            (sample, start, end)
            for sample, sentence in enumerate(words)
            for start, end in self._windows(len(sentence), limit, stride, return_overflowing_tokens)
        ]
        sizes = [end - start for _, start, end in windows]
        absent = self._absent(sizes, padding_strategy, max_length, pad_to_multiple_of, padding_side)
        pad_token = self.pad_token  # a property, looked up once
        encodings = [
            SentenceEncoding(words[at][start:end], spans[at][start:end], start, missing, pad_token)
            for (at, start, end), missing in zip(windows, absent, strict=True)
        ]
        wanted = {
            "token_type_ids": return_token_type_ids,
            "attention_mask": self._wants_mask(return_attention_mask),
            "special_tokens_mask": return_special_tokens_mask,
            "offset_mapping": return_offsets_mapping,
            "length": return_length,
        }
        data = self._fields(encodings, wanted, return_tensors)
        if return_overflowing_tokens:
            data["overflow_to_sample_mapping"] = [sample for sample, _, _ in windows]
        if not batched and return_tensors is None and not return_overflowing_tokens:
            data = {key: value[0] for key, value in data.items()}
        return BatchEncoding(data, encodings, tensor_type=return_tensors)  # type: ignore[arg-type]

    def _fields(
        self,
        encodings: list[SentenceEncoding],
        wanted: dict[str, bool | None],
        return_tensors: str | TensorType | None,
    ) -> dict[str, Any]:
        """`input_ids` and all other wanted fields: lists, or tensors where this is possible."""
        lengths = [len(entry.words) + sum(entry.absent) for entry in encodings]
        # sentences of several lengths stay lists: `BatchEncoding` then asks for padding
        as_tensors = return_tensors is not None and len(set(lengths)) == 1
        make = {
            "token_type_ids": lambda: [[0] * length for length in lengths],
            "attention_mask": lambda: [entry.attention_mask for entry in encodings],
            "special_tokens_mask": lambda: [entry.special_tokens_mask for entry in encodings],
            "offset_mapping": lambda: [entry.offsets for entry in encodings],
            "length": lambda: lengths,
        }
        data: dict[str, Any] = {"input_ids": self._input_ids(encodings, as_tensors)}
        data |= {name: make[name]() for name in make if wanted[name]}
        return self._as_tensors(data, lengths, return_tensors) if as_tensors else data

    def _wants_mask(self, wanted: bool | None) -> bool:
        return "attention_mask" in self.model_input_names if wanted is None else wanted

    def _as_tensors(
        self, data: dict[str, Any], lengths: list[int], kind: str | TensorType | None
    ) -> dict[str, Any]:
        """Sentences of one length as tensors; `BatchEncoding` would copy the arrays."""
        data = {key: np.asarray(value, dtype=np.int64) for key, value in data.items()}
        if "offset_mapping" in data:
            # no words have no spans either, but a batch of them has the axis of begin and end
            data["offset_mapping"] = data["offset_mapping"].reshape(len(lengths), lengths[0], 2)
        return dict(BatchFeature(data, tensor_type=kind))

    def pad(
        self,
        encoded_inputs: Any,
        padding: bool | str | PaddingStrategy = True,
        max_length: int | None = None,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_attention_mask: bool | None = None,
        return_tensors: str | TensorType | None = None,
        verbose: bool = True,
    ) -> BatchEncoding:
        """Pads a sentence or a batch, given as a dictionary, or as a list of one per sentence."""
        alone = not isinstance(encoded_inputs, (list, tuple))
        if not alone and encoded_inputs:
            keys = encoded_inputs[0].keys()
            encoded_inputs = {key: [example[key] for example in encoded_inputs] for key in keys}
        if "input_ids" not in encoded_inputs:
            raise ValueError(
                f"Got {list(encoded_inputs)} to pad; give encodings that have `input_ids`."
            )
        ids = encoded_inputs["input_ids"]
        alone = alone and depth(ids) < 3
        if return_tensors is None:
            first = ids[0] if isinstance(ids, (list, tuple)) and ids else ids
            return_tensors = (
                "pt" if is_torch_tensor(first) else "np" if is_numpy_array(first) else None
            )
        sentences = [self._as_rows(rows) for rows in ([ids] if alone else ids)]
        strategy, _, max_length, _ = self._get_padding_truncation_strategies(
            padding=padding, max_length=max_length, verbose=verbose
        )
        lengths = list(map(len, sentences))
        absent = self._absent(lengths, strategy, max_length, pad_to_multiple_of, padding_side)
        features = {key: value for key, value in encoded_inputs.items() if key != "input_ids"}
        data = {key: to_py_obj([value] if alone else value) for key, value in features.items()}
        if self._wants_mask(return_attention_mask):
            data.setdefault("attention_mask", [[1] * length for length in lengths])
        for key in data.keys() & FILLS.keys():
            data[key] = [
                pad_list(values, FILLS[key], missing)
                for values, missing in zip(data[key], absent, strict=True)
            ]
        padded = [
            np.pad(rows, [missing, (0, 0)]) for rows, missing in zip(sentences, absent, strict=True)
        ]
        data["input_ids"] = padded if return_tensors else [rows.tolist() for rows in padded]
        if alone:
            data = {key: value[0] for key, value in data.items()}
        return BatchEncoding(data, tensor_type=return_tensors)

    def _as_rows(self, sentence: Any) -> np.ndarray:
        width = self.rows.width
        rows = to_numpy(sentence).astype(np.int64)
        if rows.size and rows.shape[1:] != (width,):
            raise ValueError(
                f"Got `input_ids` of shape {rows.shape} for a sentence; give rows of {width} ids."
            )
        return rows.reshape(-1, width)
