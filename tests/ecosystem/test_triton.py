"""
The Triton kernels of the recurrence: their values in Triton's interpreter on the CPU, and that they
compile for GPUs. Neither shows how fast they are.
"""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch

# Triton asks when a kernel is defined
os.environ["TRITON_INTERPRET"] = "1"

from helpers.operations import per_step
from helpers.tiny import tiny_config

from elmo_hf import recurrence_batched, recurrence_kernels
from elmo_hf.layers_elmo import ElmoLayer
from elmo_hf.recurrence_batched import BATCHED
from elmo_hf.recurrence_interface import LayerInput
from elmo_hf.recurrence_kernels import BLOCK, KERNELS
from elmo_hf.recurrence_plain import PLAIN
from elmo_hf.recurrence_pointwise import OPERATIONS, check

CPU = torch.device("cpu")
# Of the largest value of each result. In low precision a memory cell is rounded, and what is made
# of it once more, each time by half of eps; for bfloat16 the interpreter cuts digits off instead,
# which costs twice as much.
ROUNDING = {
    torch.float32: 1e-6,
    torch.bfloat16: 2 * torch.finfo(torch.bfloat16).eps,
    torch.float16: torch.finfo(torch.float16).eps,
}
CASES = {
    "plain": {},
    "tight-clips": {"cell_clip": 0.05, "projection_clip": 0.05},
    "no-clips": {"cell_clip": None, "projection_clip": None},
    "no-cell-projection": {"cell_size": 8},
}


@pytest.mark.parametrize("clip", [None, 0.3])
@pytest.mark.parametrize("size", [1, 5, BLOCK, BLOCK + 3])
@pytest.mark.parametrize("dtype", ROUNDING, ids=str)
def test_each_kernel_does_what_the_operations_do(dtype, size, clip):
    def random(width: int = size) -> torch.Tensor:
        return torch.randn(3, 2, width).to(dtype)

    def close(found: torch.Tensor, exact: torch.Tensor) -> None:
        bound = ROUNDING[dtype] * exact.abs().max().item()
        torch.testing.assert_close(found.double(), exact, rtol=0, atol=bound)

    def double(*tensors: torch.Tensor) -> list[torch.Tensor]:
        return [tensor.double() for tensor in tensors]

    gates, before, cells, hidden = random(4 * size), random(), random(), random()
    exact = double(gates, before, cells, hidden)
    kept = KERNELS.advance(gates, before, cells, hidden, clip)
    right = OPERATIONS.advance(*exact, clip)
    for found, expected in zip(
        (gates, cells, hidden, kept), (exact[0], *exact[2:], right), strict=True
    ):
        close(found, expected)

    # from what was stored, so that no rounding takes a value across the clip
    given = [random(), random(), gates, cells, kept, kept.tanh(), before, random(4 * size)]
    exact = double(*given)
    KERNELS.retreat(*given)
    OPERATIONS.retreat(*exact)
    for number in (1, 7):
        close(given[number], exact[number])


def test_small_values_keep_their_digits():
    """A tanh by exponentials would lose them."""
    size = 7
    candidate = torch.logspace(-6, 1, size)
    gates = torch.cat([torch.full((2 * size,), 50.0), torch.full((size,), 50.0), candidate])
    gates = gates.expand(1, 2, -1).contiguous()
    cells, hidden = torch.empty(1, 2, size), torch.empty(1, 2, size)
    KERNELS.advance(gates, torch.zeros(1, 2, size), cells, hidden, None)
    torch.testing.assert_close(cells[0, 0].double(), candidate.double().tanh(), rtol=5e-7, atol=0)


def test_what_is_not_a_number_stays_so():
    """So that a training that diverges is noticed."""
    gates = torch.full((1, 2, 4), torch.nan)
    cells, hidden = torch.empty(1, 2, 1), torch.empty(1, 2, 1)
    kept = KERNELS.advance(gates, torch.zeros(1, 2, 1), cells, hidden, 0.3)
    assert cells.isnan().all() and kept.isnan().all() and hidden.isnan().all()


def test_they_pass_the_trial_before_they_are_used():
    for dtype in ROUNDING:
        check(KERNELS, CPU, dtype)


