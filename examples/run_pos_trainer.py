r"""Train a tagger on ELMo with transformers' Trainer: what you know from BERT, nothing else.

    python examples/run_pos_trainer.py --output_dir my-tagger --num_train_epochs 5 \
        --train_file train.conllu --validation_file dev.conllu --test_file test.conllu

All of TrainingArguments are options, too. Without files it trains on the sample beside this script.
Kill the run and start the same command again: it goes on from the last checkpoint. `run_pos.py`
does more: a cache of a frozen biLM's layers, predictions, a report.
"""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from datasets import Dataset
from transformers import (
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
    set_seed,
)

from elmo_hf.cli import run
from elmo_hf.hub.bundled import BUNDLED, find_model
from elmo_hf.hub.publish import publish
from elmo_hf.tagging.tagged_data import load_splits
from elmo_hf.training.run import leave_together, whole_checkpoint


@dataclass
class Arguments:
    """What to train on what."""

    model_name_or_path: str = field(default=BUNDLED, metadata={"help": "an ELMo folder or name"})
    train_file: str | None = field(default=None, metadata={"help": "default: the sample's"})
    validation_file: str | None = None
    test_file: str | None = None
    freeze_bilm: bool = field(default=False, metadata={"help": "train the head alone"})


@dataclass
class Settings(TrainingArguments):
    """TrainingArguments with defaults that suit: best model, one evaluation an epoch."""

    output_dir: str = field(metadata={"help": "a run that is there goes on"})
    learning_rate: float = 1e-3
    per_device_train_batch_size: int = 16
    eval_strategy: str = "epoch"
    save_strategy: str = "epoch"
    save_total_limit: int | None = 2
    load_best_model_at_end: bool = True
    metric_for_best_model: str | None = "accuracy"
    report_to: str | None = "none"


def token_accuracy(prediction) -> dict[str, float]:
    """The share of right tags among the words."""
    counts = prediction.label_ids != -100
    right = prediction.predictions.argmax(axis=-1) == prediction.label_ids
    return {"accuracy": float(np.mean(right[counts]))}


def encode(dataset: Dataset, tokenizer) -> Dataset:
    """A word is a token: its tags need no alignment."""

    def work(rows: dict) -> dict:
        encoded = tokenizer(rows["tokens"], is_split_into_words=True)
        return {**encoded, "labels": rows["labels"]}

    return dataset.map(work, batched=True, remove_columns=dataset.column_names)


def main() -> None:
    parser = HfArgumentParser((Arguments, Settings), description=__doc__)
    args, settings = parser.parse_args_into_dataclasses()
    # Trainer's own push would leave the model's code behind
    push, settings.push_to_hub = settings.push_to_hub, False
    extras = {"dataset_name": None, "token_column": None, "tag_column": None, "task": "pos"}
    splits, labels = load_splits(SimpleNamespace(**vars(args), **extras, max_train_samples=None))
    name = find_model(args.model_name_or_path)
    # for the new head
    set_seed(settings.seed)
    tokenizer = AutoTokenizer.from_pretrained(name)
    numbers = {label: number for number, label in enumerate(labels)}
    model = AutoModelForTokenClassification.from_pretrained(
        name, id2label=dict(enumerate(labels)), label2id=numbers
    )
    if args.freeze_bilm:
        model.freeze_bilm()
    data = {split: encode(dataset, tokenizer) for split, dataset in splits.items()}
    trainer = Trainer(
        model=model,
        args=settings,
        train_dataset=data["train"],
        eval_dataset=data["validation"],
        processing_class=tokenizer,
        data_collator=DataCollatorForTokenClassification(tokenizer),
        compute_metrics=token_accuracy,
    )
    trainer.train(resume_from_checkpoint=whole_checkpoint(settings.output_dir))
    trainer.save_model()
    for split in [split for split in ("validation", "test") if split in data]:
        metrics = trainer.evaluate(data[split], metric_key_prefix=split)
        trainer.log_metrics(split, metrics)
        trainer.save_metrics(split, metrics)
    if push and trainer.is_world_process_zero():
        repo = settings.hub_model_id or Path(settings.output_dir).name
        print(f"pushed to {publish(settings.output_dir, repo)}")
    accelerator = trainer.accelerator
    del trainer, model
    leave_together(accelerator)


if __name__ == "__main__":
    run(main)
