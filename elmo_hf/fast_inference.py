# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The fast path of inference on a CPU: packed weights, and an LSTM loop that allocates little.

A product with few rows, which is every step of an LSTM, runs two to four times faster when the
weight lies in the blocked order of oneDNN. torch packs weights this way inside its compiler only,
so this is the one file that calls private operators. Where they are missing or refuse, `pack`
returns None and the model takes its plain path.
"""

import torch


class PackedWeight:
    """
    A copy of a linear layer's weight in oneDNN's own order.

    It knows which weight it is a copy of, and whether that weight has changed since: it is moved
    (`data_ptr`), written to under autograd's eyes (`_version`), or behind its back (`.data`), which
    a sample of the values tells.
    """

    SAMPLES = 32
    # From here on the plain product is as fast, and needs no kernel made for this number of rows.
    MANY_ROWS = 160

    def __init__(self, weight: torch.Tensor):
        weight = weight.detach()
        self.width = len(weight)
        # the number of rows is only a hint for the block size; 32 was as good as any from 1 to 512
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight, 32)
        self.place, self.version = weight.data_ptr(), weight._version
        self.watched = weight.view(-1)[:: max(1, weight.numel() // self.SAMPLES)]
        self.seen = self.watched.clone()

    def is_of(self, weight: torch.Tensor) -> bool:
        return (
            weight.data_ptr() == self.place
            and weight._version == self.version
            and torch.equal(self.watched, self.seen)
        )

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

    def __reduce__(self):
        # a copied or unpickled model starts unprepared: packed memory cannot be copied
        return _nothing, ()


def _nothing() -> None:
    return None


def pack(weight: torch.Tensor) -> PackedWeight | None:
    """A packed copy, or None where packing cannot work: not on a CPU, not in float32, no oneDNN."""
    if weight.device.type != "cpu" or weight.dtype != torch.float32 or weight.is_inference():
        return None
    if not torch.backends.mkldnn.is_available():
        return None
    try:
        packed = PackedWeight(weight.contiguous())
        packed(weight.new_zeros(1, weight.shape[1]))
    except (AttributeError, RuntimeError):
        # the operators are private: another torch may not have them
        return None
    return packed if packed.is_of(weight) else None


def advance(gates: torch.Tensor, cell: torch.Tensor, cell_clip: float | None) -> torch.Tensor:
    """One step of LSTMs, overwriting `gates` and `cell`; returns the output to be projected."""
    size = cell.shape[-1]
    input_gate, forget_gate, output_gate = gates[..., : 3 * size].sigmoid_().chunk(3, dim=-1)
    candidate = gates[..., 3 * size :].tanh_()
    cell.mul_(forget_gate).addcmul_(input_gate, candidate)
    if cell_clip is not None:
        cell.clamp_(-cell_clip, cell_clip)
    return torch.tanh(cell).mul_(output_gate)


def read_stream(
    inputs: torch.Tensor,
    places: torch.Tensor | None,
    batch_sizes: list[int],
    state: tuple[torch.Tensor, torch.Tensor] | None,
    recurrent: PackedWeight,
    projection: PackedWeight | None,
    cell_clip: float | None,
    projection_clip: float | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """
    One LSTM over one stream, writing in place; the arithmetic of `ElmoLstmCell`.

    `inputs` holds the gates' share of the input, (rows, 4 * cell_size); the stream is
    `inputs[places]`, or `inputs` itself. Returns the outputs as a stream and the last state.
    """
    size = inputs.shape[1] // 4
    width = size if projection is None else projection.width
    cell = inputs.new_zeros(batch_sizes[0], size) if state is None else state[1].clone()
    output = None if state is None else state[0]
    stream = inputs.new_empty(sum(batch_sizes), width)
    ended = []
    start = 0
    for alive in batch_sizes:
        end = start + alive
        some = slice(start, end)
        gates = inputs[some] if places is None else inputs.index_select(0, places[some])
        if output is not None:
            if alive < len(output):
                ended.append(output[alive:])
                output = output[:alive]
            gates = recurrent(output, add=gates)  # (alive, 4 * cell_size)
        elif places is None:
            gates = gates.clone()
        made = advance(gates, cell[:alive], cell_clip)  # (alive, cell_size)
        if projection is not None:
            made = projection(made)  # (alive, projection_size)
        output = stream[start:end]
        if projection is None or projection_clip is None:
            output.copy_(made)
        else:
            torch.clamp(made, -projection_clip, projection_clip, out=output)
        start = end
    # sentences end shortest first, and the shortest comes last
    return stream, torch.cat([stream[start - alive : start], *reversed(ended)]), cell


class PairedWeights:
    """
    Both directions' weights of one layer in one piece, for a batch of one sentence.

    One row is too little work for two cores, but one row for each direction is not: a batched
    product gives each core its own. Only worth it while the weights stay in the cache.
    """

    LARGEST = 1 << 20  # numbers in one recurrent weight; 4 MB

    def __init__(self, recurrent: list[torch.Tensor], projection: list[torch.Tensor]):
        # the recurrent product is read along its rows, the projection along its columns
        self.recurrent = torch.stack([weight.detach().T for weight in recurrent])
        self.projection = None
        if projection:
            self.projection = torch.stack([weight.detach() for weight in projection]).mT

    def __reduce__(self):
        return _nothing, ()


def pair(recurrent: list[torch.Tensor], projection: list[torch.Tensor]) -> PairedWeights | None:
    """Both directions' weights together, or None where that cannot work or does not pay."""
    weights = [*recurrent, *projection]
    if any(weight.device.type != "cpu" or weight.dtype != torch.float32 for weight in weights):
        return None
    if recurrent[0].numel() > PairedWeights.LARGEST:
        return None
    return PairedWeights(recurrent, projection)


def read_pair(
    inputs: torch.Tensor,
    state: tuple[torch.Tensor, torch.Tensor] | None,
    weights: PairedWeights,
    cell_clip: float | None,
    projection_clip: float | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """
    Both LSTMs of a layer over one sentence, from (2, tokens, 4 * cell_size) of the gates' inputs.

    The state, given and returned, is (2, 1, projection_size) and (2, 1, cell_size); the outputs are
    (2, tokens, projection_size).
    """
    cell = inputs.new_zeros(2, 1, inputs.shape[2] // 4) if state is None else state[1].clone()
    outputs = [] if state is None else [state[0]]
    for gates in inputs.split(1, dim=1):
        # from zeros there is nothing to multiply, but `advance` must not overwrite the inputs
        product = torch.baddbmm(gates, outputs[-1], weights.recurrent) if outputs else gates.clone()
        output = advance(product, cell, cell_clip)
        if weights.projection is not None:
            output = torch.bmm(output, weights.projection)
            if projection_clip is not None:
                output.clamp_(-projection_clip, projection_clip)
        outputs.append(output)
    return torch.cat(outputs[-inputs.shape[1] :], dim=1), outputs[-1], cell
