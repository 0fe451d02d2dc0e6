# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Batches of tagged sentences: what a step reads, and how it becomes a model's inputs."""

from pathlib import Path

import torch
from accelerate import Accelerator
from datasets import Dataset

from elmo_hf.hub.loading import make_tokenizer
from elmo_hf.modeling_elmo import ElmoForTokenClassification
from elmo_hf.tagging.feature_cache import FeatureCache
from elmo_hf.text.batching import batches_by_length
from elmo_hf.tokenization_elmo import ElmoTokenizer


class Batches:
    """A dataset's sentences as a model's inputs: character ids, or the biLM's layers."""

    def __init__(
        self,
        dataset: Dataset,
        tokenizer: ElmoTokenizer,
        cache: FeatureCache | None = None,
        has_word_vectors: bool = False,
    ):
        self.dataset, self.tokenizer, self.cache = dataset, tokenizer, cache
        self.lengths = [len(tokens) for tokens in dataset["tokens"]]
        self.needs_ids = cache is None or has_word_vectors
        # only these are read from disk for a batch
        self.columns = dataset.select_columns(
            ["labels", "tokens"] if self.needs_ids else ["labels"]
        )

    def collate(self, numbers: list[int]) -> dict[str, torch.Tensor]:
        """The inputs that are made of the sentences with these numbers."""
        rows = self.columns[numbers]
        pad = torch.nn.utils.rnn.pad_sequence
        labels = [torch.tensor(some) for some in rows["labels"]]
        batch = {
            "numbers": torch.tensor(numbers),
            "labels": pad(labels, batch_first=True, padding_value=-100),
        }
        batch["attention_mask"] = (batch["labels"] >= 0).long()
        if self.cache is not None:
            layers = [self.cache.layers(number) for number in numbers]
            batch["layers"] = pad(layers, batch_first=True)
        if self.needs_ids:
            encoded = self.tokenizer(
                rows["tokens"], is_split_into_words=True, padding=True, return_tensors="pt"
            )
            batch["input_ids"] = encoded["input_ids"]
        return batch

    def plan(
        self,
        epoch: int,
        seed: int,
        words_per_batch: int,
        sentences_per_batch: int | None = None,
        batches_per_step: int = 1,
        processes: int = 1,
    ) -> list[list[list[int]]]:
        """
        The sentences of each step of an epoch, in batches whose gradients are added up. A batch is
        what all processes read together; each of them reads that many words, in sentences of
        similar length, or that many sentences of any length.
        """
        draw = torch.Generator().manual_seed(seed * 10_007 + epoch)
        order = torch.randperm(len(self.lengths), generator=draw).tolist()
        if sentences_per_batch is not None:
            size = sentences_per_batch * processes
            batches = [order[start : start + size] for start in range(0, len(order), size)]
        else:
            batches = list(batches_by_length(self.lengths, words_per_batch * processes, order))
            mixed = torch.randperm(len(batches), generator=draw).tolist()
            batches = [batches[number] for number in mixed]
        # Every process needs a sentence, so those of smaller batches join the last large one.
        large = [batch for batch in batches if len(batch) >= processes]
        if not large:
            raise ValueError(
                f"{processes} processes need more than {len(order)} training sentences."
            )
        large[-1] = large[-1] + [n for batch in batches if len(batch) < processes for n in batch]
        return [
            large[start : start + batches_per_step]
            for start in range(0, len(large), batches_per_step)
        ]


def make_batches(
    accelerator: Accelerator,
    model: ElmoForTokenClassification,
    splits: dict[str, Dataset],
    cache_dir: Path | None = None,
) -> dict[str, Batches]:
    """
    The batches of each split. With a `cache_dir` the biLM, which must be frozen, reads every
    sentence once and its layers are kept there.
    """
    tokenizer = make_tokenizer(model)
    caches: dict[str, FeatureCache | None] = dict.fromkeys(splits)
    if cache_dir is not None:
        if any(weight.requires_grad for weight in model.elmo.layers.parameters()):
            raise ValueError("The layers of a biLM that is trained cannot be kept: freeze it.")
        for split, dataset in splits.items():
            cache = caches[split] = FeatureCache(cache_dir, model.elmo, dataset, split)
            cache.fill(accelerator, tokenizer, f"biLM reads {split}")
    return {
        split: Batches(dataset, tokenizer, caches[split], model.word_vectors is not None)
        for split, dataset in splits.items()
    }


def to_device(batch: dict[str, torch.Tensor], device: torch.device) -> dict[str, torch.Tensor]:
    """What the model reads, on its device; the sentences' numbers are left out."""
    return {name: part.to(device) for name, part in batch.items() if name != "numbers"}
