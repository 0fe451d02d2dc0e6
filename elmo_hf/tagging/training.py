# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The training of a tagger: epochs until none is better, resumable at every checkpoint."""

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from accelerate import Accelerator
from datasets import Dataset
from tqdm.auto import tqdm

from elmo_hf.modeling_elmo import ElmoForTokenClassification
from elmo_hf.tagging.batches import Batches, to_device
from elmo_hf.tagging.evaluation import Evaluation, Evaluator
from elmo_hf.tagging.figures import describe, fractions
from elmo_hf.tagging.settings import TrainingSettings
from elmo_hf.tokenization_elmo import ElmoTokenizer
from elmo_hf.training.checkpoints import Checkpoints, save_files, save_model
from elmo_hf.training.divergence import refuse_divergence
from elmo_hf.training.identity import (
    describe_run,
    hash_sentences,
    hash_weights,
    read_identity,
    refuse_other_run,
)

# What may differ when a run is resumed.
MAY_CHANGE = {
    "num_train_epochs",
    "patience",
    "checkpointing_steps",
    "report_to",
    "output_dir",
    "overwrite_output_dir",
}


class Progress:
    """The state of a run besides weights, optimizer and random generators."""

    def __init__(self) -> None:
        self.epoch = self.step = 0
        # of the steps of this epoch
        self.losses: list[float] = []
        self.best: float | None = None
        self.best_epoch = 0
        # of the weights in the output folder
        self.best_checksum: int | None = None
        # for each epoch: train_loss, validation_loss, and the figures on the validation text
        self.history: list[dict[str, Any]] = []

    def end_epoch(self, train_loss: float, evaluation: Evaluation) -> None:
        losses = {"train_loss": train_loss, "validation_loss": evaluation.loss}
        self.history.append({**losses, "figures": evaluation.figures})
        self.epoch, self.step, self.losses = self.epoch + 1, 0, []
        if self.best is None or evaluation.score > self.best:
            self.best, self.best_epoch = evaluation.score, self.epoch

    def is_over(self, settings: TrainingSettings) -> bool:
        return (
            self.epoch >= settings.num_train_epochs
            or self.epoch - self.best_epoch >= settings.patience
        )

    def state_dict(self) -> dict:
        return dict(vars(self))

    def load_state_dict(self, state: dict) -> None:
        vars(self).update(state)


@dataclass
class Learner:
    """What takes part in a step of training."""

    accelerator: Accelerator
    # as accelerate prepared it, maybe inside a wrapper
    model: torch.nn.Module
    optimizer: Any
    batches: Batches
    settings: TrainingSettings


def train_tagger(
    accelerator: Accelerator,
    model: ElmoForTokenClassification,
    batches: Batches,
    evaluator: Evaluator,
    settings: TrainingSettings,
    identity: dict[str, Any] | None = None,
    tokenizer: ElmoTokenizer | None = None,
) -> Progress:
    """
    Trains until no epoch is better on the validation text. The best epoch's weights are left in the
    model and, with the tokenizer, in the output folder. `identity` is what `check_run` has found.
    """
    prepared, optimizer = accelerator.prepare(model, make_optimizer(model, settings))
    learner = Learner(accelerator, prepared, optimizer, batches, settings)
    progress = Progress()
    if identity is None:
        splits = {split: part.dataset for split, part in evaluator.batches.items()}
        identity = check_run(accelerator, model, splits, settings, evaluator.task)
    checkpoints = Checkpoints(accelerator, settings.output_dir, identity, progress)
    checkpoints.resume(settings.overwrite_output_dir)
    if progress.is_over(settings) and accelerator.is_main_process:
        tqdm.write(
            f"The run in {settings.output_dir} is finished: there is nothing to train after epoch "
            f"{progress.epoch}.",
            file=sys.stderr,
        )
    while not progress.is_over(settings):
        steps = train_epoch(learner, progress, checkpoints)
        train_loss = sum(progress.losses) / len(progress.losses)
        refuse_divergence(settings.output_dir, (progress.epoch + 1) * steps, train_loss, model)
        evaluation = evaluator(model, "validation")
        refuse_divergence(settings.output_dir, (progress.epoch + 1) * steps, evaluation.loss)
        progress.end_epoch(train_loss, evaluation)
        logged = {"train_loss": train_loss, **fractions(evaluation.named("validation"))}
        accelerator.log(logged, step=progress.epoch)
        if accelerator.is_main_process:
            tqdm.write(
                f"epoch {progress.epoch}: train loss {train_loss:.4f}, validation loss "
                f"{evaluation.loss:.4f}, {describe(evaluation.figures)}"
            )
            if progress.best_epoch == progress.epoch:
                progress.best_checksum = save_model(model, settings.output_dir, tokenizer)
        checkpoints.save(progress.epoch * steps)
    best = checkpoints.load_model(ElmoForTokenClassification, progress.best_checksum)
    model.load_state_dict(best.state_dict())
    if tokenizer is not None and accelerator.is_main_process:
        # a finished run may be repeated with another splitter
        save_files(settings.output_dir, tokenizer)
    return progress


