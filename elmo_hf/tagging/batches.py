"""Batches of tagged sentences: what a step reads, and how it becomes a model's inputs."""

import argparse

import torch
from datasets import Dataset

from elmo_hf import ElmoTokenizer
from elmo_hf.tagging.feature_cache import FeatureCache
from elmo_hf.text.batching import batches_by_length


class Batches:
    """A dataset's sentences as a model's inputs: character ids, or the biLM's layers."""

    def __init__(
        self,
        dataset: Dataset,
        tokenizer: ElmoTokenizer,
        cache: FeatureCache | None,
        has_word_vectors: bool,
    ):
        self.dataset, self.tokenizer, self.cache = dataset, tokenizer, cache
        self.lengths = [len(tokens) for tokens in dataset["tokens"]]
        self.needs_ids = cache is None or has_word_vectors
        # what a batch is made of, fetched in one go
        self.columns = dataset.select_columns(
            ["labels", "tokens"] if self.needs_ids else ["labels"]
        )

    def collate(self, numbers: list[int]) -> dict[str, torch.Tensor]:
        rows = self.columns[numbers]
        padded = torch.nn.utils.rnn.pad_sequence
        labels = [torch.tensor(some) for some in rows["labels"]]
        batch = {
            "numbers": torch.tensor(numbers),
            "labels": padded(labels, batch_first=True, padding_value=-100),
        }
        batch["attention_mask"] = (batch["labels"] >= 0).long()
        if self.cache is not None:
            layers = [self.cache.layers(number) for number in numbers]
            batch["layers"] = padded(layers, batch_first=True)
        if self.needs_ids:
            encoded = self.tokenizer(
                rows["tokens"], is_split_into_words=True, padding=True, return_tensors="pt"
            )
            batch["input_ids"] = encoded["input_ids"]
        return batch

    def plan(self, args: argparse.Namespace, processes: int, epoch: int) -> list[list[list[int]]]:
        """
        The sentences of each step of an epoch, in parts whose gradients are added up. A part is
        what all processes read together, so that it does not matter how many they are.
        """
        draw = torch.Generator().manual_seed(args.seed * 10_007 + epoch)
        order = torch.randperm(len(self.lengths), generator=draw).tolist()
        if args.per_device_train_batch_size is not None:
            size = args.per_device_train_batch_size * processes
            parts = [order[start : start + size] for start in range(0, len(order), size)]
        else:
            budget = args.words_per_batch * processes
            parts = list(batches_by_length(self.lengths, budget, order))
            mixed = torch.randperm(len(parts), generator=draw).tolist()
            parts = [parts[number] for number in mixed]
        # every process needs a sentence: those of smaller parts join another one
        whole = [part for part in parts if len(part) >= processes]
        if not whole:
            raise ValueError(f"{processes} processes need more than {len(order)} sentences.")
        whole[-1] = whole[-1] + [n for part in parts if len(part) < processes for n in part]
        size = args.gradient_accumulation_steps
        return [whole[start : start + size] for start in range(0, len(whole), size)]


def to_device(batch: dict[str, torch.Tensor], device: torch.device) -> dict[str, torch.Tensor]:
    """What the model reads, where it reads it."""
    return {name: part.to(device) for name, part in batch.items() if name != "numbers"}
