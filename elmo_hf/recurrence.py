# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""How both directions of a biLSTM layer are read: the one place that chooses among backends.

A backend is a file `recurrence_NAME` that ends with a `Backend`: whether it can read a layer's
input now, and the function that reads it. The first that can, does. `plain` is the definition:
autograd, any device and dtype, adapters and hooks respected. Every other backend is tested against
it: values, and gradients where it has them.
"""

from typing import TYPE_CHECKING

from .recurrence_batched import BATCHED
from .recurrence_exportable import EXPORTABLE
from .recurrence_interface import Backend, LayerInput, LayerOutput
from .recurrence_plain import PLAIN
from .recurrence_prepared import PREPARED
from .recurrence_training import TRAINING

if TYPE_CHECKING:
    from .layers_elmo import ElmoLayer

BACKENDS = (TRAINING, PREPARED, BATCHED, EXPORTABLE, PLAIN)


def choose_backend(layer: "ElmoLayer", given: LayerInput) -> Backend:
    return next(backend for backend in BACKENDS if backend.can_read(layer, given))


def read_layer(layer: "ElmoLayer", given: LayerInput) -> LayerOutput:
    return choose_backend(layer, given).read(layer, given)
