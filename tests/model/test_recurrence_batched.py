"""The batched backend: gradients, low precision, how many operations it takes, what it keeps."""

import copy
import sys
from types import SimpleNamespace

import pytest
import torch
from helpers.operations import StaysThere, peak_memory, per_step
from helpers.tiny import random_arrays, tiny_config, tokenize
from test_prepared_weights import BATCHES
from test_recurrence import CASES, SIZES, close, make_input, make_layer

from elmo_hf import ElmoConfig, recurrence, recurrence_batched, recurrence_pointwise
from elmo_hf.conversion.building import load_model
from elmo_hf.layers_elmo import ElmoLayer
from elmo_hf.recurrence import choose_backend
from elmo_hf.recurrence_batched import BATCHED, BothDirections
from elmo_hf.recurrence_interface import LayerInput
from elmo_hf.recurrence_plain import PLAIN
from elmo_hf.recurrence_pointwise import OPERATIONS, check, choose_pointwise
from elmo_hf.recurrence_steps import Settings

LONG = {**SIZES, "falling-every-step": [7, 6, 5, 4, 3, 2, 1], "long": [9] * 20 + [4] * 7}
LOW = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def convert(given: LayerInput, dtype: torch.dtype) -> LayerInput:
    state = None if given.state is None else tuple(part.to(dtype) for part in given.state)
    return given._replace(rows=tuple(rows.to(dtype) for rows in given.rows), state=state)


def results_and_gradients(
    backend, layer: ElmoLayer, given: LayerInput, low: torch.dtype | None = None
) -> dict[str, torch.Tensor]:
    """
    What a backend returns, and the gradients of all it was given, by a sum in which every result
    counts otherwise. `low` is the precision of autocast, if it is on.
    """
    layer.zero_grad()
    rows = tuple(part.clone().requires_grad_() for part in given.rows)
    state = tuple(part.clone().requires_grad_() for part in given.state or ())
    with torch.autocast("cpu", low or torch.bfloat16, enabled=low is not None):
        output = backend.read(layer, given._replace(rows=rows, state=state or None))
    torch.manual_seed(2)
    weights = [torch.randn(part.shape, dtype=torch.double) for part in output]
    sum((part * weight).sum() for part, weight in zip(output, weights, strict=True)).backward()
    found = {f"result {number}": part.detach() for number, part in enumerate(output)}
    found |= {f"given {number}": part.grad for number, part in enumerate((*rows, *state))}
    for name, weight in layer.named_parameters():
        # of a single step from zeros, autograd knows no gradient of the recurrent weights
        found[name] = torch.zeros_like(weight) if weight.grad is None else weight.grad.clone()
    return found


