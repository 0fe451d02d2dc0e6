"""A program for two processes: how many bytes a step of pretraining sends, by the kernel's count.

    accelerate launch ... bytes_sent.py FOLDER SIZE...

FOLDER has `train.txt`, `shape.json`, and a vocabulary SIZE.txt for each size. Prints one line of
JSON: for each size the bytes that the first process sends in a step, and whether the softmax is the
same in both processes after some steps.
"""

import contextlib
import json
import os
import socket
import struct
import sys
import time
from pathlib import Path

import torch
from accelerate import Accelerator

from elmo_hf.pretraining import (
    Corpus,
    Pretraining,
    PretrainingSettings,
    make_model,
    make_streams,
    make_vocabulary,
)

# where Linux's `struct tcp_info` has `tcpi_bytes_acked`: what has arrived, and counts once even if
# the kernel had to send it again
BYTES_ARRIVED = 120
STEPS = 10


def bytes_sent() -> int:
    """By all TCP connections of this process."""
    total = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            with socket.socket(fileno=os.dup(int(name))) as connection:
                info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            total += struct.unpack_from("Q", info, BYTES_ARRIVED)[0]
    return total


def bytes_when_quiet(accelerator: Accelerator) -> int:
    """Both processes wait for one another, and what is still under way arrives."""
    accelerator.wait_for_everyone()
    time.sleep(1)
    return bytes_sent()


def measure(folder: Path, accelerator: Accelerator, size: str) -> dict:
    settings = PretrainingSettings(
        train_file=str(folder / "train.txt"),
        vocab_file=folder / f"{size}.txt",
        config_overrides=folder / "shape.json",
        per_device_train_batch_size=2,
        output_dir=folder / "out",
        recipe="bilm",
    )
    model = make_model(settings, make_vocabulary(settings, None))
    corpus = Corpus([folder / "train.txt"])
    streams = make_streams(accelerator, corpus, 2, settings.window_size, settings.seed)
    run = Pretraining(settings, accelerator, model, streams)
    run.train_step()
    before = bytes_when_quiet(accelerator)
    for _ in range(STEPS):
        run.train_step()
    sent = (bytes_when_quiet(accelerator) - before) / STEPS
    sums = torch.stack([table.double().sum() for table in model.softmax.parameters()])
    both = accelerator.gather(sums.detach().unsqueeze(0))
    return {"bytes": sent, "same_tables": bool(both[0].equal(both[1]))}


def main() -> None:
    folder, accelerator = Path(sys.argv[1]), Accelerator(cpu=True)
    found = {size: measure(folder, accelerator, size) for size in sys.argv[2:]}
    if accelerator.is_main_process:
        print(json.dumps(found), flush=True)
    accelerator.end_training()


if __name__ == "__main__":
    main()
