"""What a piece of code asks of torch: counting operations, and refusing those that wait for it."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# They make memory or describe it and compute nothing: nothing is launched on a GPU.
FREE = {"detach", "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
# Each has the host wait for a GPU, or copies between the two.
WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "item", "is_nonzero", "equal"}


def is_free(operation: Any) -> bool:
    """Whether nothing is computed: a view of other memory, or memory without values."""
    return operation.is_view or operation.overloadpacket.__name__ in FREE


class Counted(TorchDispatchMode):
    """How often each operation of torch runs that computes something."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        if not is_free(operation):
            self.counts[operation.overloadpacket.__name__] += 1
        return operation(*args, **kwargs or {})


def count(run: Callable[[], object]) -> Counter[str]:
    with Counted() as mode:
        run()
    return mode.counts


def per_step(run: Callable[[int], object], few: int = 8, many: int = 24) -> float:
    """Operations for one more time step, of something that takes a number of steps."""
    run(few)
    fewer, more = (count(lambda steps=steps: run(steps)).total() for steps in (few, many))
    return (more - fewer) / (many - few)


class NoWaiting(TorchDispatchMode):
    """Fails where the host would wait for a GPU, or something is copied between the two."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name = operation.overloadpacket.__name__
        assert name not in WAITING, f"{name} waits for the GPU."
        assert name not in ("_to_copy", "_copy_from_and_resize"), f"{name} copies to elsewhere."
        result = operation(*args, **kwargs or {})
        return result


__all__ = ["Counted", "NoWaiting", "count", "per_step", "torch"]
