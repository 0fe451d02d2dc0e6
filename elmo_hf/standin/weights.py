# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The weights of AllenNLP's modules, read from published files as everywhere in this package."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from elmo_hf.configuration_elmo import ElmoConfig
from elmo_hf.conversion.building import check_datasets, make_config, read_parameters
from elmo_hf.conversion.key_map import BILM, rule_for_key
from elmo_hf.conversion.source import open_source
from elmo_hf.modeling_elmo import ElmoModel
from elmo_hf.standin.files import cached_path
from elmo_hf.standin.parameter_names import Pair, to_theirs


def read_config(options_file: Any, weight_file: Any) -> ElmoConfig:
    """What the options say, if the weights agree."""
    with open_source(None, **named(options_file, weight_file)) as weights:
        config = make_config(weights.options, weights.arrays)
        with torch.device("meta"):
            check_datasets(BILM, ElmoModel(config, add_scalar_mix=False), weights.arrays)
    return config


def fill(module: nn.Module, pairs: list[Pair], options_file: Any, weight_file: Any) -> None:
    """Gives a module that was made without memory its weights, under AllenNLP's names."""
    wanted = {f"{BILM}{name}" for pair in pairs for name in pair.ours}
    with open_source(None, **named(options_file, weight_file)) as weights:
        arrays = {
            key: array
            for key, array in weights.arrays.items()
            if wanted.intersection(rule_for_key(key).names)
        }
        tensors = to_theirs(pairs, read_parameters(BILM, arrays))
    # made in inference mode, they could never get gradients
    with torch.inference_mode(False):
        own = {
            name: part.clone() if part.is_inference() else part for name, part in tensors.items()
        }
        module.load_state_dict(own, strict=True, assign=True)


def named(options_file: Any, weight_file: Any) -> dict[str, Path]:
    return {
        "options_file": Path(cached_path(options_file)),
        "weight_file": Path(cached_path(weight_file)),
    }
