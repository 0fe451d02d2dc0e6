# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Words and characters by number, for models that know them by dictionaries.

ELMoForManyLangs reads a word as the number of the word and the numbers of its code points; a
word-level bilm model reads the number of the word alone. In a row of ids the word comes first and
every number is one higher than in its dictionary, because 0 is "no word".

The dictionaries come from strangers and are data: what is read is bounded and checked.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from .text_lines import read_lines

CHARACTERS_FILE, WORDS_FILE = "char.dic", "word.dic"
# The largest published dictionary has 140,000 words, the largest vocabulary of bilm-tf 800,000.
MOST_ENTRIES = 1 << 21
LARGEST_FILE = 1 << 27
# the key of a line that has none, as in ELMoForManyLangs
NO_KEY = "\u3000"
MANY_LANGS, BILM = ("<bos>", "<eos>", "<oov>"), ("<S>", "</S>", "<UNK>")
# ELMoForManyLangs confuses the two markers of a word, in training and ever after
CHAR_MARKERS = ("<bos>", "<eos>", "<eow>", "<bow>", "<pad>", "<oov>")


class Dictionary:
    """Keys, numbered by their places in the list; of a key that comes twice the last counts."""

    def __init__(self, keys: Sequence[str]):
        self.keys = list(keys)
        self.numbers = {key: number for number, key in enumerate(self.keys)}

    def __len__(self) -> int:
        return len(self.keys)

    def require(self, names: Sequence[str], what: str) -> list[int]:
        """The numbers of keys that must be there."""
        missing = [name for name in names if name not in self.numbers]
        if missing:
            raise ValueError(f"The dictionary of {what} has no entry {', '.join(missing)}.")
        return [self.numbers[name] for name in names]

    @classmethod
    def load(cls, path: str | Path) -> "Dictionary":
        """A file of lines `key<TAB>number`, in any order, which name every number once."""
        path = Path(path)
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError(f"{str(path)!r} is larger than any dictionary of an ELMo model.")
        keys: dict[int, str] = {}
        for place, line in enumerate(read_lines(path), start=1):
            if not line:
                continue
            key, _, digits = line.rpartition("\t")
            number = (
                int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 9 else -1
            )
            if not 0 <= number < MOST_ENTRIES or number in keys:
                raise ValueError(
                    f"{str(path)!r}, line {place}: {line[:40]!r} is not a key, a tab and a number "
                    f"of its own below {MOST_ENTRIES:,}; get the file again."
                )
            keys[number] = key or NO_KEY
        if not keys or max(keys) != len(keys) - 1:
            raise ValueError(
                f"{str(path)!r} does not number its {len(keys):,} entries from 0 on; get the file "
                "again."
            )
        return cls([keys[number] for number in range(len(keys))])

    def save(self, path: str | Path) -> None:
        lines = (f"{key}\t{number}\n" for number, key in enumerate(self.keys))
        Path(path).write_text("".join(lines), encoding="utf-8", newline="\n")


class Dictionaries:
    """The dictionaries of a model: of characters, of words, or both."""

    def __init__(self, characters: Dictionary | None, words: Dictionary | None):
        self.characters, self.words = characters, words
        self.char_markers: list[int] = []
        self.word_markers: list[int] = []
        # how the boundaries and an unknown word are spelled
        self.names = MANY_LANGS
        if characters is not None:
            self.char_markers = characters.require(CHAR_MARKERS, "characters")
        elif words is not None and all(name in words.numbers for name in BILM):
            self.names = BILM
        if words is not None:
            self.word_markers = words.require(self.names, "words")

    @property
    def char_ids(self) -> str:
        return "none" if self.characters is None else "dictionary"

    def config_fields(self) -> dict[str, Any]:
        """What an `ElmoConfig` says about these dictionaries."""
        boundaries = [number + 1 for number in (self.char_markers or self.word_markers)[:2]]
        fields = {
            "char_ids": self.char_ids,
            "word_vocab_size": 0 if self.words is None else len(self.words) + 1,
            "word_markers": [number + 1 for number in self.word_markers[:2]],
            "char_markers": [number + 1 for number in self.char_markers[:5]],
            "bos_token_id": boundaries[0],
            "eos_token_id": boundaries[1],
        }
        if self.characters is not None:
            fields["vocab_size"] = len(self.characters) + 1
        return fields

    @classmethod
    def load(
        cls, find: Callable[[str], str | None], with_characters: bool, with_words: bool
    ) -> "Dictionaries":
        """`find` gives the place of a file by its name, or None if there is no such file."""

        def read(name: str, is_wanted: bool) -> Dictionary | None:
            if not is_wanted:
                return None
            path = find(name)
            if path is None:
                raise FileNotFoundError(
                    f"The dictionary {name!r} is missing; get the model again with all its files."
                )
            return Dictionary.load(path)

        return cls(read(CHARACTERS_FILE, with_characters), read(WORDS_FILE, with_words))

    def check_config(self, config: Any, place: Any) -> None:
        """Refuses the dictionaries of another model."""
        for name, value in self.config_fields().items():
            if getattr(config, name) != value:
                raise ValueError(
                    f"The dictionaries of {str(place)!r} do not belong to this model: by them "
                    f"`{name}` is {value}, but config.json says {getattr(config, name)}."
                )

    def fingerprint(self) -> bytes:
        """A hash of all entries: the same weights under other words are another model."""
        key = hashlib.sha256()
        for dictionary in (self.characters, self.words):
            for entry in [""] if dictionary is None else dictionary.keys:
                key.update(f"{entry}\n".encode("utf-8", "surrogatepass"))
            key.update(b"\0")
        return key.digest()

    def save(self, folder: str | os.PathLike, prefix: str = "") -> list[str]:
        """Writes the files and returns their paths."""
        paths = []
        named = {CHARACTERS_FILE: self.characters, WORDS_FILE: self.words}
        for name, dictionary in named.items():
            if dictionary is not None:
                paths.append(str(Path(folder) / (prefix + name)))
                dictionary.save(paths[-1])
        return paths


