# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What the option `--split` and its companion `--paragraphs` may be."""

from elmo_hf.text.paragraphs import PARAGRAPHS, check_paragraphs
from elmo_hf.text_splitting import SPLITTERS, WHITESPACE, find_splitter

# the splitter of text that is tokenised: a line is a sentence, with blanks between its words
NONE = "none"


def splitter_name(split: str) -> str:
    """The `word_splitter` of a tokenizer that `split`, the value of an option, asks for."""
    if split == NONE:
        return WHITESPACE
    try:
        find_splitter(split)
    except ValueError as error:
        names = ", ".join((NONE, *SPLITTERS))
        raise ValueError(f"`split` is {split!r} but must be one of {names}.") from error
    return split


def check_split(split: str, paragraphs: str) -> None:
    """Refuses options about raw text that are unknown, or do not go together."""
    splitter_name(split)
    check_paragraphs(paragraphs)
    if split == NONE and paragraphs != PARAGRAPHS[0]:
        raise ValueError(
            f"`paragraphs` is {paragraphs!r}, but in tokenised text every line is a sentence; name "
            "a splitter for raw text, as in --split english."
        )
