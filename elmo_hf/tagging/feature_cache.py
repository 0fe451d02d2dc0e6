"""What a frozen biLM makes of a dataset, worked out once and mapped into memory from then on."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator
from datasets import Dataset
from tqdm.auto import tqdm

from elmo_hf import ElmoModel, ElmoTokenizer
from elmo_hf.embedding.fingerprint import add_weights
from elmo_hf.text.batching import batches_by_length

# sentences that are read, written and marked as done together
CHUNK = 256
# words, padding included, that the biLM reads at once
WORDS_AT_ONCE = 2048


class FeatureCache:
    """
    All layers of all words of a dataset, (words, layers, hidden_size) in one float32 file.

    The file's name holds a hash of the weights and of the words, so that neither a changed model
    nor changed data ever meets it. It is filled chunk by chunk by all processes together; a killed
    run goes on with the chunks that are missing.
    """

    def __init__(self, folder: Path, model: ElmoModel, dataset: Dataset, name: str):
        self.lengths = np.array([len(tokens) for tokens in dataset["tokens"]])
        self.starts = np.concatenate([[0], self.lengths.cumsum()])
        config = model.config
        layers = config.num_hidden_layers + 1
        self.shape = (int(self.starts[-1]), layers, config.hidden_size)
        self.path = folder / f"{name}-{key_of(model, dataset)}.float32"
        self.dataset, self.model = dataset, model

    def fill(self, accelerator: Accelerator, tokenizer: ElmoTokenizer, name: str) -> None:
        """Computes what is missing; every process does its share."""
        part, marks = self.path.with_suffix(".part"), self.path.with_suffix(".done")
        count = len(self.lengths)
        chunks = [range(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]
        if accelerator.is_main_process and not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            reserve(part, 4 * int(np.prod(self.shape)))
            reserve(marks, len(chunks))
        accelerator.wait_for_everyone()
        if not self.path.exists():
            values = np.memmap(part, np.float32, "r+", shape=self.shape)
            done = np.memmap(marks, np.uint8, "r+", shape=(len(chunks),))
            own = range(accelerator.process_index, len(chunks), accelerator.num_processes)
            self.model.prepare_for_inference()
            for number in tqdm(
                own, desc=name, unit="chunk", disable=not accelerator.is_main_process
            ):
                if not done[number]:
                    self.write(values, chunks[number], tokenizer)
                    values.flush()
                    done[number] = 1
                    done.flush()
        accelerator.wait_for_everyone()
        if accelerator.is_main_process and not self.path.exists():
            os.replace(part, self.path)
            marks.unlink()
        accelerator.wait_for_everyone()
        self.values = np.memmap(self.path, np.float32, "r", shape=self.shape)

    @torch.inference_mode()
    def write(self, values: np.memmap, numbers: range, tokenizer: ElmoTokenizer) -> None:
        """The layers of some sentences, those of about one length together."""
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


def reserve(path: Path, size: int) -> None:
    """A file of this size, which is kept if it is there: a full disk is told now, not half-way."""
    if path.exists() and path.stat().st_size == size:
        return
    try:
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, size))
    except OSError as error:
        path.unlink(missing_ok=True)
        raise OSError(
            f"There is no room for the biLM's layers, {size / 1e6:.0f} MB, in {str(path.parent)!r} "
            f"({error.strerror}); give another --cache_dir, or --no_feature_cache."
        ) from error


def key_of(model: ElmoModel, dataset: Dataset) -> str:
    """A hash of the biLM and of the words it reads."""
    key = hashlib.sha256()
    for part in (model.token_encoder, model.layers):
        add_weights(key, part)
    for tokens in dataset["tokens"]:
        key.update(json.dumps(tokens).encode())
    return key.hexdigest()[:16]
