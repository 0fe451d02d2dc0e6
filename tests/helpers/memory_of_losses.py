"""A program: by how many bytes the full softmax of many targets raises the peak of memory.

    memory_of_losses.py WORDS TARGETS

The freed memory is kept, as in a training.
"""

import sys
from pathlib import Path

import torch

from elmo_hf.softmax_elmo import ElmoSoftmax
from elmo_hf.system.memory import keep_freed_memory


def peak() -> int:
    [line] = [
        line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line
    ]
    return 1024 * int(line.split()[1])


def main() -> None:
    words, targets = map(int, sys.argv[1:])
    keep_freed_memory()
    softmax = ElmoSoftmax(4, words)
    hidden, goal = torch.randn(targets, 4), torch.randint(0, words, (targets,))
    with torch.inference_mode():
        softmax.losses(hidden[:1], goal[:1])
        before = peak()
        softmax.losses(hidden, goal)
    print(peak() - before)


if __name__ == "__main__":
    main()
