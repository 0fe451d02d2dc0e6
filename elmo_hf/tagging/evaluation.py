"""Tags held-out sentences with all processes together, and says how well."""

from collections import Counter

import torch
from accelerate import Accelerator
from tqdm.auto import tqdm

from elmo_hf import ElmoForTokenClassification
from elmo_hf.tagging.batches import Batches, to_device
from elmo_hf.tagging.figures import measure, most_frequent

# sentences a process tags at once
EVALUATION_SIZE = 64


class Judge:
    """Holds what a model is judged by, and what it last predicted for each split."""

    def __init__(
        self,
        accelerator: Accelerator,
        task: str,
        labels: list[str],
        counts: dict[str, Counter],
        batches: dict[str, Batches],
    ):
        self.accelerator, self.task, self.labels = accelerator, task, labels
        self.counts, self.batches = counts, batches
        # tags, and how sure the model was of them
        self.predictions: dict[str, tuple[list[list[str]], list[list[float]]]] = {}

    def __call__(self, model: ElmoForTokenClassification, split: str) -> dict:
        """The figures of a split, their names beginning with its own."""
        numbers, sure, loss = tag(self.accelerator, model, self.batches[split], split)
        tags = [[self.labels[number] for number in row] for row in numbers]
        self.predictions[split] = (tags, sure)
        figures = {"loss": loss, **self.measure(split, tags)}
        return {f"{split}_{name}": value for name, value in figures.items()}

    def baseline(self, split: str) -> dict:
        """The figures of every word's most frequent tag."""
        return self.measure(split, most_frequent(self.counts, self.batches[split].dataset))

    def measure(self, split: str, tags: list[list[str]]) -> dict:
        return measure(self.task, self.batches[split].dataset, tags, self.counts)


@torch.inference_mode()
def tag(
    accelerator: Accelerator, model: ElmoForTokenClassification, batches: Batches, name: str
) -> tuple[list[list[int]], list[list[float]], float]:
    """For every sentence the tags' numbers and how sure they are, and the mean loss of a word."""
    model.prepare_for_inference()
    order = sorted(range(len(batches.lengths)), key=lambda number: batches.lengths[number])
    loader = torch.utils.data.DataLoader(
        order, batch_size=EVALUATION_SIZE, collate_fn=batches.collate
    )
    loader = accelerator.prepare(loader)
    tags: list[list[int]] = [[] for _ in order]
    sure: list[list[float]] = [[] for _ in order]
    loss = 0.0
    for batch in tqdm(loader, desc=name, leave=False, disable=not accelerator.is_main_process):
        logits = model(**to_device(batch, accelerator.device)).logits.float()
        chances, guesses = logits.softmax(dim=-1).max(dim=-1)
        costs = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), batch["labels"], reduction="none"
        )
        parts = (guesses, chances, costs, batch["attention_mask"])
        padded = [accelerator.pad_across_processes(part, dim=1) for part in parts]
        # of the last batch, what was only there to make it whole is dropped again
        gathered = accelerator.gather_for_metrics((batch["numbers"], *padded))
        for number, guess, chance, cost, mask in zip(
            *(part.cpu() for part in gathered), strict=True
        ):
            live = mask.bool()
            tags[number], sure[number] = guess[live].tolist(), chance[live].tolist()
            loss += cost[live].double().sum().item()
    return tags, sure, loss / max(1, sum(batches.lengths))
