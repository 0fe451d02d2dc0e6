"""Every backend of the recurrence against the plain one, and which of them is chosen when."""

import pytest
import torch
from helpers.tiny import random_arrays, tiny_config

from elmo_hf import recurrence_plain
from elmo_hf.conversion.building import load_model
from elmo_hf.recurrence import BACKENDS, choose_backend
from elmo_hf.recurrence_batched import BATCHED
from elmo_hf.recurrence_exportable import EXPORTABLE
from elmo_hf.recurrence_interface import LayerInput
from elmo_hf.recurrence_plain import PLAIN
from elmo_hf.recurrence_training import TRAINING

CASES = {
    "plain": {},
    "no-clips": {"cell_clip": None, "projection_clip": None},
    "tight-clips": {"cell_clip": 0.05, "projection_clip": 0.05},
    "no-cell-projection": {"cell_size": 8},
}
SIZES = {"one": [1], "one-row": [1, 1, 1], "equal": [3, 3, 3], "falling": [5, 3, 3, 1]}
# relative; the prepared copies round otherwise than a tanh does
ROUNDING = {torch.float32: 1e-5, torch.float64: 1e-14}


def make_layer(overrides: dict, dtype: torch.dtype):
    """The first layer of a model whose weights bend the gates."""
    config = tiny_config(**overrides)
    return load_model(config, random_arrays(config)).to(dtype).layers[0]


def make_input(layer, sizes: list[int], dtype: torch.dtype, distinct: bool, state: bool):
    width, batch, cell = 8, sizes[0], layer.forward_cell.cell_size
    torch.manual_seed(1)
    tokens = sum(sizes)
    rows = tuple(torch.randn(4 if distinct else tokens, width, dtype=dtype) for _ in range(2))
    positions = tuple(torch.randint(4, (tokens,)) if distinct else None for _ in range(2))
    start = tuple(torch.randn(2, batch, size, dtype=dtype) for size in (width, cell))
    return LayerInput(rows, positions, sizes, start if state else None)


def as_steps(given: LayerInput) -> LayerInput:
    """The same with time and batch as axes, for streams of which every sentence runs to the end."""
    shape = (len(given.batch_sizes), given.batch_sizes[0])
    pairs = zip(given.rows, given.positions, strict=True)
    rows = tuple(
        (rows if positions is None else rows[positions]).unflatten(0, shape)
        for rows, positions in pairs
    )
    return LayerInput(rows, (None, None), None, given.state)


def close(found, expected, dtype):
    for ours, plain in zip(found, expected, strict=True):
        bound = ROUNDING[dtype] * plain.abs().max().item()
        torch.testing.assert_close(ours.reshape(plain.shape), plain, rtol=0, atol=bound)


@pytest.mark.parametrize("state", [False, True], ids=["fresh", "state"])
@pytest.mark.parametrize("distinct", [False, True], ids=["stream", "distinct"])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("overrides", CASES.values(), ids=CASES)
@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_backend_gives_the_values_of_the_plain_one(backend, overrides, sizes, distinct, state):
    # prepared copies are made of float32 only
    dtype = torch.float32 if backend.name == "prepared" else torch.float64
    layer = make_layer(overrides, dtype)
    given = make_input(layer, sizes, dtype, distinct, state)
    with torch.no_grad():
        expected = PLAIN.read(layer, given)
        if backend is EXPORTABLE:
            if len(set(sizes)) > 1:
                assert not backend.can_read(layer, given)
                return
            given = as_steps(given)
        layer.train(backend.name == "training")
        if backend.name == "prepared":
            layer.prepare()
        # in full precision a CPU has its own
        assert backend.can_read(layer, given) or backend is BATCHED
        close(backend.read(layer, given), expected, dtype)


def test_training_gives_the_gradients_of_the_plain_backend():
    """
    So does batched, in a file of its own; the other two serve without gradients: prepared in
    inference, exportable in exporters.
    """
    layer = make_layer({}, torch.float64).train()
    given = make_input(layer, [3, 3, 1], torch.float64, distinct=True, state=True)

    def gradients(backend):
        layer.zero_grad()
        output = backend.read(layer, given)
        torch.manual_seed(2)
        sum((part * torch.randn_like(part)).sum() for part in output).backward()
        return [parameter.grad.clone() for parameter in layer.parameters()]

    close(gradients(TRAINING), gradients(PLAIN), torch.float64)


def test_the_first_backend_that_can_read_is_chosen():
    layer = make_layer({}, torch.float32)
    given = make_input(layer, [2, 1], torch.float32, distinct=False, state=False)

    def chosen(these=given) -> str:
        return choose_backend(layer, these).name

    assert chosen() == "plain"
    layer.prepare()
    assert chosen() == "plain"  # gradients are on
    with torch.no_grad():
        assert chosen() == "prepared"
        with torch.autocast("cpu", torch.bfloat16):
            assert chosen() == "batched"
        layer.forward_cell.recurrent_linear.weight.mul_(2)
        assert chosen() == "plain"  # the copy is stale
    layer.train()
    assert chosen() == "training"
    layer.double()
    assert chosen(make_input(layer, [2, 1], torch.float64, False, False)) == "training"
    layer.bfloat16()
    assert chosen(make_input(layer, [2, 1], torch.bfloat16, False, False)) == "batched"
    assert chosen(as_steps(make_input(layer, [2, 2], torch.bfloat16, False, False))) == "exportable"


@pytest.mark.parametrize("distinct", [False, True], ids=["stream", "distinct"])
@pytest.mark.parametrize("tokens", [1, 2, 3, 5])
def test_a_long_stream_is_read_in_windows(monkeypatch, tokens, distinct):
    """Unless gradients are wanted; the values are the same."""
    layer = make_layer({}, torch.float64)
    given = make_input(layer, [5, 3, 3, 1], torch.float64, distinct, state=True)
    with torch.no_grad():
        expected = PLAIN.read(layer, given)
        monkeypatch.setattr(recurrence_plain, "TOKENS_AT_ONCE", tokens)
        most, multiply = [], layer.forward_cell.input_linear.forward
        monkeypatch.setattr(
            layer.forward_cell.input_linear,
            "forward",
            lambda rows: most.append(len(rows)) or multiply(rows),
        )
        close(PLAIN.read(layer, given), expected, torch.float64)
    # a step is not divided
    assert max(most) < tokens + 5 and sum(most) in (12, 4)
    close(PLAIN.read(layer, given), expected, torch.float64)
    assert most[-1] == (4 if distinct else 12)
