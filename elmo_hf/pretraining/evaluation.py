# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Perplexity of a model on held-out text."""

import math

import torch
from accelerate import Accelerator
from tqdm.auto import tqdm

from elmo_hf.modeling_elmo import ElmoForPreTraining
from elmo_hf.pretraining.batches import next_batch
from elmo_hf.pretraining.corpus import BlockCorpus
from elmo_hf.pretraining.streams import make_streams

# of all processes together
ROWS = 32
STEPS = 50


@torch.inference_mode()
def evaluate(
    accelerator: Accelerator, model: ElmoForPreTraining, corpus: BlockCorpus, name: str
) -> dict[str, float]:
    """
    Perplexities by the full softmax, as `NAME_perplexity`, `NAME_perplexity_forward` and
    `NAME_perplexity_backward`.

    Every word and sentence end counts once; a row carries its state from sentence to sentence. The
    model is left in `eval` mode.
    """
    model.prepare_for_inference()
    rows = math.ceil(ROWS / accelerator.num_processes)
    streams = make_streams(accelerator, corpus, rows, STEPS)
    # per direction: the sum of the losses, and how many they are
    sums = torch.zeros(2, 2, dtype=torch.double, device=accelerator.device)
    state = None
    words = math.ceil(corpus.num_predictions / accelerator.num_processes)
    with tqdm(
        total=words, desc=name, unit="w", leave=False, disable=not accelerator.is_main_process
    ) as bar:
        while True:
            try:
                batch = next_batch(model, streams)
            except StopIteration:
                break
            output = model(**batch, state=state)
            state = output.state
            for number, suffix in enumerate(("", "_backward")):
                count = (batch[f"labels{suffix}"] >= 0).sum()
                loss = output.loss_backward if suffix else output.loss_forward
                sums[number] += torch.stack([loss * count, count])
            bar.update(int(count))
    # a process whose rows end earlier simply adds nothing more
    losses, counts = accelerator.reduce(sums, "sum").unbind(1)
    forward, backward = (losses / counts).tolist()
    return {
        f"{name}_perplexity": math.exp((forward + backward) / 2),
        f"{name}_perplexity_forward": math.exp(forward),
        f"{name}_perplexity_backward": math.exp(backward),
    }


def format_figures(figures: dict[str, float]) -> str:
    """Figures as one line for people."""
    return ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in figures.items())
