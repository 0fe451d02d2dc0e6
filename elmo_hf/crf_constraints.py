# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Which tags may follow each other in the schemes of chunks, for decoding with a CRF.

A label is `O`, or a letter and a kind as in `B-PER`. BIO (also called IOB2) begins every chunk with
B; IOB1 only a chunk after another one of the same kind; BIOUL ends chunks with L and has U for
chunks of one word.
"""

from collections.abc import Sequence

SCHEMES = {"BIO": "BIO", "IOB1": "BIO", "BIOUL": "BIOUL"}
# the letters a tag may begin with where no chunk is open
FRESH = {"BIO": "OB", "IOB1": "OI", "BIOUL": "OBU"}
# the letters that go on with a chunk of the same kind, by the letter before them
INSIDE = {
    "BIO": {"B": "I", "I": "I"},
    "IOB1": {"B": "BI", "I": "BI"},
    "BIOUL": {"B": "IL", "I": "IL"},
}


def find_odd_label(scheme: str, labels: Sequence[str]) -> str | None:
    """A label that is not one of the scheme, if there is any."""
    for label in labels:
        if label != "O" and (label[:1] not in SCHEMES[scheme] or label[1:] == ""):
            return label
    return None


def allowed_starts(scheme: str, labels: Sequence[str]) -> list[bool]:
    return [label[0] in FRESH[scheme] for label in labels]


def allowed_ends(scheme: str, labels: Sequence[str]) -> list[bool]:
    """Only in BIOUL must a chunk be ended."""
    return [scheme != "BIOUL" or label[0] in "OUL" for label in labels]


def allowed_transitions(scheme: str, labels: Sequence[str]) -> list[list[bool]]:
    """Row by row what may follow each label."""
    may_end = allowed_ends(scheme, labels)
    return [
        [
            (closes and label[0] in FRESH[scheme])
            or (label[1:] == before[1:] and label[0] in INSIDE[scheme].get(before[0], ""))
            for label in labels
        ]
        for before, closes in zip(labels, may_end, strict=True)
    ]
