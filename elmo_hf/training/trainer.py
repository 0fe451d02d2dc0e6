# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What transformers' Trainer needs to be as careful with its runs as our own loops are."""

import pickle
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from tqdm.auto import tqdm
from transformers import Trainer, TrainerCallback, TrainingArguments

from elmo_hf.system.checksums import NAME as CHECKSUMS
from elmo_hf.system.checksums import find_damage
from elmo_hf.system.failures import is_full
from elmo_hf.system.processes import Processes
from elmo_hf.training.checkpoints import (
    all_checkpoints,
    begin_run,
    cannot_load,
    finished_checkpoints,
    seal,
    way_on,
)
from elmo_hf.training.divergence import refuse_divergence
from elmo_hf.training.identity import WAY_OUT, describe_run, hash_sentences, hash_weights

# What decides the result of a run among the many TrainingArguments; the rest may change when it is
# resumed.
DECISIVE = (
    "adafactor",
    "adam_beta1",
    "adam_beta2",
    "adam_epsilon",
    "bf16",
    "data_seed",
    "dataloader_drop_last",
    "eval_steps",
    "eval_strategy",
    "fp16",
    "gradient_accumulation_steps",
    "greater_is_better",
    "label_smoothing_factor",
    "learning_rate",
    "load_best_model_at_end",
    "lr_scheduler_kwargs",
    "lr_scheduler_type",
    "max_grad_norm",
    "metric_for_best_model",
    "optim",
    "optim_args",
    "per_device_train_batch_size",
    "seed",
    "warmup_ratio",
    "warmup_steps",
    "weight_decay",
)


class RunCallback(TrainerCallback):
    """Gives every checkpoint the run's identity and checksums, and stops at divergence."""

    def __init__(self, identity: dict[str, Any], processes: Processes):
        self.identity, self.processes = identity, processes

    def on_train_begin(
        self, args: TrainingArguments, state: Any, control: Any, **more: Any
    ) -> None:
        if state.best_model_checkpoint is not None:
            # the folder may have been moved since
            best = Path(str(args.output_dir)) / Path(state.best_model_checkpoint).name
            if damage := find_damage(best):
                raise ValueError(f"The run's best checkpoint, {str(best)!r}: {damage}; {WAY_OUT}.")
            state.best_model_checkpoint = str(best)
        if state.global_step >= state.max_steps and self.processes.is_first:
            tqdm.write(
                f"The run in {args.output_dir} is finished: there is nothing to train after step "
                f"{state.global_step}.",
                file=sys.stderr,
            )

    def on_save(self, args: TrainingArguments, state: Any, control: Any, **more: Any) -> None:
        folder, step = Path(str(args.output_dir)), state.global_step
        refuse_divergence(folder, step, model=more["model"])
        # each process writes the state of its own random generators
        self.processes.wait_for_all()
        if self.processes.is_first:
            seal(folder / f"checkpoint-{step}", self.identity)

    def on_evaluate(self, args: TrainingArguments, state: Any, control: Any, **more: Any) -> None:
        """The Trainer evaluates before it saves, and hides a training loss that is not finite."""
        loss = more["metrics"].get("eval_loss", 0.0)
        refuse_divergence(Path(str(args.output_dir)), state.global_step, loss, more["model"])


def resume_trainer(trainer: Trainer, splits: dict[str, Any], overwrite: bool) -> str | None:
    """
    Makes a Trainer keep checksums and the identity of its run, and returns the checkpoint to resume
    from, if there is one. `splits` are the sentences that `load_splits` has read. Another run in
    its folder is an error, or is removed if it may be overwritten.
    """
    args = trainer.args
    saved = args.to_dict()
    settings = {name: saved[name] for name in DECISIVE if name in saved}
    model: Any = trainer.model
    contents = {
        "model to start from": hash_weights(model.elmo),
        "training text": hash_sentences(splits["train"]),
        "validation text": hash_sentences(splits["validation"]),
    }
    identity = describe_run("tagger by Trainer", model, settings, contents, args.world_size)
    folder = Path(str(args.output_dir))
    processes = Processes(args.process_index, args.world_size)
    trainer.add_callback(RunCallback(identity, processes))
    found = processes.by_the_first(lambda: begin_run(folder, identity, overwrite))
    return None if found is None else str(found)


@contextmanager
def trainer_errors(trainer: Trainer) -> Iterator[None]:
    """
    Reports a full disk, and a checkpoint that cannot be loaded, in one sentence. A checkpoint that
    did not fit is removed.
    """
    folder = Path(str(trainer.args.output_dir))
    try:
        yield
    # a checkpoint whose checksums are right, so that it was made like this
    except pickle.UnpicklingError as error:
        finished = finished_checkpoints(folder)
        raise ValueError(cannot_load(finished[-1] if finished else folder, error)) from error
    # a full disk is an OSError to Python, a RuntimeError to torch
    except (OSError, RuntimeError, SafetensorError) as error:
        if not is_full(error, folder):
            raise
        for path in all_checkpoints(folder):
            if trainer.is_world_process_zero() and not (path / CHECKSUMS).exists():
                shutil.rmtree(path, ignore_errors=True)
        raise OSError(f"The run could not be saved: the disk is full. {way_on(folder)}") from error
