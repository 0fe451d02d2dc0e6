"""Training's fast path against the plain one: the same values and gradients."""

import pytest
import torch
from helpers.tiny import random_arrays, tiny_config, tokenize
from test_modeling_elmo import VARIANTS
from test_prepared_weights import BATCHES

from elmo_hf import ElmoState, layers_elmo, matrix_products, recurrence_training
from elmo_hf.conversion.building import load_model
from elmo_hf.private_interfaces import packed_linear
from elmo_hf.recurrence_training import BothDirections

# relative, of double precision through up to 500 steps
ROUNDING = 1e-11


@pytest.fixture
def plain_path(monkeypatch):
    """Call it to turn the fast path off."""

    def turn_off() -> None:
        for module in (layers_elmo, recurrence_training):
            monkeypatch.setattr(module, "is_plain_cpu", lambda *weights: False)

    return turn_off


def strong_model(**overrides):
    """Weights that bend the gates and reach the clips."""
    config = tiny_config(**overrides)
    return load_model(config, random_arrays(config)).double().train()


def gradients(model, batch, state: ElmoState | None) -> dict[str, torch.Tensor]:
    """Of all weights and of the state, by a sum in which every result counts otherwise."""
    model.zero_grad()
    given = None
    if state is not None:
        given = ElmoState(**{name: part.clone().requires_grad_() for name, part in state.items()})
    output = model(**batch, state=given)
    torch.manual_seed(0)
    results = (output.last_hidden_state, output.state.outputs, output.state.cells)
    sum((result * torch.randn_like(result)).sum() for result in results).backward()
    found = {name: weight.grad for name, weight in model.named_parameters()}
    if given is not None:
        found |= {name: part.grad for name, part in given.items()}
    return found | {"values": output.last_hidden_state.detach()}


@pytest.mark.parametrize("sentences", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("overrides", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("carried", [False, True], ids=["fresh", "carried"])
def test_gradients_are_autograds(sentences, overrides, carried, plain_path, monkeypatch):
    # several blocks even of short sentences
    monkeypatch.setattr(recurrence_training, "ROWS_AT_ONCE", 7)
    model, batch = strong_model(**overrides), tokenize(sentences)
    state = None
    if carried:
        shape = (len(sentences), model.config.num_hidden_layers, 2)
        sizes = {"outputs": model.config.projection_size, "cells": model.config.cell_size}
        state = ElmoState(**{name: torch.randn(*shape, n).double() for name, n in sizes.items()})
    fast = gradients(model, batch, state)
    plain_path()
    plain = gradients(model, batch, state)
    assert fast.keys() == plain.keys()
    for name, expected in plain.items():
        if expected is None:
            assert fast[name] is None
        else:
            scale = expected.abs().max() if expected.numel() else 0
            assert ((fast[name] - expected).abs() <= ROUNDING * scale).all(), name


@pytest.mark.parametrize("carried", [False, True], ids=["fresh", "carried"])
def test_large_products_are_those_of_onednn(carried, plain_path, monkeypatch):
    model, batch = strong_model().float(), tokenize(BATCHES["mixed"])
    state = model(**batch).state.detach() if carried else None
    taken = []

    def noted(*given, add=None):
        taken.append(given)
        return packed_linear(*given, add=add)

    monkeypatch.setattr(matrix_products, "packed_linear", noted)
    gradients(model, batch, state)
    assert not taken
    monkeypatch.setattr(matrix_products, "MANY", 1)
    fast = gradients(model, batch, state)
    assert len(taken) > 100
    plain_path()
    for name, expected in gradients(model, batch, state).items():
        if expected is not None:
            scale = expected.abs().max() if expected.numel() else 0
            assert ((fast[name] - expected).abs() <= 1e-5 * scale).all(), name


def test_fast_path_serves_only_where_it_may(monkeypatch):
    model, batch = strong_model(), tokenize(BATCHES["mixed"])
    calls = []

    class Counted(BothDirections):
        @staticmethod
        def forward(*args):
            calls.append(args)
            return BothDirections.forward(*args)

    monkeypatch.setattr(recurrence_training, "BothDirections", Counted)

    def taken() -> bool:
        calls.clear()
        model(**batch)
        return bool(calls)

    assert taken()
    with torch.autocast("cpu"):
        assert not taken()
    model.eval()
    assert not taken()
    model.train()
    linears = [layer.forward_cell.input_linear for layer in model.layers]
    hooks = [linear.register_forward_hook(lambda *_: None) for linear in linears]
    assert not taken()
    for hook in hooks:
        hook.remove()
    assert taken()


def test_a_graph_that_is_kept_gives_the_same_gradients_again():
    model, batch = strong_model(), tokenize(BATCHES["mixed"])
    loss = model(**batch).last_hidden_state.square().sum()
    weights = list(model.parameters())
    first = torch.autograd.grad(loss, weights, retain_graph=True)
    second = torch.autograd.grad(loss, weights)
    assert all(torch.equal(*pair) for pair in zip(first, second, strict=True))


def test_gradcheck_of_both_directions():
    torch.manual_seed(0)
    cell, width, sizes = 3, 2, [3, 3, 1]
    shapes = [(4 * cell, width), (4 * cell,), (4 * cell, width), (width, cell)] * 2
    weights = [torch.randn(shape, dtype=torch.double) for shape in shapes]
    rows = [torch.randn(sum(sizes), width, dtype=torch.double) for _ in range(2)]
    state = [torch.randn(2, 3, size, dtype=torch.double) for size in (width, cell)]
    given = [tensor.requires_grad_() for tensor in (*rows, *state, *weights)]

    def read(*given):
        return BothDirections.apply(*given[:4], sizes, (0.9, 0.8), *given[4:])

    assert torch.autograd.gradcheck(read, given)
