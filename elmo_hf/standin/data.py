# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The few data classes of AllenNLP that make ELMo's inputs: tokens, fields, instances, batches."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, NamedTuple

import torch

from elmo_hf.standin.errors import ConfigurationError
from elmo_hf.standin.settings import is_version_2
from elmo_hf.standin.vocabulary import Vocabulary


class Token(NamedTuple):
    """A word and what a tokenizer may say of it."""

    text: str | None = None
    idx: int | None = None
    lemma_: str | None = None
    pos_: str | None = None
    tag_: str | None = None
    dep_: str | None = None
    ent_type_: str | None = None
    text_id: int | None = None

    def __str__(self) -> str:
        return str(self.text)

    def __repr__(self) -> str:
        return str(self)


class TextField:
    """Tokens, and the indexers that make numbers of them."""

    def __init__(self, tokens: list[Token], token_indexers: Mapping[str, Any] | None = None):
        # whatever has a text will do, such as the tokens of spaCy
        if not all(hasattr(token, "text") for token in tokens):
            raise ConfigurationError(f"A TextField is made of tokens, not of {tokens!r:.100}.")
        self.tokens = tokens
        self._token_indexers = token_indexers or {}
        self._indexed: dict[str, dict[str, Any]] | None = None

    def __iter__(self) -> Iterator[Token]:
        return iter(self.tokens)

    def __getitem__(self, index: int) -> Token:
        return self.tokens[index]

    def __len__(self) -> int:
        return len(self.tokens)

    def sequence_length(self) -> int:
        return len(self.tokens)

    def count_vocab_items(self, counter: Mapping[str, MutableMapping[str, int]]) -> None:
        for indexer in self._token_indexers.values():
            for token in self.tokens:
                indexer.count_vocab_items(token, counter)

    def index(self, vocab: Vocabulary) -> None:
        # an indexer of AllenNLP 0.9 is also told under which name
        self._indexed = {
            name: indexer.tokens_to_indices(self.tokens, vocab, *([] if is_version_2() else [name]))
            for name, indexer in self._token_indexers.items()
        }

    def _known(self) -> dict[str, dict[str, Any]]:
        if self._indexed is None:
            raise ConfigurationError("Call `index(vocabulary)` on a field before it is padded.")
        return self._indexed

    def get_padding_lengths(self) -> dict[str, int]:
        """How many tokens each indexer has made."""
        lengths: dict[str, int] = {}
        for name, indexed in self._known().items():
            indexer = self._token_indexers[name]
            if is_version_2():
                found = indexer.get_padding_lengths(indexed)
                lengths |= {f"{name}___{key}": length for key, length in found.items()}
                continue
            least = indexer.get_token_min_padding_length()
            lengths |= {f"{key}_length": max(len(rows), least) for key, rows in indexed.items()}
            lengths["num_tokens"] = max(lengths.values())
        return lengths

    def as_tensor(self, padding_lengths: Mapping[str, int]) -> dict[str, Any]:
        tensors: dict[str, Any] = {}
        for name, indexed in self._known().items():
            indexer = self._token_indexers[name]
            if is_version_2():
                start = f"{name}___"
                wanted = {
                    key.removeprefix(start): length
                    for key, length in padding_lengths.items()
                    if key.startswith(start)
                }
                tensors[name] = indexer.as_padded_tensor_dict(indexed, wanted)
            else:
                wanted = {key: padding_lengths[f"{key}_length"] for key in indexed}
                tensors |= indexer.as_padded_tensor(indexed, wanted, padding_lengths)
        return tensors

    def batch_tensors(self, tensor_list: list[dict[str, Any]]) -> dict[str, Any]:
        return stack(tensor_list)


def stack(parts: list[Any]) -> Any:
    """Tensors, or dictionaries of tensors, with one more axis in front."""
    if isinstance(parts[0], Mapping):
        return {key: stack([part[key] for part in parts]) for key in parts[0]}
    return torch.stack(parts)


class Instance(Mapping):
    """Fields by name."""

    def __init__(self, fields: dict[str, Any]):
        self.fields = fields
        self.indexed = False

    def __getitem__(self, key: str) -> Any:
        return self.fields[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def add_field(self, field_name: str, field: Any, vocab: Vocabulary | None = None) -> None:
        self.fields[field_name] = field
        if self.indexed:
            field.index(vocab)

    def count_vocab_items(self, counter: Mapping[str, MutableMapping[str, int]]) -> None:
        for field in self.fields.values():
            field.count_vocab_items(counter)

    def index_fields(self, vocab: Vocabulary) -> None:
        """Once; later calls do nothing."""
        if not self.indexed:
            self.indexed = True
            for field in self.fields.values():
                field.index(vocab)

    def get_padding_lengths(self) -> dict[str, dict[str, int]]:
        return {name: field.get_padding_lengths() for name, field in self.fields.items()}

    def as_tensor_dict(
        self, padding_lengths: Mapping[str, Mapping[str, int]] | None = None
    ) -> dict[str, Any]:
        lengths = padding_lengths or self.get_padding_lengths()
        return {name: field.as_tensor(lengths[name]) for name, field in self.fields.items()}


class Batch:
    """Instances that become tensors together."""

    def __init__(self, instances: Iterable[Instance]):
        self.instances = list(instances)
        kinds = [
            {name: type(field) for name, field in instance.fields.items()}
            for instance in self.instances
        ]
        if any(other != kinds[0] for other in kinds):
            raise ConfigurationError("The instances of a batch must have the same fields.")

    def __iter__(self) -> Iterator[Instance]:
        return iter(self.instances)

    def __len__(self) -> int:
        return len(self.instances)

    def index_instances(self, vocab: Vocabulary) -> None:
        for instance in self.instances:
            instance.index_fields(vocab)

    def get_padding_lengths(self) -> dict[str, dict[str, int]]:
        """The largest of each length."""
        largest: dict[str, dict[str, int]] = defaultdict(dict)
        for instance in self.instances:
            for name, lengths in instance.get_padding_lengths().items():
                for key, length in lengths.items():
                    largest[name][key] = max(length, largest[name].get(key, 0))
        return dict(largest)

    def as_tensor_dict(
        self,
        padding_lengths: Mapping[str, Mapping[str, int]] | None = None,
        verbose: bool = False,
    ) -> dict[str, Any]:
        """Tensors by field; `padding_lengths` are lengths to use instead of the largest."""
        wanted = padding_lengths or {}
        lengths = {
            name: {**found, **wanted.get(name, {})}
            for name, found in self.get_padding_lengths().items()
        }
        parts = [instance.as_tensor_dict(lengths) for instance in self.instances]
        fields = self.instances[0].fields
        return {name: fields[name].batch_tensors([part[name] for part in parts]) for name in fields}


class WhitespaceTokenizer:
    """Splits at blanks."""

    def tokenize(self, text: str) -> list[Token]:
        return [Token(word) for word in text.split()]

    def batch_tokenize(self, texts: Iterable[str]) -> list[list[Token]]:
        return [self.tokenize(text) for text in texts]