class DictionaryRows:
    """
    Words as rows of ids: the word's own, then those of its code points between markers.

    ELMoForManyLangs cuts a word to `max_characters - 2` code points before it looks it up.
    """

    def __init__(self, dictionaries: Dictionaries, max_characters: int):
        self.dictionaries, self.max_characters = dictionaries, max_characters
        self.width = 0 if dictionaries.words is None else 1
        if dictionaries.characters is not None:
            self.width += max_characters
        self.cut = None if dictionaries.names == BILM else max_characters - 2

    def __reduce__(self):
        # without what is kept of earlier calls, which would change a fingerprint
        return DictionaryRows, (self.dictionaries, self.max_characters)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DictionaryRows):
            return False
        same = self.dictionaries is other.dictionaries
        return same and self.max_characters == other.max_characters

    def __hash__(self) -> int:
        return hash((id(self.dictionaries), self.max_characters))

    @property
    def boundary_words(self) -> tuple[str, str]:
        return self.dictionaries.names[0], self.dictionaries.names[1]

    @property
    def boundaries(self) -> dict[str, list[int]]:
        return {word: self._boundary(which) for which, word in enumerate(self.boundary_words)}

    @cached_property
    def names(self) -> dict[str, int]:
        names = {"<pad>": 0}
        if self.dictionaries.characters is None:
            return names | {word: row[0] for word, row in self.boundaries.items()}
        for number, key in enumerate(self.dictionaries.characters.keys):
            # in the form of a code point, since a character alone is a word
            name = f"<U+{ord(key):04X}>" if len(key) == 1 else key
            names["<padding>" if name == "<pad>" else name] = number + 1
        return names

    def encode(self, word: str) -> list[int]:
        word, row = word[: self.cut], []
        characters, words = self.dictionaries.characters, self.dictionaries.words
        if words is not None:
            row.append(words.numbers.get(word, self.dictionaries.word_markers[2]) + 1)
        if characters is not None:
            *_, unknown = self.dictionaries.char_markers
            row += self._between_markers([characters.numbers.get(c, unknown) + 1 for c in word])
        return row

    def decode(self, row: Sequence[int]) -> str:
        """What is left of a word: one that was cut stays so, and what is unknown becomes U+FFFD."""
        for word, boundary in self.boundaries.items():
            if list(row) == boundary:
                return word
        characters, words = self.dictionaries.characters, self.dictionaries.words
        if words is not None and row[0] - 1 != self.dictionaries.word_markers[2]:
            return words.keys[row[0] - 1]
        if characters is None:
            return self.dictionaries.names[2]
        markers = self.dictionaries.char_markers
        numbers = [index - 1 for index in row[self.width - self.max_characters :]]
        keys = {markers[5]: "\ufffd", **dict.fromkeys((-1, *markers[:5]), "")}
        return "".join(keys.get(number, characters.keys[number]) for number in numbers)

    def is_boundary(self, row: Sequence[int]) -> bool:
        return list(row) in self.boundaries.values()

    def vocabulary(self) -> dict[str, int]:
        words = self.dictionaries.words
        if self.dictionaries.characters is not None or words is None:
            return self.names
        return {key: number + 1 for number, key in enumerate(words.keys)} | self.names

    def _boundary(self, which: int) -> list[int]:
        row = [number + 1 for number in self.dictionaries.word_markers[which : which + 1]]
        if self.dictionaries.characters is not None:
            row += self._between_markers([self.dictionaries.char_markers[which] + 1])
        return row

    def _between_markers(self, ids: list[int]) -> list[int]:
        _, _, first, last, padding, _ = self.dictionaries.char_markers
        row = [first + 1, *ids, last + 1]
        return row + [padding + 1] * (self.max_characters - len(row))
