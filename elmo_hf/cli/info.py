# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`elmo-hf info`."""

from torch.nn import Module

from elmo_hf.cli.options import Model
from elmo_hf.hub.bundled import BUNDLED
from elmo_hf.hub.loading import load_elmo, saved_class
from elmo_hf.system.untrusted import printable


def info(model: Model = BUNDLED) -> None:
    """Print a model's sizes, layers, parameters and provenance."""
    loaded = load_elmo(model)
    config = loaded.config
    parts: dict[str, Module] = {"token encoder": loaded.token_encoder}
    parts |= {f"biLSTM layer {number + 1}": layer for number, layer in enumerate(loaded.layers)}
    pairs = [] if config.char_ids == "none" else config.char_filters
    filters = ", ".join(f"{count} of {width}" for width, count in pairs) or "none"
    words = f"{config.word_vocab_size - 1:,} of {config.word_embedding_size}"
    facts = {
        "model": model,
        "class": saved_class(model) or "unknown",
        "hidden size": f"{config.hidden_size} (2 x {config.projection_size})",
        "cell size": config.cell_size,
        "layers": f"{config.num_hidden_layers} biLSTM + token layer",
        "characters": config.char_ids,
        **({"words with a vector": words} if config.word_vocab_size else {}),
        "character filters": f"{filters} ({config.num_filters} in all)",
        "highways": config.num_highway_layers,
        "characters per word": config.max_characters_per_token,
        "clips": f"cell {config.cell_clip}, projection {config.projection_clip}",
        **{name: f"{count_parameters(part):,} parameters" for name, part in parts.items()},
        "all": f"{count_parameters(loaded):,} parameters",
        **(config.provenance or {"provenance": "not recorded"}),
    }
    width = max(map(len, facts))
    for name, fact in facts.items():
        # provenance is what a stranger wrote
        print(printable(f"{name.replace('_', ' '):<{width}}  {fact}"))


def count_parameters(module: Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
