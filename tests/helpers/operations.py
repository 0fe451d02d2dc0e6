"""What code asks of torch: how many operations a time step takes, and whether the host waits."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# they make memory and compute nothing
ALLOCATING = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
# with them the host waits for a GPU
WAITING = {"_local_scalar_dense", "equal", "is_nonzero", "item", "masked_select", "nonzero"}


class Counted(TorchDispatchMode):
    """How often each operation runs that a GPU would launch: neither views nor new memory."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name = operation.overloadpacket.__name__
        if not operation.is_view and name not in (*ALLOCATING, "detach"):
            self.counts[name] += 1
        return operation(*args, **kwargs or {})


def count(run: Callable[[], object]) -> Counter[str]:
    with Counted() as mode:
        run()
    return mode.counts


def per_step(run: Callable[[int], object], few: int = 16, many: int = 40) -> float:
    """The operations of one more time step, where `run` takes a number of steps."""
    # the first backward pass makes gradients, and every other adds to them
    run(few)
    fewer, more = (count(lambda steps=steps: run(steps)).total() for steps in (few, many))
    return (more - fewer) / (many - few)


class StaysThere(TorchDispatchMode):
    """Fails if an operation touches a tensor on another device, or has the host wait for one."""

    def __init__(self, device: str):
        super().__init__()
        self.device = device

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name = operation.overloadpacket.__name__
        assert name not in WAITING, f"{name} waits for the device."
        result = operation(*args, **kwargs or {})
        for value in tree_leaves((args, kwargs, result)):
            if isinstance(value, torch.Tensor):
                assert value.device.type == self.device, f"{name} is on {value.device}."
        return result


def peak_memory(run: Callable[[], object], folder: Path) -> int:
    """The most bytes that torch has on the CPU at a time, beyond those it begins with."""
    run()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        run()
    trace = folder / "trace.json"
    profiler.export_chrome_trace(str(trace))
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    changes = [event["args"] for event in events if event["name"] == "[memory]"]
    begin = changes[0]["Total Allocated"] - changes[0]["Bytes"]
    return max(change["Total Allocated"] for change in changes) - begin
