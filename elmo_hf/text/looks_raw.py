# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Noticing raw text where tokenised text is expected: its punctuation clings to words."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from elmo_hf.text.lines import Line

# lines with words that are looked at
FIRST_LINES = 100
# and words in each of them, because a line may be a book
FIRST_WORDS = 1000
# `bank,` is a mistake of whoever split the text; `Inc.` is not, except at the end of a line
CLINGS = re.compile(r"[^\W\d_][,;!?]")
ENDS = re.compile(r"[^\W\d_][.]")
# what tokenised text has instead
APART = frozenset(",;!?.")


def clinging_words(words: Sequence[str]) -> list[str]:
    """The words of a line that have punctuation at their end."""
    found = [word for word in words if CLINGS.fullmatch(word[-2:])]
    return [*found, *(word for word in words[-1:] if ENDS.fullmatch(word[-2:]))]


class RawTextAlarm:
    """Counts punctuation that clings to words and punctuation that is apart from them."""

    def __init__(self) -> None:
        self.lines = self.apart = 0
        self.clinging: list[str] = []

    def look_at(self, words: Sequence[str]) -> None:
        if words:
            self.lines += 1
            some = [*words[: FIRST_WORDS - 1], words[-1]]
            self.clinging += clinging_words(some)
            self.apart += sum(word in APART for word in some)

    @property
    def is_raw(self) -> bool:
        """Tokenised text has a `Yahoo!` or an `etc.` here and there, but far more of the others."""
        return len(self.clinging) > self.apart


def watch_for_raw_text(lines: Iterable[Line], warn: Callable[[str], None]) -> Iterator[Line]:
    """The same lines; `warn` is called once, with a word of theirs, if the first are raw text."""
    alarm = RawTextAlarm()
    for line in lines:
        if alarm.lines < FIRST_LINES:
            alarm.look_at(line.words)
            if alarm.lines == FIRST_LINES and alarm.is_raw:
                warn(alarm.clinging[0])
        yield line
    if alarm.lines < FIRST_LINES and alarm.is_raw:
        warn(alarm.clinging[0])
