# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""One word becomes one row of character ids, as bilm-tf and AllenNLP number them.

    byte b of the word's UTF-8      b + 1      1..256
    begin / end of sentence         257, 258   only inside the two boundary rows
    begin / end of word             259, 260
    padding after the word          261
    no word at all                  0          a whole row of zeros

A row is `begin-of-word, bytes, end-of-word, padding ...`. Standard library only: the tokenizer and
the model share these rules, and neither imports the other. Models that know their words by
dictionaries have rows of another kind: `dictionaries`.
"""

from collections.abc import Sequence
from typing import Protocol

NO_WORD = 0
BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING = 257, 258, 259, 260, 261
VOCAB_SIZE = 262
# in the order of `char_markers`
BYTE_MARKERS = (BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING)
DEFAULT_WIDTH = 50

# UTF-8 never contains the byte 255, so byte + 1 still fits in a byte and `translate` can shift.
_SHIFT = bytes((byte + 1) % 256 for byte in range(256))


def encode_word(word: str, width: int = DEFAULT_WIDTH) -> list[int]:
    """The first `width - 2` bytes of `word` between markers; lone surrogates have no bytes."""
    body = word.encode("utf-8", "ignore")[: width - 2].translate(_SHIFT)
    return [BEGIN_WORD, *body, END_WORD, *[PADDING] * (width - 2 - len(body))]


def boundary_row(marker: int, width: int = DEFAULT_WIDTH) -> list[int]:
    """The row of `<S>` (`BEGIN_SENTENCE`) or `</S>` (`END_SENTENCE`)."""
    return [BEGIN_WORD, marker, END_WORD, *[PADDING] * (width - 3)]


def decode_row(row: Sequence[int]) -> str:
    """The word of a row; a word that was cut inside a character loses that character."""
    return bytes(index - 1 for index in row if NO_WORD < index < BEGIN_SENTENCE).decode(
        "utf-8", "ignore"
    )


class WordRows(Protocol):
    """How a model's words become rows of ids, in which 0 is "no word"."""

    # ids in a row
    width: int

    @property
    def boundary_words(self) -> tuple[str, str]:
        """How begin and end of a sentence are spelled."""
        ...

    @property
    def boundaries(self) -> dict[str, list[int]]:
        """The rows of these two."""
        ...

    @property
    def names(self) -> dict[str, int]:
        """Names of ids that are not words."""
        ...

    def __hash__(self) -> int: ...

    def encode(self, word: str) -> list[int]: ...

    def decode(self, row: Sequence[int]) -> str:
        """The word of a row, or the boundary that is in it."""
        ...

    def is_boundary(self, row: Sequence[int]) -> bool: ...

    def vocabulary(self) -> dict[str, int]:
        """A name for each id."""
        ...


class ByteRows:
    """Words as the bytes of their UTF-8: the rows of most models."""

    markers = {"<S>": BEGIN_SENTENCE, "</S>": END_SENTENCE}
    # an id is a byte or a marker, which have no spelling; the markers' names are bilm-tf's
    names = {
        "<pad>": NO_WORD,
        **{f"<0x{byte:02X}>": byte + 1 for byte in range(256)},
        **markers,
        "<begin word>": BEGIN_WORD,
        "<end word>": END_WORD,
        "<padding>": PADDING,
    }

    def __init__(self, width: int = DEFAULT_WIDTH):
        self.width = width

    @property
    def boundary_words(self) -> tuple[str, str]:
        return "<S>", "</S>"

    # not kept: the width may come from a stranger, and is checked only after a tokenizer is made
    @property
    def boundaries(self) -> dict[str, list[int]]:
        return {word: boundary_row(marker, self.width) for word, marker in self.markers.items()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByteRows) and other.width == self.width

    def __hash__(self) -> int:
        return hash(self.width)

    def encode(self, word: str) -> list[int]:
        return encode_word(word, self.width)

    def decode(self, row: Sequence[int]) -> str:
        for word, marker in self.markers.items():
            if marker in row:
                return word
        return decode_row(row)

    def is_boundary(self, row: Sequence[int]) -> bool:
        return any(marker in row for marker in self.markers.values())

    def vocabulary(self) -> dict[str, int]:
        return self.names
