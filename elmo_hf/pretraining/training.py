# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Training of a biLM under accelerate, which resumes exactly after an interruption."""

import hashlib
import math
import sys
import time
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import nn
from tqdm.auto import tqdm

from elmo_hf.hub.loading import make_tokenizer
from elmo_hf.modeling_elmo import ElmoForPreTraining, ElmoState
from elmo_hf.pretraining.accumulators import (
    INITIAL,
    find_accumulators,
    load_accumulators,
)
from elmo_hf.pretraining.batches import known_words, next_batch
from elmo_hf.pretraining.corpus import BlockCorpus
from elmo_hf.pretraining.evaluation import evaluate, format_figures
from elmo_hf.pretraining.row_optimizers import RowAdagrad, RowAdamW
from elmo_hf.pretraining.settings import RECIPES, PretrainingSettings, TrainingOptions
from elmo_hf.pretraining.softmax_rows import SoftmaxRows
from elmo_hf.pretraining.splits import has_new_softmax
from elmo_hf.pretraining.streams import PackedStream
from elmo_hf.pretraining.weight_average import WeightAverage
from elmo_hf.system.checksums import checksum
from elmo_hf.training.checkpoints import Checkpoints, Stateful, save_model
from elmo_hf.training.divergence import refuse_divergence
from elmo_hf.training.folder import SPLIT_TEXT
from elmo_hf.training.identity import describe_run, hash_weights

# A row forgets its state every 50 windows. In bilm-tf rows never do, and then memory cells may
# settle, early in training, at values that no fresh start ever reaches: with the state of its
# training, such a model had a perplexity of 250, and from zeros one of 340.
WINDOWS_UNTIL_FRESH = 50
# What may differ when a run is resumed.
MAY_CHANGE = {
    "num_train_epochs",
    "max_train_steps",
    "checkpointing_steps",
    "report_to",
    "output_dir",
    "overwrite_output_dir",
}
# steps between two reports of the training loss
REPORTING_STEPS = 20


