# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The layers that a frozen biLM gives for a dataset, computed once and mapped into memory."""

import errno
import hashlib
import json
import os
import shutil
import zlib
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
import torch
from accelerate import Accelerator
from datasets import Dataset
from tqdm.auto import tqdm

from elmo_hf.embedding.fingerprint import add_weights
from elmo_hf.modeling_elmo import ElmoModel
from elmo_hf.system.failures import explain_failure
from elmo_hf.text.batching import batches_by_length
from elmo_hf.tokenization_elmo import ElmoTokenizer

# Sentences that are read, written and checked together.
CHUNK = 256
VALUE_BYTES = np.dtype(np.float32).itemsize
SUM = np.dtype(np.uint64)
# Words, padding included, that the biLM reads at once.
WORDS_AT_ONCE = 2048
# What changes the layers besides the weights and their shapes.
BILM_FIELDS = (
    "cell_clip",
    "char_activation",
    "max_characters_per_token",
    "projection_clip",
    "use_skip_connections",
)


class FeatureCache:
    """
    All layers of all words of a dataset, (words, layers, hidden_size) in one float32 file.

    The file's name holds a hash of the weights and of the words, so that a changed model or changed
    data gets another file. All processes fill it together, chunk by chunk. A file beside it has a
    checksum of every chunk: those that an interrupted run did not reach and those that were damaged
    since are computed when the file is opened.
    """

    def __init__(self, folder: Path, model: ElmoModel, dataset: Dataset, name: str):
        self.lengths = [len(tokens) for tokens in dataset["tokens"]]
        self.starts = np.cumsum([0, *self.lengths])
        config = model.config
        layers = config.num_hidden_layers + 1
        self.shape = (int(self.starts[-1]), layers, config.hidden_size)
        self.path = folder / f"{name}-{hash_features(model, dataset)}.float32"
        self.dataset, self.model = dataset, model

    def fill(self, accelerator: Accelerator, tokenizer: ElmoTokenizer, name: str) -> None:
        """Computes what is missing or damaged; every process does its share."""
        count = len(self.lengths)
        chunks = [range(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]
        sums = self.path.with_suffix(".checksums")
        if accelerator.is_main_process:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            reserve(self.path, VALUE_BYTES * int(np.prod(self.shape)))
            reserve(sums, SUM.itemsize * len(chunks))
        accelerator.wait_for_everyone()
        # a whole cache of somebody else can be used without the right to change it
        mode: Literal["r", "r+"] = "r+" if os.access(self.path, os.W_OK) else "r"
        values = np.memmap(self.path, np.float32, mode, shape=self.shape)
        done = np.memmap(sums, SUM, mode, shape=(len(chunks),))
        own = range(accelerator.process_index, len(chunks), accelerator.num_processes)
        parts = {
            at: values[self.starts[chunks[at].start] : self.starts[chunks[at].stop]] for at in own
        }
        missing = [at for at, part in parts.items() if done[at] != mark(part)]
        if missing:
            self.model.prepare_for_inference()
        for at in tqdm(missing, desc=name, unit="chunk", disable=not accelerator.is_main_process):
            self.write(values, chunks[at], tokenizer)
            values.flush()
            done[at] = mark(parts[at])
            done.flush()
        accelerator.wait_for_everyone()
        self.values = np.memmap(self.path, np.float32, "r", shape=self.shape)

    @torch.inference_mode()
    def write(self, values: np.memmap, numbers: range, tokenizer: ElmoTokenizer) -> None:
        """Writes the layers of some sentences; those of similar length are read together."""
        for some in batches_by_length(self.lengths, WORDS_AT_ONCE, numbers):
            words = [self.dataset[number]["tokens"] for number in some]
            batch = tokenizer(words, is_split_into_words=True, padding=True, return_tensors="pt")
            output = self.model(**batch.to(self.model.device), output_hidden_states=True)
            layers = torch.stack(output.hidden_states, dim=2).float().cpu().numpy()
            for row, number in zip(layers, some, strict=True):
                values[self.starts[number] : self.starts[number + 1]] = row[: self.lengths[number]]

    def layers(self, number: int) -> torch.Tensor:
        """All layers of a sentence, (words, layers, hidden_size)."""
        return torch.from_numpy(self.values[self.starts[number] : self.starts[number + 1]].copy())


def mark(values: np.ndarray) -> int:
    """A checksum that is never 0, which stands for a chunk that was never written."""
    return 1 << 32 | zlib.crc32(values.data)


def reserve(path: Path, size: int) -> None:
    """Makes a file of this size unless it is there: a full disk is reported now, not halfway."""
    if path.exists() and path.stat().st_size == size:
        return

    def explain(reason: str) -> str:
        return (
            f"There is no room for the biLM's layers, {size / 1e6:.0f} MB, in {str(path.parent)!r} "
            f"({reason}); choose another --cache_dir, or pass --no_feature_cache."
        )

    with (
        explain_failure(path.parent, explain, lambda: path.unlink(missing_ok=True)),
        path.open("wb") as file,
    ):
        allocate(file, max(1, size), path.parent)


def allocate(file: BinaryIO, size: int, folder: Path) -> None:
    """Gives an empty file its size, and its space on disk where the system can do that."""
    # macOS and Windows lack it
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    if shutil.disk_usage(folder).free < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    file.truncate(size)


def hash_features(model: ElmoModel, dataset: Dataset) -> str:
    """A hash of the biLM and of the words it reads."""
    settings = {name: getattr(model.config, name) for name in BILM_FIELDS}
    key = hashlib.sha256(json.dumps(settings).encode())
    if model.dictionaries is not None:
        key.update(model.dictionaries.fingerprint())
    for part in (model.token_encoder, model.layers):
        add_weights(key, part)
    for tokens in dataset["tokens"]:
        key.update(json.dumps(tokens).encode())
    return key.hexdigest()[:16]
