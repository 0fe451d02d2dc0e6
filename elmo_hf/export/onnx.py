# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""A model as one ONNX file: characters in, vectors or logits out, for any batch and any length."""

import logging
import warnings
from pathlib import Path

import numpy as np
import torch

from elmo_hf.export.padded import PaddedElmo
from elmo_hf.extras import require
from elmo_hf.hub.loading import load_model, saved_class
from elmo_hf.modeling_elmo import (
    ElmoForSequenceClassification,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoPreTrainedModel,
)
from elmo_hf.system.writing import new_file

INPUTS = ["input_ids", "attention_mask"]
# how far onnxruntime may be from torch
TOLERANCE = 1e-5
HEADS: dict[str, type[ElmoPreTrainedModel]] = {
    "ElmoForTokenClassification": ElmoForTokenClassification,
    "ElmoForSequenceClassification": ElmoForSequenceClassification,
}


def write_model(model: str, output: Path) -> str:
    """
    Writes a model as ONNX, with its head if it has one, once onnxruntime agrees with torch. Returns
    a summary for the user.
    """
    onnxruntime, _ = (require(module, "Exporting ONNX") for module in ("onnxruntime", "onnxscript"))
    kind = HEADS.get(saved_class(model) or "", ElmoModel)
    loaded = load_model(kind, model, dtype=torch.float32)
    padded = PaddedElmo(loaded)
    with new_file(output) as file:
        write_onnx(padded, file)
        session = onnxruntime.InferenceSession(file)
        difference = largest_difference(padded, session)
        # so that a comparison with NaN does not pass as small
        if not difference <= TOLERANCE:
            raise ValueError(
                f"onnxruntime differs from torch by {difference:.1e}; nothing was written."
            )
    names = ", ".join(result.name for result in session.get_outputs())
    megabytes = output.stat().st_size / 1e6
    return f"{names}, largest difference {difference:.1e}, {megabytes:.1f} MB, saved in {output}"


def write_onnx(padded: PaddedElmo, file: Path) -> None:
    """Exports without a comparison."""
    batch, words = (torch.export.Dim(name, min=1) for name in ("batch", "words"))
    shape = {0: batch, 1: words}
    is_bare = isinstance(padded.model, ElmoModel)
    # it reports that torchvision is missing, which is not needed here
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        # torch warns of its own internals, and that both inputs have the same axes
        warnings.simplefilter("ignore")
        torch.onnx.export(
            padded,
            example(padded, 3, 5),
            file,
            dynamo=True,
            verbose=False,
            external_data=False,
            input_names=INPUTS,
            output_names=["last_hidden_state", "hidden_states"] if is_bare else ["logits"],
            dynamic_shapes=dict.fromkeys(INPUTS, shape),
        )


def example(padded: PaddedElmo, batch: int, words: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random words in sentences of random lengths; the first sentence has the full length."""
    # the same shape always gets the same words
    draw = torch.Generator().manual_seed(0)
    lengths = torch.randint(1, words + 1, (batch, 1), generator=draw)
    lengths[0] = words
    mask = torch.arange(words) < lengths
    config = padded.model.config
    # ids that any character has, and any word that has one
    end = min([260, *filter(None, (config.vocab_size, config.word_vocab_size))])
    rows = torch.randint(1, end, (batch, words, config.row_width), generator=draw)
    return rows * mask.unsqueeze(-1), mask.long()


@torch.no_grad()
def largest_difference(padded: PaddedElmo, session) -> float:
    """Over all outputs and words of a batch whose shape the exporter has not seen."""
    ids, mask = example(padded, 4, 9)
    model = padded.model
    expected = model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
    wanted = [expected.last_hidden_state if isinstance(model, ElmoModel) else expected.logits]
    if isinstance(model, ElmoModel):
        wanted.append(torch.stack(expected.hidden_states, dim=1))
    found = session.run(None, dict(zip(INPUTS, (ids.numpy(), mask.numpy()), strict=True)))
    differences = []
    for one, other in zip(found, wanted, strict=True):
        # a tagger's logits of padding do not matter; other outputs are zero there or per sentence
        live = mask.unsqueeze(-1).numpy() if other.ndim == 3 else 1
        differences.append(np.abs((one - other.numpy()) * live).max())
    # not Python's max, which passes over NaN
    return float(np.max(differences))
