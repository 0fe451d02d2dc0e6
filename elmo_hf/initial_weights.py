# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""How the weights of linear layers start: as in bilm-tf.

`transformers.initialization` leaves alone what `from_pretrained` has already loaded.
"""

from torch import nn
from transformers import initialization as init


def scaled_normal(linear: nn.Linear) -> None:
    init.normal_(linear.weight, std=linear.in_features**-0.5)


def highway_gate(linear: nn.Linear) -> None:
    """Nearly closed, so that a new highway passes its input through."""
    scaled_normal(linear)
    init.constant_(linear.bias, -2.0)


def identity(linear: nn.Linear) -> None:
    init.eye_(linear.weight)


def glorot(linear: nn.Linear) -> None:
    init.xavier_uniform_(linear.weight)


def lstm_gates(linear: nn.Linear) -> None:
    """Input or recurrent weights of an LSTM, and the bias if this layer has it."""
    # Glorot's bound for the matrix of both, which TensorFlow keeps in one piece
    bound = (6 / (2 * linear.in_features + linear.out_features)) ** 0.5
    init.uniform_(linear.weight, -bound, bound)
    if linear.bias is not None:
        # TensorFlow adds this 1 to the forget gate at run time
        start = linear.bias.new_tensor([0.0, 1.0, 0.0, 0.0])
        init.copy_(linear.bias, start.repeat_interleave(linear.out_features // 4))
