# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`Vocabulary` of AllenNLP: words and labels with their numbers, in namespaces."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

DEFAULT_PADDING_TOKEN = "@@PADDING@@"
DEFAULT_OOV_TOKEN = "@@UNKNOWN@@"
NON_PADDED_NAMESPACES = ("*tags", "*labels")
NAMESPACE_FILE = "non_padded_namespaces.txt"


def for_namespace(setting: Any, namespace: str) -> Any:
    """A setting that may differ from namespace to namespace."""
    return setting.get(namespace) if isinstance(setting, Mapping) else setting


class Vocabulary:
    """
    In a namespace, numbers 0 and 1 are padding and unknown words, unless its name fits one of
    `non_padded_namespaces`.
    """

    default_implementation = "default"

    def __init__(
        self,
        counter: Mapping[str, Mapping[str, int]] | None = None,
        min_count: Mapping[str, int] | None = None,
        max_vocab_size: int | Mapping[str, int] | None = None,
        non_padded_namespaces: Iterable[str] = NON_PADDED_NAMESPACES,
        tokens_to_add: Mapping[str, Sequence[str]] | None = None,
    ):
        self._non_padded_namespaces = set(non_padded_namespaces)
        self._padding_token, self._oov_token = DEFAULT_PADDING_TOKEN, DEFAULT_OOV_TOKEN
        self._token_to_index: dict[str, dict[str, int]] = {}
        self._index_to_token: dict[str, dict[int, str]] = {}
        for namespace, counts in (counter or {}).items():
            least = for_namespace(min_count or {}, namespace) or 1
            # the most frequent first; among equals the order in which they came
            words = sorted(counts.items(), key=lambda pair: pair[1], reverse=True)
            for word, count in words[: for_namespace(max_vocab_size, namespace)]:
                if count >= least:
                    self.add_token_to_namespace(word, namespace)
        for namespace, extra in (tokens_to_add or {}).items():
            self.add_tokens_to_namespace(extra, namespace)

    @classmethod
    def from_instances(cls, instances: Iterable[Any], *args: Any, **kwargs: Any) -> "Vocabulary":
        """Of all that the fields of some instances count."""
        counter: dict[str, Counter[str]] = defaultdict(Counter)
        for instance in instances:
            instance.count_vocab_items(counter)
        return cls(counter, *args, **kwargs)

    @classmethod
    def empty(cls) -> "Vocabulary":
        return cls()

    def is_padded(self, namespace: str) -> bool:
        return not any(fnmatch(namespace, pattern) for pattern in self._non_padded_namespaces)

    def _open(self, namespace: str) -> tuple[dict[str, int], dict[int, str]]:
        if namespace not in self._token_to_index:
            start = [self._padding_token, self._oov_token] if self.is_padded(namespace) else []
            self._token_to_index[namespace] = {word: n for n, word in enumerate(start)}
            self._index_to_token[namespace] = dict(enumerate(start))
        return self._token_to_index[namespace], self._index_to_token[namespace]

    def add_token_to_namespace(self, token: str, namespace: str = "tokens") -> int:
        if not isinstance(token, str):
            raise ValueError(f"A vocabulary holds strings, not {token!r}.")
        numbers, tokens = self._open(namespace)
        if token not in numbers:
            number = len(numbers)
            numbers[token], tokens[number] = number, token
        return numbers[token]

    def add_tokens_to_namespace(
        self, tokens: Iterable[str], namespace: str = "tokens"
    ) -> list[int]:
        return [self.add_token_to_namespace(token, namespace) for token in tokens]

    def get_index_to_token_vocabulary(self, namespace: str = "tokens") -> dict[int, str]:
        return self._open(namespace)[1]

    def get_token_to_index_vocabulary(self, namespace: str = "tokens") -> dict[str, int]:
        return self._open(namespace)[0]

    def get_token_index(self, token: str, namespace: str = "tokens") -> int:
        numbers, _ = self._open(namespace)
        # without a word for what is unknown it is an error
        return numbers[token] if token in numbers else numbers[self._oov_token]

    def get_token_from_index(self, index: int, namespace: str = "tokens") -> str:
        return self._open(namespace)[1][index]

    def get_vocab_size(self, namespace: str = "tokens") -> int:
        return len(self._open(namespace)[0])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Vocabulary):
            return vars(self) == vars(other)
        return NotImplemented

    def __str__(self) -> str:
        sizes = ", ".join(f"{name} {len(words)}" for name, words in self._token_to_index.items())
        return f"Vocabulary: {sizes or 'empty'}"

    def save_to_files(self, directory: str | os.PathLike) -> None:
        """One file per namespace, without the padding, as AllenNLP writes them."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        write_lines(folder / NAMESPACE_FILE, sorted(self._non_padded_namespaces))
        for namespace, tokens in self._index_to_token.items():
            first = 1 if self.is_padded(namespace) else 0
            words = [tokens[number] for number in range(first, len(tokens))]
            write_lines(folder / f"{namespace}.txt", words)

    @classmethod
    def from_files(cls, directory: str | os.PathLike) -> "Vocabulary":
        folder = Path(directory)
        vocabulary = cls(non_padded_namespaces=read_lines(folder / NAMESPACE_FILE))
        for path in sorted(folder.glob("*.txt")):
            if path.name != NAMESPACE_FILE:
                vocabulary._number_by_line(path.stem, read_lines(path))
        return vocabulary

    def _number_by_line(self, namespace: str, tokens: Sequence[str]) -> None:
        """The lines of a file are in the order of the rows of somebody's embeddings."""
        words = [self._padding_token, *tokens] if self.is_padded(namespace) else tokens
        self._token_to_index[namespace] = {word: number for number, word in enumerate(words)}
        self._index_to_token[namespace] = dict(enumerate(words))


def write_lines(path: Path, words: Iterable[str]) -> None:
    # a line is a word, so a line end inside one has another name
    text = "".join(word.replace("\n", "@@NEWLINE@@") + "\n" for word in words)
    path.write_text(text, "utf-8", newline="")


def read_lines(path: Path) -> list[str]:
    # an empty line in the middle is a word as well, and only this end of lines counts
    lines = path.read_bytes().decode("utf-8").split("\n")
    return [word.replace("@@NEWLINE@@", "\n") for word in lines[: -1 if not lines[-1] else None]]