@pytest.mark.parametrize("state", [False, True], ids=["fresh", "state"])
@pytest.mark.parametrize("distinct", [False, True], ids=["stream", "distinct"])
@pytest.mark.parametrize("sizes", LONG.values(), ids=LONG)
@pytest.mark.parametrize("overrides", CASES.values(), ids=CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_gradients_are_autograds(dtype, overrides, sizes, distinct, state):
    layer = make_layer(overrides, dtype).train()
    given = make_input(layer, sizes, dtype, distinct, state)
    found, expected = (results_and_gradients(some, layer, given) for some in (BATCHED, PLAIN))
    assert found.keys() == expected.keys()
    # a sum over up to 208 tokens
    bound = {torch.float32: 2e-5, torch.float64: 5e-14}[dtype]
    for name, plain in expected.items():
        assert (found[name] - plain).abs().max() <= bound * plain.abs().max(), name


def root_mean_square(values: torch.Tensor) -> float:
    return values.double().square().mean().sqrt().item()


@pytest.mark.parametrize("autocast", [False, True], ids=["weights", "autocast"])
@pytest.mark.parametrize("sizes", LONG.values(), ids=LONG)
@pytest.mark.parametrize("case", ["plain", "no-clips", "no-cell-projection"])
@pytest.mark.parametrize("low", LOW.values(), ids=LOW)
def test_low_precision_is_as_exact_as_autograds(low, case, sizes, autocast):
    """
    Both are compared with double precision. Not with clips that are often reached: where rounding
    takes a value across one, a gradient comes or goes, in either backend.
    """
    layer = make_layer(CASES[case], torch.float32 if autocast else low).train()
    given = convert(make_input(layer, sizes, torch.float32, False, True), low)
    truth = copy.deepcopy(layer).double()
    exact = results_and_gradients(PLAIN, truth, convert(given, torch.float64))
    kind = low if autocast else None
    found, plain = (results_and_gradients(some, layer, given, kind) for some in (BATCHED, PLAIN))
    ours_together = plains_together = 0.0
    for name, right in exact.items():
        assert found[name].dtype == plain[name].dtype, name
        scale = root_mean_square(right) or 1.0
        ours = root_mean_square(found[name].double() - right) / scale
        plains = root_mean_square(plain[name].double() - right) / scale
        assert ours <= 3 * plains + 2 * torch.finfo(low).eps, name
        ours_together, plains_together = ours_together + ours, plains_together + plains
    assert ours_together <= 1.25 * plains_together


@pytest.mark.parametrize("read", [BATCHED.read, PLAIN.read], ids=["batched", "plain"])
def test_values_at_the_very_edge_of_a_clip_have_gradients(read):
    """As torch.clamp has it; in low precision many a value is rounded to an edge."""
    # half of tanh 1/2
    edge = 0.5 * torch.tanh(torch.tensor(0.5, dtype=torch.double)).item()
    config = tiny_config(cell_clip=0.5, projection_clip=edge)
    layer, size = ElmoLayer(config, 0).double().train(), config.cell_size
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
        for cell in (layer.forward_cell, layer.backward_cell):
            # sigmoid 0 is 1/2, and the candidate is 1 up to 1e-26, which rounds to 1
            cell.input_linear.bias[3 * size :] = 30
            cell.projection.weight.copy_(torch.eye(8, size))
    rows = tuple(torch.zeros(1, 8, dtype=torch.double) for _ in range(2))
    output = read(layer, LayerInput(rows, (None, None), [1], None))
    assert (output.cells == 0.5).all() and (output.streams == edge).all()
    output.streams.sum().backward()
    bias = layer.forward_cell.input_linear.bias.grad
    # of the input gate it goes through the memory cell, of the output gate past it
    input_gate, _, output_gate, _ = bias.chunk(4)
    assert (input_gate[:8] > 0).all() and (output_gate[:8] > 0).all()


def test_gradcheck():
    torch.manual_seed(0)
    cell, width, sizes = 3, 2, [3, 3, 1]
    shapes = [(4 * cell, width), (4 * cell,), (4 * cell, width), (width, cell)] * 2
    weights = [torch.randn(shape, dtype=torch.double) for shape in shapes]
    rows = [torch.randn(sum(sizes), width, dtype=torch.double) for _ in range(2)]
    state = [torch.randn(3, 2, size, dtype=torch.double) for size in (width, cell)]
    given = [tensor.requires_grad_() for tensor in (*rows, *state, *weights)]
    settings = Settings(sizes, (0.9, 0.8), OPERATIONS)

    def read(*given):
        return BothDirections.apply(*given[:4], settings, *given[4:])

    assert torch.autograd.gradcheck(read, given)


@pytest.mark.parametrize("batch", ["one-word", "empty-sentence", "mixed"])
@pytest.mark.parametrize("layers", [1, 2])
def test_whole_models_learn_the_same(layers, batch, monkeypatch):
    """With skip connections, on awkward batches, with a state carried from call to call."""
    config = tiny_config(num_hidden_layers=layers)
    model = load_model(config, random_arrays(config)).double().train()
    given = tokenize(BATCHES[batch])

    def learn(backend) -> list[torch.Tensor]:
        only = backend._replace(can_read=lambda *_: True)
        monkeypatch.setattr(recurrence, "BACKENDS", (only,))
        model.zero_grad()
        state = model(**given).state
        output = model(**given, state=state)
        (output.last_hidden_state.square().sum() + output.state.cells.sum()).backward()
        gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
        return [output.last_hidden_state.detach(), *gradients]

    found, expected = learn(BATCHED), learn(PLAIN)
    assert len(found) == len(expected) > 10
    for ours, plain in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, plain, rtol=0, atol=1e-11 * (1 + plain.abs().sum().item()))


