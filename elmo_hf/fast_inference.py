# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The fast path of inference on a CPU: weights copied into the order that a product likes best.

Three kinds of copies, each made by `prepare_for_inference` and each aware of what it is a copy of:
`PackedWeight` for one linear layer, `PairedWeights` or `SingleWeights` for the LSTMs, and
`CharacterTables` for the convolutions. Where a copy cannot be made, the model takes its plain path.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import TypeVar

import torch
from torch import nn

from .character_tables import make_tables

# rows of a stream whose input products are made together
ROWS_AT_ONCE = 256


class FastCopy:
    """
    A copy of weights that knows whether they have changed since.

    A weight is moved (`data_ptr`), written to under autograd's eyes (`_version`), or behind its
    back (`.data`), which a sample of its values tells. One made in inference mode has no versions.
    """

    SAMPLES = 32

    def __init__(self, *weights: torch.Tensor):
        self.originals = []
        for weight in weights:
            watched = weight.detach().view(-1)[:: max(1, weight.numel() // self.SAMPLES)]
            self.originals.append((weight.data_ptr(), version(weight), watched, watched.clone()))

    def is_of(self, *weights: torch.Tensor) -> bool:
        return len(weights) == len(self.originals) and all(
            weight.data_ptr() == place and version(weight) == number and torch.equal(watched, seen)
            for weight, (place, number, watched, seen) in zip(weights, self.originals, strict=True)
        )

    def __reduce__(self):
        # a copied or unpickled model starts unprepared: packed memory cannot be copied
        return _nothing, ()


def _nothing() -> None:
    return None


def version(weight: torch.Tensor) -> int | None:
    return None if weight.is_inference() else weight._version


Copy = TypeVar("Copy", bound=FastCopy)


def usable(copy: Copy | None, *weights: torch.Tensor) -> Copy | None:
    """The copy of these weights, where no gradients are wanted and nothing has changed since."""
    if copy is None or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
        return None
    if not copy.is_of(*weights):
        return None
    return copy


def runs_plainly(*weights: torch.Tensor) -> bool:
    """Whether torch computes with these as they are: on a CPU, in full precision, step by step."""
    return (
        not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
        and all(
            weight.device.type == "cpu" and weight.dtype in (torch.float32, torch.float64)
            for weight in weights
        )
    )


def can_copy(*weights: torch.Tensor) -> bool:
    """Whether there are weights, of the kind that the copies are faster for."""
    return bool(weights) and all(
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and weight.is_contiguous()
        and not weight.is_inference()
        for weight in weights
    )


class PackedMatrix:
    """
    A weight in the blocked order of oneDNN, two to four times faster for few rows.

    torch packs weights this way inside its compiler only, so this class calls private operators.
    """

    def __init__(self, weight: torch.Tensor):
        # the number of rows is only a hint for the block size; 32 was as good as any from 1 to 512
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight, 32)

    def __call__(
        self,
        inputs: torch.Tensor,
        bias: torch.Tensor | None = None,
        add: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """inputs W^T, plus `bias` (a vector), plus `add` (of the result's shape)."""
        product = torch.ops.mkldnn._linear_pointwise
        if add is None:
            return product(inputs, self.packed, bias, "none", [], "")
        return product.binary(inputs, add, self.packed, bias, "add")


@functools.cache
def can_pack() -> bool:
    """Whether this torch has the operators, and they work: they are private."""
    try:
        packed = PackedMatrix(torch.zeros(2, 3))
        return bool(packed(torch.zeros(1, 3), add=torch.ones(1, 2)).eq(1).all())
    except (AttributeError, RuntimeError):
        return False


class PackedWeight(FastCopy):
    """A linear layer's weight, packed."""

    # From here on the plain product is as fast, and needs no kernel made for this number of rows.
    MANY_ROWS = 160
    # oneDNN makes and keeps a kernel for every number of rows: powers of two up to this one, and
    # its multiples, are few, and what they add costs next to nothing
    FEW_ROWS = 16

    def __init__(self, weight: torch.Tensor):
        super().__init__(weight)
        self.matrix = PackedMatrix(weight.detach())

    def __call__(self, inputs: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        rows = len(inputs)
        step = min(self.FEW_ROWS, 1 << (rows - 1).bit_length())
        if rows % step:
            inputs = nn.functional.pad(inputs, (0, 0, 0, -rows % step))
        return self.matrix(inputs, bias)[:rows]


def pack(weight: torch.Tensor) -> PackedWeight | None:
    """A packed copy, or None where packing cannot work."""
    return PackedWeight(weight) if can_copy(weight) and can_pack() else None


class PairedWeights(FastCopy):
    """
    The weights by which the LSTMs of both directions go from step to step, in one piece.

    A batched product gives each core a direction of its own, so that none waits for another in the
    middle of a product: the fastest for any number of rows while the weights stay in the caches.
    """

    LARGEST = 1 << 20  # numbers in a recurrent weight; 4 MB

    def __init__(self, recurrent: list[torch.Tensor], projection: list[torch.Tensor]):
        super().__init__(*recurrent, *projection)
        self.cell_size, self.width = len(recurrent[0]) // 4, recurrent[0].shape[1]
        self.recurrent = torch.stack([double_candidates(weight).T for weight in recurrent])
        self.projection = None
        if projection:
            self.projection = 2 * torch.stack([weight.detach().T for weight in projection])

    def gates(self, given: list[torch.Tensor], outputs: torch.Tensor | None, out: torch.Tensor):
        """(2, rows, 4 * cell_size), from the input's share and the last outputs; in `out`."""
        gates = torch.stack(given, out=out)
        return gates if outputs is None else gates.baddbmm_(outputs, self.recurrent)

    def project(self, halves: torch.Tensor) -> torch.Tensor:
        """(2, rows, projection_size), from halves of what is to be projected."""
        return halves.mul_(2) if self.projection is None else torch.bmm(halves, self.projection)


class SingleWeights(FastCopy):
    """The same for one direction, packed, where the weights are too large for the caches."""

    def __init__(self, recurrent: list[torch.Tensor], projection: list[torch.Tensor]):
        super().__init__(*recurrent, *projection)
        self.cell_size, self.width = len(recurrent[0]) // 4, recurrent[0].shape[1]
        self.recurrent = PackedMatrix(double_candidates(recurrent[0]))
        self.projection = PackedMatrix(2 * projection[0].detach()) if projection else None

    def gates(self, given: list[torch.Tensor], outputs: torch.Tensor | None, out: torch.Tensor):
        gates = given[0] if outputs is None else self.recurrent(outputs[0], add=given[0])
        return gates.unsqueeze(0)

    def project(self, halves: torch.Tensor) -> torch.Tensor:
        if self.projection is None:
            return halves.mul_(2)
        return self.projection(halves[0]).unsqueeze(0)


def double_candidates(weight: torch.Tensor) -> torch.Tensor:
    """A copy of a recurrent weight that makes twice the candidates, as `advance` wants them."""
    doubled = weight.detach().clone()
    doubled.chunk(4)[3].mul_(2)
    return doubled


def copy_recurrent(
    recurrent: list[torch.Tensor], projection: list[torch.Tensor]
) -> dict[tuple[int, ...], PairedWeights | SingleWeights]:
    """
    Copies of both directions' weights, by the directions they serve: one for both, one for each, or
    none where it cannot work.
    """
    if not can_copy(*recurrent, *projection):
        return {}
    if recurrent[0].numel() <= PairedWeights.LARGEST:
        return {(0, 1): PairedWeights(recurrent, projection)}
    if not can_pack():
        return {}
    return {
        (direction,): SingleWeights([recurrent[direction]], projection[direction:][:1])
        for direction in range(2)
    }


def advance(gates: torch.Tensor, doubled: torch.Tensor, cell_clip: float | None) -> torch.Tensor:
    """
    One step of LSTMs, overwriting `gates` and the `doubled` memory cells; returns half of the
    outputs to be projected.

    tanh x is 2 sigmoid(2 x) - 1. A sigmoid costs half of a tanh, and one pass does all gates, with
    twice the candidate among them. To double and to halve is exact, and with 1/2 taken off first,
    all that is lost is the rounding of the sigmoid itself, 3e-8.
    """
    input_gate, forget_gate, output_gate, candidate = gates.sigmoid_().chunk(4, dim=-1)
    doubled.mul_(forget_gate).addcmul_(input_gate, candidate.sub_(0.5), value=4)
    if cell_clip is not None:
        doubled.clamp_(-2 * cell_clip, 2 * cell_clip)
    return torch.sigmoid(doubled).sub_(0.5).mul_(output_gate)


def gate_inputs(
    linear: nn.Module, rows: torch.Tensor, index: torch.Tensor | None, batch_sizes: list[int]
) -> Iterator[torch.Tensor]:
    """
    What a stream's input says to the gates, step by step, with twice the candidates.

    The stream is `rows[index]`, where each row is multiplied once, however often it stands there;
    or `rows` itself, where the rows of some steps are multiplied at a time: what they become stays
    in the caches, and a long text takes no more memory than a short one.
    """

    def multiply(some: torch.Tensor) -> torch.Tensor:
        inputs = linear(some)
        inputs[:, inputs.shape[1] // 4 * 3 :].mul_(2)
        return inputs

    if index is not None:
        inputs = multiply(rows)
        yield from (inputs.index_select(0, places) for places in index.split(batch_sizes))
        return
    start, sizes = 0, []
    for number, alive in enumerate(batch_sizes, start=1):
        sizes.append(alive)
        if sum(sizes) >= ROWS_AT_ONCE or number == len(batch_sizes):
            yield from multiply(rows[start : start + sum(sizes)]).split(sizes)
            start, sizes = start + sum(sizes), []


def read_streams(
    linears: Sequence[nn.Module],
    rows: list[torch.Tensor],
    places: list[torch.Tensor | None],
    batch_sizes: list[int],
    state: tuple[torch.Tensor, torch.Tensor] | None,
    weights: PairedWeights | SingleWeights,
    cell_clip: float | None,
    projection_clip: float | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What `ElmoLstmCell` and its `input_linear` do, for one direction or both."""
    outputs: torch.Tensor | None = None
    doubled = rows[0].new_zeros(len(rows), batch_sizes[0], weights.cell_size)
    if state is not None:
        outputs, doubled = state[0], 2 * state[1]
    streams = rows[0].new_empty(len(rows), sum(batch_sizes), weights.width)
    ended = []
    inputs = [
        gate_inputs(linear, some, index, batch_sizes)
        for linear, some, index in zip(linears, rows, places, strict=True)
    ]
    steps = zip(batch_sizes, streams.split(batch_sizes, dim=1), *inputs, strict=True)
    # written over while the number of rows stays: memory that is in the caches is the fastest
    buffer = None
    for alive, stream, *given in steps:
        if outputs is not None and alive < outputs.shape[1]:
            ended.append(outputs[:, alive:])
            outputs = outputs[:, :alive]
        if buffer is None or buffer.shape[1] != alive:
            buffer = stream.new_empty(len(given), alive, 4 * weights.cell_size)
        gates = weights.gates(given, outputs, buffer)
        projected = weights.project(advance(gates, doubled[:, :alive], cell_clip))
        if projection_clip is None:
            stream.copy_(projected)
        else:
            torch.clamp(projected, -projection_clip, projection_clip, out=stream)
        outputs = stream
    # sentences end shortest first, and the shortest comes last
    return streams, torch.cat([stream, *reversed(ended)], dim=1), doubled.div_(2)


class CharacterTables(FastCopy):
    """The tables that stand for the convolutions over a word's characters."""

    def __init__(self, embeddings: torch.Tensor, *kernels: torch.Tensor):
        super().__init__(embeddings, *kernels)
        self.tables = make_tables(embeddings.detach(), [kernel.detach() for kernel in kernels])


def tabulate(*weights: torch.Tensor) -> CharacterTables | None:
    """The tables of embeddings and kernels, or None where they cannot work."""
    return CharacterTables(*weights) if can_copy(*weights) else None
