"""A task's head beside a converted biLM, and a task's mixes of its layers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from huggingface_hub.errors import StrictDataclassError

from elmo_hf import ElmoConfig, ElmoForTokenClassification, ElmoModel
from elmo_hf.conversion.formats import Mix, TaggerHead

# A fixed mix is written with numbers such as -9e10 before the softmax, which no float16 can hold;
# this far below the largest, the softmax is zero as well.
LOWEST = -1e4


def mix_parameters(mixes: Sequence[Mix], layers: int) -> dict[str, torch.Tensor]:
    """The parameters of mixes of so many layers under their names in an `ElmoModel`."""
    parameters = {}
    for number, mix in enumerate(mixes):
        if len(mix.scalars) != layers:
            raise ValueError(
                f"The mix {number} has weights for {len(mix.scalars)} layers, but the model has "
                f"{layers} with that of the words."
            )
        scalars = np.array(mix.scalars, dtype=np.float64)
        if not (np.isfinite(scalars).all() and np.isfinite(mix.gamma)):
            raise ValueError(f"The mix {number} of the layers holds NaN or infinity.")
        if np.abs(scalars).max() > -LOWEST:
            scalars = np.maximum(scalars - scalars.max(), LOWEST)
        parameters[f"mixes.{number}.scalars"] = torch.tensor(scalars, dtype=torch.float32)
        parameters[f"mixes.{number}.gamma"] = torch.tensor([mix.gamma], dtype=torch.float32)
    return parameters


def add_head(model: ElmoModel, head: TaggerHead) -> ElmoForTokenClassification:
    """The tagger of a biLM with its mixes and a head."""
    labels = dict(enumerate(head.labels))
    names = {"id2label": labels, "label2id": {label: number for number, label in labels.items()}}
    if len(names["label2id"]) != len(labels):
        raise ValueError("The labels of the tagger are not all different.")
    fields: Mapping[str, Any] = {**model.config.to_dict(), **head.settings, **names}
    try:
        with torch.device("meta"):
            tagger = ElmoForTokenClassification(ElmoConfig.from_dict({**fields}))
    except StrictDataclassError as error:
        raise ValueError(f"The tagger is not usable: {error.__cause__ or error}") from error
    weights = {f"elmo.{name}": part for name, part in model.state_dict().items()}
    for name, array in head.parameters.items():
        if not np.isfinite(array).all():
            raise ValueError(f"The tagger's {name} holds NaN or infinity.")
        # a copy, because tensors that share memory cannot be saved
        weights[name] = torch.tensor(array)
    for name, expected in tagger.state_dict().items():
        if name not in weights or weights[name].shape != expected.shape:
            found = tuple(weights[name].shape) if name in weights else "nothing"
            raise ValueError(f"The tagger needs {name} {tuple(expected.shape)}, not {found}.")
    tagger.load_state_dict(weights, strict=True, assign=True)
    return tagger.eval()
