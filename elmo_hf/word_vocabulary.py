# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The words of the language model's softmax: one per line, most frequent first, as in bilm-tf."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from .text_lines import read_lines

BEGIN, END, UNKNOWN = SPECIAL_WORDS = ("<S>", "</S>", "<UNK>")
# lm1b's vocabulary file ends with a line that is no word
NOT_WORDS = ("!!!MAXTERMID",)
FILE_NAME = "lm_vocabulary.txt"
# Characters that a gzipped file may unpack to: words shrink by a factor of three or four.
ALWAYS_ALLOWED = 1 << 24
LARGEST_RATIO = 32


class WordVocabulary:
    """Words by number and numbers by word; a word's number is its line in the file."""

    def __init__(self, words: Sequence[str]):
        self.words = list(words)
        # if a word occurs twice, its first line counts
        numbers = range(len(self.words))
        self.numbers = dict(zip(reversed(self.words), reversed(numbers), strict=True))
        missing = [word for word in SPECIAL_WORDS if word not in self.numbers]
        if missing:
            raise ValueError(
                f"The vocabulary has no line {', '.join(missing)}; it needs the words "
                f"{', '.join(SPECIAL_WORDS)}."
            )
        self.begin, self.end, self.unknown = (self.numbers[word] for word in SPECIAL_WORDS)

    def __len__(self) -> int:
        return len(self.words)

    def number(self, word: str) -> int:
        return self.numbers.get(word, self.unknown)

    def config_fields(self) -> dict[str, int]:
        """What an `ElmoConfig` says about these words."""
        return {
            "lm_vocab_size": len(self),
            "lm_begin_id": self.begin,
            "lm_end_id": self.end,
        }

    @classmethod
    def of_counts(
        cls, counts: Counter[str], max_size: int | None = None, min_count: int = 1
    ) -> "WordVocabulary":
        """The special words, then all others from the most frequent on."""
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        words = [word for word, count in ranked if count >= min_count and word not in SPECIAL_WORDS]
        room = None if max_size is None else max(0, max_size - len(SPECIAL_WORDS))
        return cls([*SPECIAL_WORDS, *words[:room]])

    @classmethod
    def load(cls, path: str | Path) -> "WordVocabulary":
        """A vocabulary file, gzipped or not."""
        path = Path(path)
        words, room = [], max(ALWAYS_ALLOWED, LARGEST_RATIO * path.stat().st_size)
        for word in read_lines(path):
            room -= len(word) + 1
            if room < 0:
                raise ValueError(f"{str(path)!r} unpacks to too much text for a vocabulary.")
            words.append(word)
        while words and words[-1] in ("", *NOT_WORDS):
            words.pop()
        try:
            return cls(words)
        except ValueError as error:
            raise ValueError(f"{str(path)!r}: {error}") from error

    def save(self, path: str | Path) -> None:
        Path(path).write_text("\n".join(self.words) + "\n", encoding="utf-8", newline="\n")
