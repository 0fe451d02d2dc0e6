"""The table: which dataset of the hdf5 layout is which parameter, both ways.

Parameters have their names in `ElmoForPreTraining`: those of the biLM begin with `elmo.`, those of
the language model's softmax with `softmax.`. Names only; how the arrays change is in `tensor_ops`.
The table is total: a dataset or parameter matches exactly one row or is an error.
"""

import re
from collections.abc import Container, Mapping
from typing import Any, NamedTuple

from elmo_hf.conversion.tensor_ops import (
    CONVOLUTION,
    KEEP,
    LSTM_BIAS,
    LSTM_KERNEL,
    PADDING_ROW,
    TRANSPOSE,
    ZERO_ROW,
    Operation,
)

BILM, SOFTMAX = "elmo.", "softmax."
# the meaning of the table's placeholders, on the hdf5 side and on ours
DIRECTIONS = {"0": "forward", "1": "backward"}
PLACEHOLDERS = {"{n}": r"(?P<n>\d+)", "{d}": r"(?P<d>forward|backward|[01])"}


class Rule(NamedTuple):
    key: str
    names: tuple[str, ...]
    operation: Operation


ENCODER = f"{BILM}token_encoder"
CELL = f"{BILM}layers.{{n}}.{{d}}_cell"
TF_CELL = "RNN_{d}/RNN/MultiRNNCell/Cell{n}/LSTMCell"

RULES = [
    Rule("char_embed", (f"{ENCODER}.char_embeddings.weight",), PADDING_ROW),
    # of models with dictionaries: ELMoForManyLangs has both, a word-level bilm file only the first
    Rule("embedding", (f"{ENCODER}.word_embeddings.weight",), ZERO_ROW),
    Rule("code_point_embed", (f"{ENCODER}.char_embeddings.weight",), ZERO_ROW),
    Rule("CNN/W_cnn_{n}", (f"{ENCODER}.convolutions.{{n}}.weight",), CONVOLUTION),
    Rule("CNN/b_cnn_{n}", (f"{ENCODER}.convolutions.{{n}}.bias",), KEEP),
    # TensorFlow's highway is ours, so there is no change of sign; AllenNLP's is the other way round
    Rule("CNN_high_{n}/W_carry", (f"{ENCODER}.highways.{{n}}.carry.weight",), TRANSPOSE),
    Rule("CNN_high_{n}/b_carry", (f"{ENCODER}.highways.{{n}}.carry.bias",), KEEP),
    Rule("CNN_high_{n}/W_transform", (f"{ENCODER}.highways.{{n}}.transform.weight",), TRANSPOSE),
    Rule("CNN_high_{n}/b_transform", (f"{ENCODER}.highways.{{n}}.transform.bias",), KEEP),
    Rule("CNN_proj/W_proj", (f"{ENCODER}.projection.weight",), TRANSPOSE),
    Rule("CNN_proj/b_proj", (f"{ENCODER}.projection.bias",), KEEP),
    Rule(
        f"{TF_CELL}/W_0",
        (f"{CELL}.input_linear.weight", f"{CELL}.recurrent_linear.weight"),
        LSTM_KERNEL,
    ),
    Rule(f"{TF_CELL}/B", (f"{CELL}.input_linear.bias",), LSTM_BIAS),
    Rule(f"{TF_CELL}/W_P_0", (f"{CELL}.projection.weight",), TRANSPOSE),
    Rule("softmax/W", (f"{SOFTMAX}weight",), KEEP),
    Rule("softmax/b", (f"{SOFTMAX}bias",), KEEP),
]


def _match(template: str, text: str) -> dict[str, str] | None:
    pattern = re.escape(template)
    for placeholder, expression in PLACEHOLDERS.items():
        pattern = pattern.replace(re.escape(placeholder), expression)
    match = re.fullmatch(pattern, text)
    return match.groupdict() if match else None


def rule_for_key(key: str) -> Rule:
    """The row of a dataset, with its names filled in."""
    for rule in RULES:
        values = _match(rule.key, key)
        if values is not None:
            values["d"] = DIRECTIONS.get(values.get("d", ""), "")
            return Rule(key, tuple(name.format(**values) for name in rule.names), rule.operation)
    raise ValueError(
        f"The weights hold a dataset {key!r} that is not part of the bilm hdf5 layout."
    )


def rule_for_name(name: str, keys: Container[str] = ()) -> Rule:
    """
    The row of a parameter, with its key and all its names filled in. Where two rows have the name,
    it is the one whose key is among `keys`, or else the first.
    """
    rules = [rule for rule in RULES if rule.key in keys and name in rule.names]
    for rule in (*rules, *RULES):
        for template in rule.names:
            values = _match(template, name)
            if values is not None:
                names = tuple(other.format(**values) for other in rule.names)
                for number, direction in DIRECTIONS.items():
                    if values.get("d") == direction:
                        values["d"] = number
                return Rule(rule.key.format(**values), names, rule.operation)
    raise ValueError(f"The parameter {name!r} has no place in the bilm hdf5 layout.")


def datasets_of(part: str, datasets: Mapping[str, Any]) -> dict[str, Any]:
    """The datasets of the biLM or those of the softmax."""
    return {
        key: dataset
        for key, dataset in datasets.items()
        if rule_for_key(key).names[0].startswith(part)
    }