def check_run(
    accelerator: Accelerator,
    model: ElmoForTokenClassification,
    splits: Mapping[str, Dataset],
    settings: TrainingSettings,
    task: str = "pos",
) -> dict[str, Any]:
    """
    What decides the result of a run, for `train_tagger`; the model must be as it was before its
    training. Raises an error if the output folder holds another run: called before a biLM has read
    all sentences, it saves that time.
    """
    fields = {name: value for name, value in vars(settings).items() if name not in MAY_CHANGE}
    contents = {
        "model to start from": hash_weights(model.elmo, model.word_vectors),
        "training text": hash_sentences(splits["train"]),
        "validation text": hash_sentences(splits["validation"]),
    }
    fields["task"] = task
    identity = describe_run("tagger", model, fields, contents, accelerator.num_processes)
    known = read_identity(settings.output_dir)
    if known is not None and not settings.overwrite_output_dir:
        refuse_other_run(settings.output_dir, known, identity)
    return identity


def train_epoch(learner: Learner, progress: Progress, checkpoints: Checkpoints) -> int:
    """Trains from where the epoch stands to its end; returns the number of its steps."""
    settings = learner.settings
    steps = learner.batches.plan(
        progress.epoch,
        settings.seed,
        settings.words_per_batch,
        settings.per_device_train_batch_size,
        settings.gradient_accumulation_steps,
        learner.accelerator.num_processes,
    )
    learner.model.train()
    quiet = not learner.accelerator.is_main_process
    label = f"epoch {progress.epoch + 1}"
    with tqdm(total=len(steps), initial=progress.step, desc=label, disable=quiet) as bar:
        while progress.step < len(steps):
            # taken in the middle of the step, so that neither the first nor the last rate is 0
            done = (progress.epoch + (progress.step + 0.5) / len(steps)) / settings.num_train_epochs
            for group in learner.optimizer.param_groups:
                group["lr"] = group["top"] * rate_share(done, settings.warmup_ratio)
            loss = train_step(learner, steps[progress.step])
            progress.losses.append(loss)
            progress.step += 1
            bar.update()
            bar.set_postfix(loss=f"{loss:.4f}")
            done_steps = progress.epoch * len(steps) + progress.step
            refuse_divergence(settings.output_dir, done_steps, loss)
            if settings.checkpointing_steps and progress.step % settings.checkpointing_steps == 0:
                refuse_divergence(settings.output_dir, done_steps, loss, learner.model)
                checkpoints.save(done_steps)
    return len(steps)


def train_step(learner: Learner, batches: list[list[int]]) -> float:
    """
    One step of the optimizer. Returns its loss: the sum over the words of all processes and all
    batches, divided by the number of these words.
    """
    accelerator, model = learner.accelerator, learner.model
    lengths = learner.batches.lengths
    words = sum(lengths[number] for batch in batches for number in batch)
    total = 0.0
    for number, numbers in enumerate(batches, start=1):
        own = numbers[accelerator.process_index :: accelerator.num_processes]
        inputs = to_device(learner.batches.collate(own), accelerator.device)
        with nullcontext() if number == len(batches) else accelerator.no_sync(model):
            loss = model(**inputs, num_items_in_batch=words).loss
            mixes = accelerator.unwrap_model(model).elmo.mixes
            squares = sum(mix.scalars.square().sum() for mix in mixes)
            penalty = learner.settings.mix_l2 * squares / len(batches)
            # gradients are averaged over the processes, but the loss is a sum
            accelerator.backward(accelerator.num_processes * loss + penalty)
        total += accelerator.reduce(loss.detach(), "sum").item()
    accelerator.clip_grad_norm_(model.parameters(), learner.settings.max_grad_norm)
    learner.optimizer.step()
    learner.optimizer.zero_grad()
    return total


def make_optimizer(
    model: ElmoForTokenClassification, settings: TrainingSettings
) -> torch.optim.Optimizer:
    """AdamW, in which the biLM has a learning rate of its own."""
    bilm = {
        id(w) for w in (*model.elmo.token_encoder.parameters(), *model.elmo.layers.parameters())
    }
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    groups: list[dict[str, Any]] = [
        {"params": [w for w in trained if id(w) not in bilm], "top": settings.learning_rate},
        {"params": [w for w in trained if id(w) in bilm], "top": settings.bilm_learning_rate},
    ]
    groups = [group for group in groups if group["params"]]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, weight_decay=settings.weight_decay)


def rate_share(done: float, warmup: float) -> float:
    """The share of the learning rate after that share of all epochs: up to 1, then down to 0."""
    return done / warmup if done < warmup else (1 - done) / (1 - warmup)