def make_optimizer(
    settings: PretrainingSettings, model: ElmoForPreTraining, device: torch.device
) -> torch.optim.Optimizer:
    """An optimizer of all weights that require gradients."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    # one pass over the weights; on other devices torch makes this choice itself
    fused = True if device.type == "cpu" else None
    rate = settings.highest_learning_rate
    if settings.recipe == "bilm":
        return torch.optim.Adagrad(weights, lr=rate, initial_accumulator_value=INITIAL, fused=fused)
    matrices = [weight for weight in weights if weight.dim() > 1]
    vectors = [weight for weight in weights if weight.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": settings.weight_decay},
        {"params": vectors, "weight_decay": 0},
    ]
    return torch.optim.AdamW(groups, lr=rate, fused=fused)


def make_row_optimizer(
    settings: PretrainingSettings, tables: list[torch.Tensor]
) -> RowAdagrad | RowAdamW:
    """The same for a matrix and a vector of which a step draws some rows."""
    if settings.recipe == "bilm":
        return RowAdagrad(tables, INITIAL)
    return RowAdamW(tables, weight_decays=[settings.weight_decay, 0.0])


def learning_rate(settings: PretrainingSettings, step: int, num_steps: int) -> float:
    """A function of the step alone, so that a resumed run has no schedule to restore."""
    highest = settings.highest_learning_rate
    if settings.recipe == "bilm":
        return highest
    warmup = min(settings.warmup_steps, num_steps // 10)
    if step < warmup:
        return highest * (step + 1) / warmup
    progress = (step - warmup) / max(1, num_steps - warmup)
    return highest * (0.5 + 0.25 * (1 + math.cos(math.pi * progress)))


def start_afresh(state: ElmoState | None, step: int, rows: range) -> ElmoState | None:
    """
    The state with zeros for the rows whose turn it is. Turns depend on the numbers of rows among
    those of all processes, so that it does not matter which process reads a row.
    """
    if state is None:
        return None
    fresh = [at for at, row in enumerate(rows) if (step + row) % WINDOWS_UNTIL_FRESH == 0]
    for part in state.values():
        part[fresh] = 0
    return state


class Progress:
    """What a checkpoint holds besides weights, optimizer and random generators."""

    def __init__(self, accelerator: Accelerator, streams: list[PackedStream]):
        self.accelerator, self.streams = accelerator, streams
        self.step = 0
        self.seconds = 0.0
        # the LSTMs' state after the last step, for the rows of this process
        self.state: ElmoState | None = None
        # of the weights in the output folder
        self.best_checksum: int | None = None
        # the lowest validation perplexity
        self.best: float | None = None
        self.history: list[dict[str, Any]] = []

    def state_dict(self) -> dict[str, Any]:
        """The state of all rows of all processes."""
        return {
            "step": self.step,
            "seconds": self.seconds,
            "best": self.best,
            "best_checksum": self.best_checksum,
            "history": self.history,
            "streams": [self._gather(stream.state_dict()) for stream in self.streams],
            "state": self._gather(dict(self.state)) if self.state is not None else None,
        }

    def _gather(self, parts: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        device = self.accelerator.device
        return {
            name: self.accelerator.gather(part.to(device).contiguous()).cpu()
            for name, part in parts.items()
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.step, self.seconds = saved["step"], saved["seconds"]
        self.best, self.history = saved["best"], saved["history"]
        self.best_checksum = saved["best_checksum"]
        for stream, state in zip(self.streams, saved["streams"], strict=True):
            stream.load_state_dict(state)
        if saved["state"] is not None:
            rows, device = self.streams[0].rows, self.accelerator.device
            own = {name: part[rows.start : rows.stop] for name, part in saved["state"].items()}
            self.state = ElmoState(**{name: part.to(device) for name, part in own.items()})


class Pretraining:
    """
    A training run: `resume`, `train` and `finish` in this order.

        run = Pretraining(settings, accelerator, model, make_streams(...), validation)

    After `finish`, `model` is in `eval` mode and has the weights that were saved in `output_dir`.
    """

    def __init__(
        self,
        settings: PretrainingSettings,
        accelerator: Accelerator,
        model: ElmoForPreTraining,
        streams: list[PackedStream],
        validation: BlockCorpus | None = None,
    ):
        self.settings, self.accelerator, self.model = settings, accelerator, model
        self.streams, self.corpus, self.validation = streams, streams[0].corpus, validation
        split = settings.split if settings.is_raw else None
        self.tokenizer = make_tokenizer(model, split, settings.model_name_or_path)
        self.is_main = accelerator.is_main_process
        self.accumulators = self.choose_accumulators()
        # before accelerate moves it
        identity = self.identify()
        self.recipe = RECIPES[settings.recipe]
        # its rows are trained as they are drawn
        is_sampled = model.num_negatives is not None
        model.softmax.requires_grad_(not is_sampled)
        # the model as accelerate wraps it for several processes
        self.wrapped_model, self.optimizer = accelerator.prepare(
            model, make_optimizer(settings, model, accelerator.device)
        )
        words_per_window = streams[0].num_rows * settings.window_size
        words_per_step = words_per_window * settings.gradient_accumulation_steps
        self.steps_per_epoch = math.ceil(self.corpus.num_predictions / words_per_step)
        self.num_steps = (
            settings.max_train_steps or settings.num_train_epochs * self.steps_per_epoch
        )
        # without the sentence boundaries
        self.words_per_step = words_per_step * self.corpus.num_words / self.corpus.num_predictions
        self.progress = Progress(accelerator, streams)
        tables = list(model.softmax.parameters()) if is_sampled else []
        self.average = WeightAverage(model, self.recipe.averaged_part, tables)
        self.rows = self.train_rows(tables) if is_sampled else None
        states: list[Stateful] = [self.progress, self.average]
        if self.rows is not None:
            states.append(self.rows)
        if self.accumulators is not None:
            self.continue_adagrad(self.accumulators)
        self.checkpoints = Checkpoints(accelerator, settings.output_dir, identity, *states)
        # losses since the last report
        self.recent: list[torch.Tensor] = []

    def choose_accumulators(self) -> Path | None:
        """The accumulators of a bilm-tf run beside the model, if they fit what is trained."""
        path = find_accumulators(self.settings)
        # another vocabulary means a new softmax, and with it another problem
        if path is None or not has_new_softmax(self.settings):
            return path
        if self.is_main:
            reason = "because the softmax has a new vocabulary"
            tqdm.write(f"{str(path)!r} is not used, {reason}.", file=sys.stderr)
        return None

    def continue_adagrad(self, path: Path) -> None:
        """Gives the optimizers the accumulators of a file."""
        sums = {weight: state["sum"] for weight, state in self.optimizer.state.items()}
        if self.rows is not None and isinstance(self.rows.optimizer, RowAdagrad):
            sums |= zip(self.model.softmax.parameters(), self.rows.optimizer.sums, strict=True)
        named = {name: sums[weight] for name, weight in self.model.named_parameters()}
        steps = load_accumulators(named, path)
        if self.is_main:
            taken = "" if steps is None else f" after {steps} steps"
            text = f"Adagrad continues{taken} with the accumulators in {str(path)!r}."
            tqdm.write(text, file=sys.stderr)

    def train_rows(self, tables: list[nn.Parameter]) -> SoftmaxRows:
        optimizer = make_row_optimizer(self.settings, [table.detach() for table in tables])
        return SoftmaxRows(self.accelerator, self.model.softmax, optimizer, self.average)

    def identify(self) -> dict[str, Any]:
        """What decides the result of a run; the model must be as it was before its training."""
        names = {field.name for field in fields(TrainingOptions)} - MAY_CHANGE
        names |= {"split", "paragraphs"}
        settings = {name: getattr(self.settings, name) for name in names}
        contents = {"training text": self.corpus.checksum}
        if self.validation is not None:
            contents["validation text"] = self.validation.checksum
        if self.model.vocabulary is not None:
            words = "\n".join(self.model.vocabulary.words).encode()
            contents["vocabulary"] = hashlib.sha256(words).hexdigest()[:16]
        # a new model is known by its configuration and the seed
        if self.settings.model_name_or_path is not None:
            contents["model to start from"] = hash_weights(self.model.elmo)
        if self.accumulators is not None:
            contents["optimizer to start from"] = f"{checksum(self.accumulators):08x}"
        return describe_run(
            "language model", self.model, settings, contents, self.accelerator.num_processes
        )

    def resume(self) -> bool:
        """Loads the last checkpoint in `output_dir`, if there is one."""
        # it was split in order to be counted
        keep = [SPLIT_TEXT] if self.settings.is_raw else []
        return self.checkpoints.resume(self.settings.overwrite_output_dir, keep)

    def describe(self) -> str:
        """What the run trains on how much text, in one line."""
        negatives = self.model.num_negatives
        windows = self.settings.gradient_accumulation_steps
        return (
            f"{self.corpus.num_words:,} words in {self.corpus.num_sentences:,} sentences, "
            f"{len(known_words(self.model)):,} in the vocabulary, "
            f"{self.model.num_parameters():,} parameters; {self.num_steps:,} steps of "
            f"{self.streams[0].num_rows} x {self.settings.window_size * windows} words, "
            + ("full softmax" if negatives is None else f"{negatives:,} negative samples")
            + self.describe_progress()
        )

    def describe_progress(self) -> str:
        step = self.progress.step
        if step >= self.num_steps:
            return "; this run is finished"
        return f"; resuming from step {step:,}" if step else ""

    def train(self) -> None:
        """Trains to the last step; with validation text, the model of the best epoch is saved."""
        progress, every = self.progress, self.settings.checkpointing_steps
        with tqdm(
            total=self.num_steps, initial=progress.step, unit="step", disable=not self.is_main
        ) as bar:
            while progress.step < self.num_steps:
                started = time.perf_counter()
                self.recent.append(self.train_step())
                ends_epoch = (
                    progress.step % self.steps_per_epoch == 0 or progress.step == self.num_steps
                )
                if len(self.recent) == REPORTING_STEPS or ends_epoch:
                    self.report_loss(bar)
                bar.update()
                progress.seconds += time.perf_counter() - started
                saves = progress.step % every == 0 or ends_epoch
                if saves:
                    refuse_divergence(self.settings.output_dir, progress.step, model=self.model)
                if ends_epoch and self.validation is not None:
                    self.validate(self.validation, bar)
                if saves:
                    self.checkpoints.save(progress.step)

    def train_step(self) -> torch.Tensor:
        """Reads the windows of one step and updates the weights; returns the mean loss."""
        self.wrapped_model.train()
        windows = range(self.settings.gradient_accumulation_steps)
        losses = [self.read_window(number) for number in windows]
        self.update_weights()
        self.progress.step += 1
        self.average.update(self.progress.step)
        return torch.stack(losses).mean()

    def read_window(self, number: int) -> torch.Tensor:
        """Reads one window of every row, and adds its gradients; returns the loss."""
        progress, windows = self.progress, self.settings.gradient_accumulation_steps
        turn = progress.step * windows + number
        state = start_afresh(progress.state, turn, self.streams[0].rows)
        # bilm-tf clips the gradients of a sum over the window
        scale = self.settings.window_size if self.settings.recipe == "bilm" else 1
        # processes exchange gradients once per step
        is_last = number == windows - 1
        with nullcontext() if is_last else self.accelerator.no_sync(self.wrapped_model):
            output = self.wrapped_model(**next_batch(self.model, self.streams), state=state)
            self.accelerator.backward(scale / windows * output.loss)
        progress.state = output.state.detach()
        return output.loss.detach()

    def update_weights(self) -> None:
        rate = learning_rate(self.settings, self.progress.step, self.num_steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        weights = list(self.wrapped_model.parameters())
        if self.rows is not None:
            weights += self.rows.collect()
        self.accelerator.clip_grad_norm_(weights, self.recipe.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.rows is not None:
            self.rows.step(rate)

    def settle_rows(self) -> None:
        if self.rows is not None:
            self.rows.settle()

    def report_loss(self, bar: tqdm) -> None:
        progress = self.progress
        loss = self.accelerator.reduce(torch.stack(self.recent).mean(), "mean").item()
        self.recent.clear()
        speed = progress.step * self.words_per_step / max(progress.seconds, 1e-9)
        shown = {"sampled_loss": f"{loss:.3f}", "words_per_s": f"{speed:.0f}"}
        if progress.best is not None:
            shown["best_perplexity"] = f"{progress.best:.1f}"
        bar.set_postfix(shown)
        refuse_divergence(self.settings.output_dir, progress.step, loss)
        progress.history.append({"step": progress.step, "train_loss_sampled": loss})
        rate = self.optimizer.param_groups[0]["lr"]
        figures = {"train_loss_sampled": loss, "learning_rate": rate, "words_per_second": speed}
        self.accelerator.log(figures, step=progress.step)

    def validate(self, corpus: BlockCorpus, bar: tqdm) -> None:
        """Measures the averaged model, and saves it if it is the best so far."""
        progress = self.progress
        self.settle_rows()
        with self.average.applied():
            figures = evaluate(self.accelerator, self.model, corpus, "validation")
            perplexity = figures["validation_perplexity"]
            refuse_divergence(self.settings.output_dir, progress.step, perplexity)
            is_best = progress.best is None or perplexity < progress.best
            if is_best and self.is_main:
                progress.best_checksum = save_model(
                    self.model, self.settings.output_dir, self.tokenizer
                )
        progress.best = perplexity if is_best else progress.best
        self.accelerator.log(figures, step=progress.step)
        progress.history.append({"step": progress.step, **figures})
        if self.is_main:
            epoch = progress.step / self.steps_per_epoch
            bar.write(f"epoch {epoch:.4g}: {format_figures(figures)}")

    def finish(self, test: BlockCorpus | None = None) -> dict[str, float]:
        """Keeps the best epoch, or without validation the last; returns the figures of the run."""
        progress, folder = self.progress, self.settings.output_dir
        if progress.best is None:
            self.settle_rows()
            self.average.copy_to_model()
            if self.is_main:
                save_model(self.model, folder, self.tokenizer)
        else:
            self.checkpoints.load_weights(self.model, progress.best_checksum)
        if self.rows is not None:
            self.rows.release()
        words = progress.step * self.words_per_step
        figures = {
            "train_steps": progress.step,
            "train_words": round(words),
            "train_seconds": progress.seconds,
            "train_words_per_second": words / progress.seconds,
        }
        if progress.best is not None:
            figures["validation_perplexity"] = progress.best
        if test is not None:
            figures |= evaluate(self.accelerator, self.model, test, "test")
            perplexity = {"test_perplexity": figures["test_perplexity"]}
            self.accelerator.log(perplexity, step=progress.step)
        self.model.eval()
        return figures