def read_steps(layer: ElmoLayer, sizes: list[int], device: str = "cpu") -> None:
    """Inference in `eval` mode, else training there and back."""
    given = make_input(layer, sizes, torch.float32, distinct=True, state=False)
    given = given._replace(
        rows=tuple(rows.to(device) for rows in given.rows),
        positions=tuple(positions.to(device) for positions in given.positions),
    )
    with torch.set_grad_enabled(layer.training):
        output = BATCHED.read(layer, given)
    if layer.training:
        sum(part.sum() for part in output).backward()


@pytest.mark.parametrize("batch", ["equal", "falling"])
@pytest.mark.parametrize("overrides", CASES.values(), ids=CASES)
def test_operations_of_a_time_step(overrides, batch):
    """
    Of both directions together; the plain backend takes 24 in inference and 82 in training. A
    sentence that ends costs one more. A change that needs more of them has to say why.
    """
    layer = make_layer(overrides, torch.float32)

    def run(steps: int) -> None:
        read_steps(layer, [3] * steps if batch == "equal" else list(range(steps, 0, -1)))

    assert per_step(run) <= 10
    layer.train()
    assert per_step(run) <= (25 if batch == "equal" else 26)


def test_operations_of_the_plain_backend():
    """The figures that others are compared with, by the same way of counting."""
    layer = make_layer({}, torch.float32).train()

    def read(steps: int) -> list[torch.Tensor]:
        given = make_input(layer, [3] * steps, torch.float32, distinct=False, state=False)
        return list(PLAIN.read(layer, given))

    with torch.no_grad():
        assert per_step(read) == 24
    assert per_step(lambda steps: sum(part.sum() for part in read(steps)).backward()) == 82


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("overrides", CASES.values(), ids=CASES)
def test_the_host_never_waits_for_the_device(overrides, training):
    """
    On a device without values, where nothing can be copied back, no operation touches a tensor of
    the host, and none waits.
    """
    layer = make_layer(overrides, torch.float32).to("meta").train(training)
    given = make_input(
        make_layer(overrides, torch.float32), [5, 3, 3, 1], torch.float32, True, True
    )

    def there(tensors):
        return tuple(
            tensor.to("meta").requires_grad_(tensor.is_floating_point()) for tensor in tensors
        )

    given = LayerInput(there(given.rows), there(given.positions), given.batch_sizes, given.state)
    given = given._replace(state=there(given.state))
    with torch.set_grad_enabled(training):
        assert choose_backend(layer, given) is BATCHED
        with StaysThere("meta"):
            output = BATCHED.read(layer, given)
            if training:
                sum(part.sum() for part in output).backward()
    assert not training or all(weight.grad is not None for weight in layer.parameters())


def test_a_long_stream_is_read_in_windows(monkeypatch):
    layer = make_layer({}, torch.float64)
    given = make_input(layer, [5, 3, 3, 1], torch.float64, True, state=True)
    with torch.no_grad():
        expected = PLAIN.read(layer, given)
        for tokens in (1, 4, 6):
            monkeypatch.setattr(recurrence_batched, "TOKENS_AT_ONCE", tokens)
            close(BATCHED.read(layer, given), expected, torch.float64)


@pytest.mark.parametrize(("cell", "width", "batch"), [(256, 32, 32), (512, 64, 8)])
def test_training_takes_less_memory_than_autograd(cell, width, batch, tmp_path):
    """Two layers, with 20 and with 2.5 times as many tokens as an output has numbers."""
    layers = [ElmoLayer(ElmoConfig(cell_size=cell, projection_size=width), 0) for _ in range(2)]
    for layer in layers:
        for weight in layer.train().parameters():
            torch.nn.init.normal_(weight, std=0.05)
    rows = (torch.randn(batch * 20, width),) * 2

    def train(backend) -> None:
        streams = rows
        for layer in layers:
            layer.zero_grad()
            given = LayerInput(tuple(streams), (None, None), [batch] * 20, None)
            streams = backend.read(layer, given).streams
        sum(stream.sum() for stream in streams).backward()

    ours, plain = (
        peak_memory(lambda some=some: train(some), tmp_path) for some in (BATCHED, PLAIN)
    )
    assert ours <= plain


