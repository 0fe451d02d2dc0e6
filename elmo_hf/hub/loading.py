# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Loading a model from a folder or the Hub, checked first: damage is reported in one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from elmo_hf.configuration_elmo import ElmoConfig
from elmo_hf.hub.bundled import WEIGHTS, find_model
from elmo_hf.modeling_elmo import ElmoModel, ElmoPreTrainedModel
from elmo_hf.private_interfaces import find_file
from elmo_hf.system.failures import first_line
from elmo_hf.system.untrusted import read_json, read_tensor_shapes, refuse_unreadable

INDEX = f"{WEIGHTS}.index.json"
# other files of a model folder that are read with it
SETTINGS = ("config.json", "tokenizer_config.json", "special_tokens_map.json")
BILM = ("token_encoder.", "layers.")
Loaded = TypeVar("Loaded", bound=ElmoPreTrainedModel)


def load_elmo(name: str) -> ElmoModel:
    """The biLM of a folder or Hub repository, whichever head it was saved with."""
    return load_model(ElmoModel, name)


def load_model(kind: type[Loaded], name: str, **options: Any) -> Loaded:
    """
    A model of a class, ready for inference. Unlike `from_pretrained` alone, this refuses weights
    that do not fit the configuration, before they take memory, and weights that are not finite.
    """
    place = find_model(name)
    config = load_config(place)
    with trouble_is_an_error(name):
        shapes = find_shapes(place)
    if shapes is not None:
        check_shapes(name, kind, config, shapes)
    with trouble_is_an_error(name):
        model = kind.from_pretrained(place, **options)
    refuse_not_finite(name, model)
    return model.eval()


def load_config(place: str) -> ElmoConfig:
    """The configuration of a folder or Hub repository."""
    check_settings(place)
    with trouble_is_an_error(place):
        return ElmoConfig.from_pretrained(place)


def check_settings(place: str) -> None:
    """Refuses a folder with settings that cannot be read. Files on the Hub come later."""
    folder = Path(place)
    refuse_unreadable(folder)
    if folder.is_file():
        raise ValueError(
            f"{place!r} is a file; name the folder of a model, or pass AllenNLP's options together "
            "with `weight_file`."
        )
    if not folder.is_dir():
        return
    if not (folder / SETTINGS[0]).exists():
        refuse_unreadable(folder / SETTINGS[0])
        raise FileNotFoundError(f"{place!r} is not a model folder: it has no config.json.")
    for settings in SETTINGS:
        if (folder / settings).exists():
            read_json(folder / settings)


@contextmanager
def trouble_is_an_error(name: str) -> Iterator[None]:
    """Whatever transformers raises for a stranger's folder becomes one sentence about it."""
    try:
        yield
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and not Path(name).exists():
            raise OSError(
                f"{name!r} is not an ELMo folder, and it could not be loaded from the Hub: "
                f"{first_line(error)}."
            ) from error
        raise ValueError(f"{name!r} cannot be loaded: {first_line(error)}.") from error


def find_shapes(place: str) -> dict[str, tuple[int, ...]] | None:
    """The shapes of all tensors of a model, from its files' headers; None without such files."""
    single = find_file(place, WEIGHTS)
    if single is not None:
        return read_tensor_shapes(Path(single))
    index = find_file(place, INDEX)
    if index is None:
        return None
    shapes = {}
    for file in weight_files(Path(index)):
        if (part := find_file(place, file)) is None:
            raise FileNotFoundError(f"its part {file!r} is missing")
        shapes |= read_tensor_shapes(Path(part))
    return shapes


def weight_files(index: Path) -> list[str]:
    """The files that the index of a model in several files names."""
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(file, str) for file in places.values()):
        raise ValueError(f"{str(index)!r} holds no `weight_map` from tensors to files.")
    return sorted(set(places.values()))


def check_shapes(
    name: str, kind: type[Loaded], config: ElmoConfig, shapes: dict[str, tuple[int, ...]]
) -> None:
    """Refuses tensors that a model of this configuration does not have, or has otherwise."""
    with trouble_is_an_error(name), torch.device("meta"):
        model = kind(config)
    expected = {bare(key): tuple(part.shape) for key, part in model.state_dict().items()}
    found = {bare(key): shape for key, shape in shapes.items()}
    is_saved_so = kind.__name__ in (config.architectures or [])
    # A biLM may be taken out of any model: what belongs to a task may be missing or unused.
    needs_all = is_saved_so and kind is not ElmoModel
    missing = [key for key in expected.keys() - found if needs_all or key.startswith(BILM)]
    unused = [key for key in found.keys() - expected if not key.startswith(("mixes.", "softmax."))]
    extra = [key for key in unused if is_saved_so or key.startswith(BILM)]
    problem = None
    if missing:
        problem = f"lacks the tensor {min(missing)!r}"
    elif extra:
        problem = f"has a tensor {min(extra)!r} that is not part of such a model"
    for key in sorted(expected.keys() & found):
        if not problem and expected[key] != found[key]:
            problem = f"has a tensor {key!r} of shape {found[key]} instead of {expected[key]}"
    if problem:
        raise ValueError(
            f"{name!r} {problem}: its weights and its config.json do not belong together; get both "
            "again."
        )


def bare(key: str) -> str:
    """The biLM's tensors have a prefix where it is a part of another model."""
    return key.removeprefix("elmo.")


def refuse_not_finite(name: str, model: nn.Module) -> None:
    """One pass over the weights, without a copy of any that is fine."""
    for key, weight in model.state_dict().items():
        # a sum of finite numbers may overflow, so it does not decide alone
        if not weight.sum().isfinite() and not weight.isfinite().all():
            raise ValueError(
                f"{name!r} holds NaN or infinity in the tensor {key!r}; get the model again, or "
                "train it with a lower learning rate."
            )


def saved_class(name: str) -> str | None:
    """The class of the model in a folder or Hub repository, as in `ElmoModel`, if it is known."""
    classes = load_config(find_model(name)).architectures
    return classes[0] if classes else None


def refuse_other_classes(name: str, wanted: str, advice: str) -> None:
    """Raises an error that ends with `advice` unless a model was saved as the wanted class."""
    found = saved_class(name)
    if found != wanted:
        kind = f"an {found}" if found else "a model of unknown class"
        raise ValueError(f"{name!r} holds {kind}, {advice}")
