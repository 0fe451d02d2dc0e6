"""The taggers of AllenNLP whose head is one of ours: an LSTM, a linear layer, perhaps a CRF."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from elmo_hf.conversion.formats._format import TaggerHead
from elmo_hf.crf_constraints import (
    SCHEMES,
    allowed_ends,
    allowed_starts,
    allowed_transitions,
    find_odd_label,
)
from elmo_hf.text_lines import read_lines

LABEL_FILES = ("*labels.txt", "*tags.txt")
TAGGERS = ("simple_tagger", "crf_tagger")
DIRECTIONS = ("", "_reverse")
LSTM_PARTS = [
    f"{name}_l0{direction}"
    for direction in DIRECTIONS
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
]
ENCODER, CLASSIFIER = "encoder._module.", "tag_projection_layer._module."
# our names, and AllenNLP's
HEAD = {
    **{f"task_lstm.{name}": ENCODER + name for name in LSTM_PARTS},
    **{f"classifier.{name}": CLASSIFIER + name for name in ("weight", "bias")},
}
CRF = ("transitions", "start_transitions", "end_transitions")
CONSTRAINTS = "crf._constraint_mask"
MOST_LABELS = 100_000


class UnknownConstraintsError(ValueError):
    """A CRF's constraints are those of none of our schemes."""


def tagger_head(
    config: Mapping[str, Any],
    embedder: Mapping[str, Any],
    others: Mapping[str, np.ndarray],
    folder: Path,
) -> TaggerHead | None:
    """
    The head of a tagger, from all tensors besides ELMo's; None if ours is not like that, and an
    error if nothing but the constraints of its CRF is not. `embedder` are the settings of ELMo in
    the configuration.
    """
    model = config.get("model")
    if not isinstance(model, Mapping) or model.get("type") not in TAGGERS:
        return None
    has_crf = model["type"] == "crf_tagger"
    optional = {*(f"crf.{name}" for name in CRF[1:]), CONSTRAINTS} if has_crf else set()
    needed = {*HEAD.values(), *(["crf.transitions"] if has_crf else [])}
    if needed - others.keys() or others.keys() - needed - optional:
        return None
    recurrent = others[f"{ENCODER}weight_hh_l0"]
    # that of a GRU has three rows per unit
    if recurrent.ndim != 2 or recurrent.shape[0] != 4 * recurrent.shape[1]:
        return None
    labels = read_labels(model, folder)
    if labels is None or len(labels) != len(others[f"{CLASSIFIER}bias"]):
        return None
    settings: dict[str, Any] = {
        "task_lstm_size": recurrent.shape[1],
        "classifier_dropout": share(model.get("dropout"), 0.0),
        "output_dropout": share(embedder.get("dropout"), 0.5),
    }
    parameters = {ours: others[theirs] for ours, theirs in HEAD.items()}
    if has_crf:
        nothing = np.zeros(len(labels), np.float32)
        parameters |= {f"crf.{name}": others.get(f"crf.{name}", nothing) for name in CRF}
        scheme = find_scheme(labels, others.get(CONSTRAINTS))
        settings |= {"classifier_decoder": "crf", "crf_constraints": scheme}
    return TaggerHead(labels, parameters, settings)


def share(value: Any, default: float) -> float:
    """A probability out of a configuration."""
    return float(value) if isinstance(value, (int, float)) and 0 <= value < 1 else default


def read_labels(model: Mapping[str, Any], folder: Path) -> list[str] | None:
    """The labels in their order, which is that of the lines."""
    space = model.get("label_namespace", "labels")
    found = [path for path in sorted(folder.rglob("*.txt")) if path.name == f"{space}.txt"]
    if not found:
        return None
    labels = []
    for line in read_lines(found[0]):
        labels.append(line)
        if len(labels) > MOST_LABELS:
            raise ValueError(f"{found[0].name!r} has more than {MOST_LABELS:,} labels.")
    return labels


def find_scheme(labels: list[str], mask: np.ndarray | None) -> str | None:
    """
    The scheme whose rules a mask of AllenNLP, (labels + start + end) squared, stands for; None if
    it allows everything.
    """
    count = len(labels)
    if mask is None:
        return None
    if mask.shape == (count + 2, count + 2):
        found = (mask[:count, :count] > 0, mask[count, :count] > 0, mask[:count, count + 1] > 0)
        if all(part.all() for part in found):
            return None
        for scheme in SCHEMES:
            if find_odd_label(scheme, labels) is not None:
                continue
            rules = (allowed_transitions, allowed_starts, allowed_ends)
            allowed = [np.array(rule(scheme, labels)) for rule in rules]
            if all(np.array_equal(one, other) for one, other in zip(allowed, found, strict=True)):
                return scheme
    raise UnknownConstraintsError(
        f"The tagger's CRF has constraints that are not those of {', '.join(SCHEMES)}, so that its "
        "head would choose other tags here."
    )