@pytest.fixture
def with_kernels(monkeypatch) -> None:
    """Has the batched backend use them, as on a GPU."""
    monkeypatch.setattr(recurrence_batched, "choose_pointwise", lambda *_: KERNELS)


def make_layer(overrides: dict) -> ElmoLayer:
    layer = ElmoLayer(tiny_config(**overrides), 0).train()
    for weight in layer.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return layer


def make_input(sizes: list[int], state: tuple | None = None) -> LayerInput:
    rows = tuple(torch.randn(sum(sizes), 8) for _ in range(2))
    return LayerInput(rows, (None, None), sizes, state)


@pytest.mark.parametrize("sizes", [[1], [3, 3, 3], [5, 3, 3, 1]], ids=str)
@pytest.mark.parametrize("overrides", CASES.values(), ids=CASES)
def test_a_layer_learns_the_same_with_them(overrides, sizes, with_kernels):
    layer = make_layer(overrides)
    size = layer.forward_cell.cell_size
    state = (torch.randn(2, sizes[0], 8), torch.randn(2, sizes[0], size))
    given = make_input(sizes, state)
    weights = [torch.randn(2, sum(sizes), 8), torch.randn(2, sizes[0], 8)]
    weights.append(torch.randn(2, sizes[0], size))

    def learn(backend) -> list[torch.Tensor]:
        layer.zero_grad()
        output = backend.read(layer, given)
        sum((part * weight).sum() for part, weight in zip(output, weights, strict=True)).backward()
        return [*output, *(weight.grad.clone() for weight in layer.parameters())]

    for found, expected in zip(learn(BATCHED), learn(PLAIN), strict=True):
        bound = 2e-5 * expected.abs().max().item()
        torch.testing.assert_close(found, expected, rtol=0, atol=bound)


class Launched:
    """In place of a kernel: only notes that it is launched."""

    def __init__(self, note: Callable[[], None]):
        self.note = note

    def __getitem__(self, grid: tuple[int, int]) -> Callable[..., None]:
        return lambda *args, **kwargs: self.note()


def test_operations_of_a_time_step(with_kernels, monkeypatch):
    """
    The kernels among them, each of which is one launch, and both directions together. The
    interpreter, which copies what a kernel touches, is left out.
    """
    launches = 0

    def note() -> None:
        nonlocal launches
        launches += 1

    for name in ("advance_kernel", "retreat_kernel"):
        monkeypatch.setattr(recurrence_kernels, name, Launched(note))
    layer = make_layer({})

    def read(steps: int) -> None:
        output = BATCHED.read(layer, make_input([3] * steps))
        if layer.training:
            sum(part.sum() for part in output).backward()

    def launches_of(steps: int) -> int:
        nonlocal launches
        launches = 0
        read(steps)
        return launches

    assert per_step(read) == 7 and launches_of(7) == 14
    layer.eval()
    with torch.no_grad():
        assert per_step(read) == 3 and launches_of(7) == 7


COMPILE = """
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

from elmo_hf.recurrence_kernels import BLOCK, advance_kernel, retreat_kernel

TARGETS = [GPUTarget("cuda", 75, 32), GPUTarget("cuda", 90, 32), GPUTarget("hip", "gfx942", 64)]
for target in TARGETS:
    for dtype in ("fp32", "bf16", "fp16"):
        for kernel, fixed in (
            (advance_kernel, {"CLIP": 3.0}), (advance_kernel, {"CLIP": None}), (retreat_kernel, {})
        ):
            fixed = {**fixed, "BLOCK": BLOCK}
            types = {name: "*" + dtype for name in kernel.arg_names} | {"size": "i32"}
            types |= dict.fromkeys(fixed, "constexpr")
            binary = compile(ASTSource(kernel, types, fixed), target=target)
            print(target.arch, dtype, kernel.__name__, list(binary.asm)[-1])
"""


def test_they_compile_for_gpus(tmp_path):
    """To the binary that a GPU of NVIDIA or AMD runs; this needs none."""
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    del environment["TRITON_INTERPRET"]
    done = subprocess.run(
        [sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 27 and all(line.endswith((" cubin", " hsaco")) for line in lines)