def test_a_graph_that_is_kept_gives_the_same_gradients_again():
    layer = make_layer({}, torch.float32).train()
    given = make_input(layer, [5, 3, 3, 1], torch.float32, False, True)
    loss = BATCHED.read(layer, given).streams.square().sum()
    weights = list(layer.parameters())
    first = torch.autograd.grad(loss, weights, retain_graph=True)
    second = torch.autograd.grad(loss, weights)
    assert all(torch.equal(*pair) for pair in zip(first, second, strict=True))


def test_gradients_of_gradients():
    """They are refused in training; in `eval` mode autograd serves, which has them."""
    layer = make_layer({}, torch.bfloat16).train()
    given = make_input(layer, [2, 1], torch.float32, False, False)
    given = convert(given, torch.bfloat16)
    weight = layer.forward_cell.recurrent_linear.weight

    def slope() -> torch.Tensor:
        streams = recurrence.read_layer(layer, given).streams
        return torch.autograd.grad(streams.square().sum(), weight, create_graph=True)[0]

    with pytest.raises(RuntimeError, match="differentiate twice"):
        slope().sum().backward()
    layer.eval()
    slope().sum().backward()
    assert weight.grad.abs().sum() > 0


def test_it_serves_only_where_it_may(monkeypatch):
    layer = make_layer({}, torch.bfloat16).train()
    given = convert(make_input(layer, [2, 1], torch.float32, False, True), torch.bfloat16)

    def chosen(these=given) -> str:
        return choose_backend(layer, these).name

    assert chosen() == "batched"
    # not what torch would refuse, so that it says so itself
    assert chosen(given._replace(rows=tuple(rows.float() for rows in given.rows))) == "plain"
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert chosen() == "plain"
    monkeypatch.undo()
    hook = layer.backward_cell.projection.register_forward_hook(lambda *_: None)
    assert chosen() == "plain"
    hook.remove()
    layer.eval()
    # unless there is nothing to differentiate, as in a frozen biLM
    assert chosen() == "plain"
    assert choose_backend(layer.requires_grad_(False), given).name == "batched"
    layer.double()
    with torch.autocast("cpu", torch.bfloat16):
        assert chosen(convert(given, torch.float64)) == "plain"


def test_autocast_in_the_backward_pass_changes_nothing():
    layer = make_layer({}, torch.float32).train()
    given = make_input(layer, [3, 2], torch.float32, False, False)
    weights = list(layer.parameters())
    expected = torch.autograd.grad(BATCHED.read(layer, given).streams.sum(), weights)
    loss = BATCHED.read(layer, given).streams.sum()
    with torch.autocast("cpu", torch.bfloat16):
        found = torch.autograd.grad(loss, weights)
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))


def test_kernels_that_do_not_work_are_not_used(monkeypatch):
    """Where there is no GPU, trying them out fails, as it may on one that Triton cannot serve."""
    device = torch.device("cuda:0")
    monkeypatch.setitem(sys.modules, "elmo_hf.recurrence_kernels", None)
    choose_pointwise.cache_clear()
    # Triton is not there
    assert choose_pointwise(device, torch.float32) is OPERATIONS
    monkeypatch.setitem(
        sys.modules, "elmo_hf.recurrence_kernels", SimpleNamespace(KERNELS=OPERATIONS)
    )
    choose_pointwise.cache_clear()
    warnings = []
    monkeypatch.setattr(recurrence_pointwise.logger, "warning", warnings.append)
    if not torch.cuda.is_available():
        assert choose_pointwise(device, torch.bfloat16) is OPERATIONS
        assert len(warnings) == 1 and "do not work on cuda:0" in warnings[0]
    assert choose_pointwise(torch.device("cpu"), torch.bfloat16) is OPERATIONS
    choose_pointwise.cache_clear()


def test_wrong_kernels_are_noticed():
    cpu = torch.device("cpu")

    def advance(gates, before, cells, hidden, clip):
        kept = OPERATIONS.advance(gates, before, cells, hidden, clip)
        hidden[0, 0, 0] += 0.2
        return kept

    for dtype in (torch.float32, torch.bfloat16):
        check(OPERATIONS, cpu, dtype)
        with pytest.raises(AssertionError, match="not close"):
            check(OPERATIONS._replace(advance=advance), cpu, dtype)
