# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Loading a biLM from a model folder or the Hub, and which class was saved there."""

from elmo_hf.configuration_elmo import ElmoConfig
from elmo_hf.hub.bundled import find_model
from elmo_hf.modeling_elmo import ElmoModel


def load_elmo(name: str) -> ElmoModel:
    """The biLM of a folder or Hub repository, whichever head it was saved with."""
    try:
        return ElmoModel.from_pretrained(find_model(name)).eval()
    except OSError as error:
        raise OSError(
            f"{name!r} is not an ELMo folder, and it could not be loaded from the Hub: {error}"
        ) from error


def saved_class(name: str) -> str | None:
    """The class of the model in a folder or Hub repository, as in `ElmoModel`, if it is known."""
    classes = ElmoConfig.from_pretrained(find_model(name)).architectures
    return classes[0] if classes else None


def refuse_other_classes(name: str, wanted: str, advice: str) -> None:
    """Raises an error that ends with `advice` unless a model was saved as the wanted class."""
    found = saved_class(name)
    if found != wanted:
        kind = f"an {found}" if found else "a model of unknown class"
        raise ValueError(f"{name!r} holds {kind}, {advice}")
