"""An ELMo's tensors as AllenNLP names and orders them, in bilm-tf's layout.

ELMoForManyLangs began with AllenNLP's code, so its tensors differ in a few names only.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from elmo_hf.conversion.tensor_ops import FORGET_BIAS, convolution_to_tensorflow


class TokenEncoderNames(NamedTuple):
    """How tensors of a token encoder are called; {} is a number."""

    convolution: str
    highway: str
    projection: str


class Tensors:
    """The tensors of a part of a model, each taken once and with its axes checked."""

    def __init__(self, tensors: Mapping[str, np.ndarray], file: str):
        self.left, self.file = dict(tensors), file

    def __contains__(self, name: str) -> bool:
        return name in self.left

    def count(self, template: str) -> int:
        """How many names are like this one but for the number at {}."""
        pattern = re.compile(re.escape(template).replace(r"\{\}", r"\d+"))
        return sum(pattern.fullmatch(name) is not None for name in self.left)

    def take(self, name: str, axes: int, parts: int = 1) -> np.ndarray:
        """`parts`: into how many equal pieces the first axis will be cut."""
        if name not in self.left:
            raise ValueError(f"{self.file!r} lacks the tensor {name!r}.")
        tensor = self.left.pop(name)
        is_right = tensor.ndim == axes and tensor.size and tensor.dtype.kind == "f"
        if not is_right or len(tensor) % parts:
            self.refuse(name, tensor)
        return tensor

    def refuse_others(self) -> None:
        for name, tensor in self.left.items():
            self.refuse(name, tensor)

    def refuse(self, name: str, tensor: np.ndarray) -> None:
        raise ValueError(
            f"{self.file!r} holds a tensor {name!r:.100} of shape {tensor.shape} and type "
            f"{tensor.dtype}, which is not part of an ELMo."
        )


def token_encoder_arrays(given: Tensors, names: TokenEncoderNames) -> dict[str, np.ndarray]:
    """Convolutions, highways and projection, without tables of vectors."""
    arrays = {}
    for i in range(given.count(f"{names.convolution}.weight")):
        kernel = given.take(f"{names.convolution.format(i)}.weight", 3)
        arrays[f"CNN/W_cnn_{i}"] = convolution_to_tensorflow(kernel)
        arrays[f"CNN/b_cnn_{i}"] = given.take(f"{names.convolution.format(i)}.bias", 1)
    for i in range(given.count(f"{names.highway}.weight")):
        for kind, letter, axes in (("weight", "W", 2), ("bias", "b", 1)):
            stacked = given.take(f"{names.highway.format(i)}.{kind}", axes, parts=2)
            # its gate is how much of the input passes, bilm-tf's how much is changed
            transform, carry = np.split(stacked, 2)
            arrays[f"CNN_high_{i}/{letter}_transform"] = transform.T
            arrays[f"CNN_high_{i}/{letter}_carry"] = -carry.T
    if f"{names.projection}.weight" in given:
        arrays["CNN_proj/W_proj"] = given.take(f"{names.projection}.weight", 2).T
        arrays["CNN_proj/b_proj"] = given.take(f"{names.projection}.bias", 1)
    return arrays


def lstm_arrays(given: Tensors) -> dict[str, np.ndarray]:
    """All LSTMs, by names such as `forward_layer_0.input_linearity.weight`."""
    arrays = {}
    for number, direction in enumerate(("forward", "backward")):
        for layer in range(given.count(f"{direction}_layer_{{}}.state_linearity.weight")):
            source = f"{direction}_layer_{layer}"
            key = f"RNN_{number}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            from_input = given.take(f"{source}.input_linearity.weight", 2, parts=4)
            from_state = given.take(f"{source}.state_linearity.weight", 2, parts=4)
            if len(from_input) != len(from_state):
                given.refuse(f"{source}.state_linearity.weight", from_state)
            halves = [tensorflow_gates(half).T for half in (from_input, from_state)]
            arrays[f"{key}/W_0"] = np.concatenate(halves)
            bias = tensorflow_gates(given.take(f"{source}.state_linearity.bias", 1, parts=4))
            # bilm-tf adds this 1 at run time, here it is part of the bias
            bias[len(bias) // 2 : 3 * len(bias) // 4] -= FORGET_BIAS
            arrays[f"{key}/B"] = bias
            arrays[f"{key}/W_P_0"] = given.take(f"{source}.state_projection.weight", 2).T
    return arrays


def tensorflow_gates(stacked: np.ndarray) -> np.ndarray:
    """From input, forget, candidate, output to bilm-tf's input, candidate, forget, output."""
    input_gate, forget, candidate, output = np.split(stacked, 4)
    return np.concatenate([input_gate, candidate, forget, output])
