# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Blanks of a text in the last column of CoNLL-U, where UDPipe writes them with escapes."""

import re

ESCAPES = {" ": r"\s", "\t": r"\t", "\r": r"\r", "\n": r"\n", "|": r"\p", "\\": r"\\"}
MEANINGS = {escape: sign for sign, escape in ESCAPES.items()}
# a backslash and a letter, or the number of a character, which EWT writes for rare blanks
ESCAPE = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|.)", re.DOTALL)


def escape_spaces(text: str) -> str:
    r"""A text as the value of `SpacesAfter` or `SpacesBefore`: `\s\n` for a space and a newline."""
    return "".join(ESCAPES.get(sign, sign) for sign in text)


def unescape_spaces(value: str) -> str:
    """The text that such a value means; escapes that have no meaning stay as they are."""
    return ESCAPE.sub(meaning, value)


def meaning(found: re.Match) -> str:
    escape = found[0]
    if len(escape) > 2:
        return chr(int(escape[2:], 16))
    return MEANINGS.get(escape, escape)
