# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Blanks in the last column of CoNLL-U, by UDPipe's escapes."""

import re

ESCAPES = {"\\": r"\\", " ": r"\s", "\t": r"\t", "\r": r"\r", "\n": r"\n", "|": r"\p"}
CHARACTERS = {escape: character for character, escape in ESCAPES.items()}
ESCAPE = re.compile(r"\\[\\strnp]")


def escape_spaces(spaces: str) -> str:
    return "".join(ESCAPES.get(character, character) for character in spaces)


def unescape_spaces(escaped: str) -> str:
    return ESCAPE.sub(lambda match: CHARACTERS[match.group()], escaped)
