# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""What transformers' Trainer needs to be as careful with its runs as our own loops are."""

import math
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
from elmo_hf.system.failures import write_failure
from elmo_hf.system.processes import Processes
from elmo_hf.training.checkpoints import all_checkpoints, begin_run, cannot_load, seal, way_on
from elmo_hf.training.identity import describe_run, hash_sentences, hash_weights

# What may differ when a run is resumed, besides all options that begin like these: they decide when
# something is done, where it is reported and which process is which, but not what is learnt.
MAY_CHANGE = {"output_dir", "overwrite_output_dir", "num_train_epochs", "max_steps", "local_rank"}
MAY_CHANGE_PREFIXES = ("logging_", "save_", "hub_", "push_", "report_", "log_", "run_", "disable_")


class RunCallback(TrainerCallback):
    """Completes every checkpoint with the run's identity and checksums, and stops at divergence."""

    def __init__(self, identity: dict[str, Any], processes: Processes):
        self.identity, self.processes = identity, processes

    def on_train_begin(
        self, args: TrainingArguments, state: Any, control: Any, **more: Any
    ) -> None:
        if state.global_step >= state.max_steps and self.processes.is_first:
            tqdm.write(
                f"The run in {args.output_dir} is finished: there is nothing to train after step "
                f"{state.global_step}.",
                file=sys.stderr,
            )

    def on_save(self, args: TrainingArguments, state: Any, control: Any, **more: Any) -> None:
        # each process writes the state of its own random generators
        self.processes.wait_for_all()
        if self.processes.is_first:
            seal(Path(str(args.output_dir)) / f"checkpoint-{state.global_step}", self.identity)

    def on_evaluate(self, args: TrainingArguments, state: Any, control: Any, **more: Any) -> None:
        """The Trainer evaluates before it saves, and hides a training loss that is not finite."""
        loss = more["metrics"].get("eval_loss", 0.0)
        if not math.isfinite(loss):
            raise ValueError(
                f"The validation loss is {loss} after step {state.global_step}: the training has "
                "diverged. Start again with a lower --learning_rate and --overwrite_output_dir."
            )


def resume_trainer(trainer: Trainer, splits: dict[str, Any], overwrite: bool) -> str | None:
    """
    Makes a Trainer keep checksums and the identity of its run, and returns the checkpoint to resume
    from, if there is one. `splits` are the sentences that `load_splits` has read. Another run in
    its folder is an error, or is removed if it may be overwritten.
    """
    args = trainer.args
    settings = {
        name: value
        for name, value in args.to_dict().items()
        if name not in MAY_CHANGE and not name.startswith(MAY_CHANGE_PREFIXES)
    }
    settings["number of processes"] = args.world_size
    model: Any = trainer.model
    contents = {
        "model to start from": hash_weights(model.elmo),
        "training text": hash_sentences(splits["train"]),
        "validation text": hash_sentences(splits["validation"]),
    }
    identity = describe_run("tagger by Trainer", settings, model.config, contents)
    folder = Path(str(args.output_dir))
    processes = Processes(args.process_index, args.world_size)
    trainer.add_callback(RunCallback(identity, processes))
    found = processes.by_the_first(lambda: begin_run(folder, identity, overwrite))
    return None if found is None else str(found)


@contextmanager
def trainer_errors(folder: Path) -> Iterator[None]:
    """
    Reports a full disk, and a checkpoint that cannot be loaded, in one sentence. A checkpoint that
    did not fit is removed.
    """
    try:
        yield
    # a checkpoint whose checksums are right, so that it was made like this
    except pickle.UnpicklingError as error:
        raise ValueError(cannot_load(all_checkpoints(folder)[-1], error)) from error
    # a full disk is an OSError to Python, a RuntimeError to torch
    except (OSError, RuntimeError, SafetensorError) as error:
        reason = write_failure(error, folder)
        if isinstance(error, RuntimeError) and reason != "the disk is full":
            raise
        for path in all_checkpoints(folder):
            if not (path / CHECKSUMS).exists():
                shutil.rmtree(path, ignore_errors=True)
        raise OSError(f"The run could not be saved ({reason}). {way_on(folder)}") from error
