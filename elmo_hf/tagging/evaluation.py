# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Tags held-out sentences with all processes together, and measures how well."""

from dataclasses import dataclass

import torch
from accelerate import Accelerator
from tqdm.auto import tqdm

from elmo_hf.modeling_elmo import ElmoForTokenClassification
from elmo_hf.tagging.batches import Batches, to_device
from elmo_hf.tagging.figures import Figures, count_tags, goal_of, measure, most_frequent

# Sentences that a process tags at once.
SENTENCES_AT_ONCE = 64


@dataclass
class Evaluation:
    """How a split was tagged."""

    # the mean per word
    loss: float
    # what the task's metric returned
    figures: Figures
    # the figure that chooses the best epoch, for the most frequent tag of each word
    baseline: float
    tags: list[list[str]]
    # the model's probability of each of these tags
    probabilities: list[list[float]]

    @property
    def goal(self) -> str:
        """The name of the figure that chooses the best epoch."""
        return goal_of(self.figures)

    @property
    def score(self) -> float:
        """The figure that chooses the best epoch."""
        return self.figures[self.goal]

    def named(self, split: str) -> dict:
        """Loss and figures, their names beginning with the split's."""
        figures = {"loss": self.loss, **self.figures}
        return {f"{split}_{name}": value for name, value in figures.items()}


class Evaluator:
    """Evaluates a model on the splits of a dataset."""

    def __init__(
        self,
        accelerator: Accelerator,
        batches: dict[str, Batches],
        labels: list[str],
        task: str = "pos",
    ):
        self.accelerator, self.batches, self.labels, self.task = accelerator, batches, labels, task
        self.counts = count_tags(batches["train"].dataset)
        self.baselines: dict[str, float] = {}

    def __call__(self, model: ElmoForTokenClassification, split: str) -> Evaluation:
        """Tags a split; every process calls this, and gets the same."""
        numbers, probabilities, loss = tag_split(
            self.accelerator, model, self.batches[split], split
        )
        tags = [[self.labels[number] for number in row] for row in numbers]
        return Evaluation(
            loss, self.measure(split, tags), self.baseline(split), tags, probabilities
        )

    def baseline(self, split: str) -> float:
        """The score of every word's most frequent tag."""
        if split not in self.baselines:
            tags = most_frequent(self.counts, self.batches[split].dataset)
            figures = self.measure(split, tags)
            self.baselines[split] = figures[goal_of(figures)]
        return self.baselines[split]

    def measure(self, split: str, tags: list[list[str]]) -> Figures:
        return measure(self.task, self.batches[split].dataset, tags, self.counts)


@torch.inference_mode()
def tag_split(
    accelerator: Accelerator, model: ElmoForTokenClassification, batches: Batches, name: str
) -> tuple[list[list[int]], list[list[float]], float]:
    """The numbers and probabilities of all tags, by sentence, and the mean loss per word."""
    model.prepare_for_inference()
    order = sorted(range(len(batches.lengths)), key=lambda number: batches.lengths[number])
    # the dataset is the sentences' numbers, of which `collate` makes batches
    loader = accelerator.prepare(
        torch.utils.data.DataLoader(
            order,  # type: ignore[arg-type]
            batch_size=SENTENCES_AT_ONCE,
            collate_fn=batches.collate,
        )
    )
    tags: list[list[int]] = [[] for _ in order]
    probabilities: list[list[float]] = [[] for _ in order]
    total = 0.0
    for batch in tqdm(loader, desc=name, leave=False, disable=not accelerator.is_main_process):
        logits = model(**to_device(batch, accelerator.device)).logits.float()
        numbers, chances = model.decode(logits, batch["attention_mask"])
        losses = model.sentence_losses(logits, batch["labels"], batch["attention_mask"])
        parts = (numbers, chances, batch["attention_mask"])
        padded = [accelerator.pad_across_processes(part, dim=1) for part in parts]
        # this drops the sentences that were repeated to fill the last batch
        gathered = accelerator.gather_for_metrics((batch["numbers"], losses, *padded))
        for sentence, loss, guess, chance, mask in zip(
            *(part.cpu() for part in gathered), strict=True
        ):
            live = mask.bool()
            tags[sentence], probabilities[sentence] = guess[live].tolist(), chance[live].tolist()
            total += loss.item()
    return tags, probabilities, total / max(1, sum(batches.lengths))
