"""How arrays of the hdf5 layout become parameters, and back: pure functions on numpy arrays.

Each operation takes one hdf5 array to one array per parameter (`to_parameters`) and back again
(`to_array`). Nothing here knows a name or a file.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from elmo_hf.conversion.options_map import NUM_CHARACTERS

# TensorFlow's LSTM adds this to the forget gate at run time; we keep it in the bias.
FORGET_BIAS = np.float32(1.0)


class Operation(NamedTuple):
    to_parameters: Callable[[np.ndarray], tuple[np.ndarray, ...]]
    to_array: Callable[..., np.ndarray]


def keep(array: np.ndarray) -> np.ndarray:
    return array


def transpose(matrix: np.ndarray) -> np.ndarray:
    """TensorFlow multiplies x W, torch W x."""
    return matrix.T


def convolution_to_torch(kernel: np.ndarray) -> np.ndarray:
    """(1, width, channels, filters) -> (filters, channels, width)."""
    return kernel[0].transpose(2, 1, 0)


def convolution_to_tensorflow(kernel: np.ndarray) -> np.ndarray:
    """(filters, channels, width) -> (1, width, channels, filters)."""
    return kernel.transpose(2, 1, 0)[np.newaxis]


def add_padding_row(embedding: np.ndarray) -> np.ndarray:
    """Put a row of zeros in front, for "no word", unless the file has it already."""
    if len(embedding) == NUM_CHARACTERS:
        return embedding
    return add_zero_row(embedding)


def add_zero_row(embedding: np.ndarray) -> np.ndarray:
    """Put a row of zeros in front, for "no word"."""
    return np.concatenate([np.zeros_like(embedding[:1]), embedding])


def drop_padding_row(embedding: np.ndarray) -> np.ndarray:
    return embedding[1:]


def reorder_gates(stacked: np.ndarray) -> np.ndarray:
    """TensorFlow stacks input, candidate, forget, output; we input, forget, output, candidate."""
    input_gate, candidate, forget, output = np.split(stacked, 4)
    return np.concatenate([input_gate, forget, output, candidate])


def restore_gates(stacked: np.ndarray) -> np.ndarray:
    """The inverse of `reorder_gates`."""
    input_gate, forget, output, candidate = np.split(stacked, 4)
    return np.concatenate([input_gate, candidate, forget, output])


def split_kernel(kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(input + output, 4 * cell) -> the input's and the recurrent matrix, output rows first."""
    # both halves are as wide as the projection, like the token layer and every LSTM layer
    from_input, from_output = np.split(kernel, 2)
    return reorder_gates(from_input.T), reorder_gates(from_output.T)


def join_kernel(from_input: np.ndarray, from_output: np.ndarray) -> np.ndarray:
    """The inverse of `split_kernel`."""
    return np.concatenate([restore_gates(from_input).T, restore_gates(from_output).T])


def shift_forget(bias: np.ndarray, shift: np.float32) -> np.ndarray:
    """Add `shift` to the forget gate of a bias in our order."""
    shifted = bias.copy()
    shifted[len(bias) // 4 : len(bias) // 2] += shift
    return shifted


def bias_to_torch(bias: np.ndarray) -> np.ndarray:
    return shift_forget(reorder_gates(bias), FORGET_BIAS)


def bias_to_tensorflow(bias: np.ndarray) -> np.ndarray:
    return restore_gates(shift_forget(bias, -FORGET_BIAS))


def _one(to_parameter: Callable, to_array: Callable) -> Operation:
    return Operation(lambda array: (to_parameter(array),), to_array)


KEEP = _one(keep, keep)
TRANSPOSE = _one(transpose, transpose)
CONVOLUTION = _one(convolution_to_torch, convolution_to_tensorflow)
PADDING_ROW = _one(add_padding_row, drop_padding_row)
ZERO_ROW = _one(add_zero_row, drop_padding_row)
LSTM_BIAS = _one(bias_to_torch, bias_to_tensorflow)
LSTM_KERNEL = Operation(split_kernel, join_kernel)
