r"""Train a tagger on ELMo with transformers' Trainer, exactly as you would with BERT.

    python examples/run_pos_trainer.py --output_dir my-tagger --num_train_epochs 5 \
        --train_file train.conllu --validation_file dev.conllu --test_file test.conllu

All of TrainingArguments are options as well. Without files it trains on the sample beside this
script. To resume an interrupted run, repeat the command. `run_pos.py` does more: it keeps the
layers of a frozen biLM, and writes predictions and a report.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from datasets import Dataset
from transformers import (
    AutoTokenizer,
    DataCollatorForTokenClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

from elmo_hf import ElmoForTokenClassification
from elmo_hf.hub import BUNDLED, find_model, load_model, publish
from elmo_hf.system import run_program
from elmo_hf.tagging import load_splits
from elmo_hf.text import splitter_name
from elmo_hf.training import (
    claimed_folder,
    leave_together,
    option,
    parse_settings,
    resume_trainer,
    trainer_errors,
)

FOLDER = Path(__file__).resolve().parent / "sample"
SAMPLE = {
    "train": FOLDER / "train.conllu",
    "validation": FOLDER / "dev.conllu",
    "test": FOLDER / "test.conllu",
}


@dataclass
class Arguments:
    """What to train, and on which text."""

    model_name_or_path: str = option(BUNDLED, help="an ELMo folder or Hub name")
    train_file: Path | None = option(None, help="tagged text to learn from")
    validation_file: Path | None = option(None, help="tagged text that chooses the best epoch")
    test_file: Path | None = option(None, help="tagged text that the best epoch is tested on")
    freeze_bilm: bool = option(False, help="train the head alone")
    split: str | None = option(
        None, help="how the tagger will split raw text, as in english; default: like the biLM"
    )

    def files(self) -> dict[str, Path]:
        """The files that are named, by their splits."""
        files = {split: getattr(self, f"{split}_file") for split in SAMPLE}
        return {split: file for split, file in files.items() if file is not None}


@dataclass
class Settings(TrainingArguments):
    """TrainingArguments with suitable defaults: the best model, one evaluation per epoch."""

    output_dir: str = option(help="folder for the model; a run in it is resumed")
    overwrite_output_dir: bool = option(
        False, help="train anew: remove the run or the model that is in the folder"
    )
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
    is_word = prediction.label_ids != -100
    right = prediction.predictions == prediction.label_ids
    return {"accuracy": float(np.mean(right[is_word]))}


def encode(dataset: Dataset, tokenizer) -> Dataset:
    """Every word is one token, so its tag needs no alignment."""

    def work(rows: dict) -> dict:
        encoded = tokenizer(rows["tokens"], is_split_into_words=True)
        return {**encoded, "labels": rows["labels"]}

    return dataset.map(work, batched=True, remove_columns=dataset.column_names)


def make_trainer(model, settings: Settings, data: dict[str, Dataset], tokenizer) -> Trainer:
    return Trainer(
        model=model,
        args=settings,
        train_dataset=data["train"],
        eval_dataset=data["validation"],
        processing_class=tokenizer,
        data_collator=DataCollatorForTokenClassification(tokenizer),
        # the model says which tags its logits mean
        preprocess_logits_for_metrics=lambda logits, labels: model.decode(logits, labels >= 0)[0],
        compute_metrics=token_accuracy,
    )


def train(args: Arguments, settings: Settings, push: bool) -> None:
    splits, labels = load_splits(args.files() or SAMPLE)
    name = find_model(args.model_name_or_path)
    # for the new head
    set_seed(settings.seed)
    tokenizer = AutoTokenizer.from_pretrained(name)
    if args.split is not None:
        tokenizer.word_splitter = splitter_name(args.split)
    numbers = {label: number for number, label in enumerate(labels)}
    # `from_pretrained` with checks: the weights fit the configuration and are finite numbers
    model = load_model(
        ElmoForTokenClassification, name, id2label=dict(enumerate(labels)), label2id=numbers
    )
    if args.freeze_bilm:
        model.freeze_bilm()
    data = {split: encode(dataset, tokenizer) for split, dataset in splits.items()}
    trainer = make_trainer(model, settings, data, tokenizer)
    newest = resume_trainer(trainer, splits, settings.overwrite_output_dir)
    with trainer_errors(trainer):
        trainer.train(resume_from_checkpoint=newest)
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


def main() -> None:
    args, settings = parse_settings((Arguments, Settings), __doc__)
    splitter_name(args.split or "none")
    # Trainer's own push would leave the model's code behind.
    push, settings.push_to_hub = settings.push_to_hub, False
    # One run at a time, and never unasked in the place of another model.
    with claimed_folder(
        Path(settings.output_dir),
        [args.model_name_or_path, *args.files().values()],
        settings.overwrite_output_dir,
        settings.process_index,
        settings.world_size,
    ):
        train(args, settings, push)


if __name__ == "__main__":
    run_program(main)
