# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Loading a model from a folder or the Hub, checked first: damage is reported in one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import torch
from torch import nn

from elmo_hf.configuration_elmo import ElmoConfig
from elmo_hf.dictionaries import DictionaryRows
from elmo_hf.hub.bundled import WEIGHTS, find_model
from elmo_hf.modeling_elmo import ElmoModel, ElmoPreTrainedModel
from elmo_hf.private_interfaces import find_file
from elmo_hf.system.failures import first_line
from elmo_hf.system.untrusted import read_json, read_tensor_shapes, refuse_unreadable
from elmo_hf.text.split_option import splitter_name
from elmo_hf.tokenization_elmo import ElmoTokenizer

INDEX = f"{WEIGHTS}.index.json"
# other files of a model folder that are read with it
TOKENIZER = "tokenizer_config.json"
SETTINGS = ("config.json", TOKENIZER, "special_tokens_map.json")
# that of float16, in which models may run as well; those of real models are below 100
LARGEST_WEIGHT = 65504
BILM = ("token_encoder.", "layers.", "alignment.")
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
        files = find_weights(place)
    if files:
        shapes = {key: shape for file in files for key, shape in read_tensor_shapes(file).items()}
        check_shapes(name, kind, config, shapes)
    with trouble_is_an_error(name):
        model = kind.from_pretrained(place, **options)
    refuse_unusable(name, model)
    return model.eval()


def has_tokenizer(place: str) -> bool:
    """Whether a tokenizer is saved beside a model."""
    with trouble_is_an_error(place):
        return find_file(place, TOKENIZER) is not None


def load_tokenizer(name: str, config: ElmoConfig) -> ElmoTokenizer:
    """The tokenizer beside a model of this configuration."""
    with trouble_is_an_error(name):
        tokenizer = ElmoTokenizer.from_pretrained(name)
    width = config.max_characters_per_token
    if tokenizer.max_characters_per_token != width:
        raise ValueError(
            f"{name!r} has a tokenizer of {tokenizer.max_characters_per_token} characters per word "
            f"beside a model of {width}; get tokenizer_config.json again."
        )
    if tokenizer.rows.width != config.row_width:
        raise ValueError(
            f"{name!r} has a tokenizer that gives a word {tokenizer.rows.width} ids beside a model "
            f"that reads {config.row_width}; get tokenizer_config.json and the dictionaries again."
        )
    with trouble_is_an_error(name):
        # its other settings are checked by nobody else
        tokenizer([["word"]], is_split_into_words=True, padding=True)
    return tokenizer


def make_tokenizer(
    model: ElmoPreTrainedModel | ElmoConfig, split: str | None = None, base: str | None = None
) -> ElmoTokenizer:
    """
    The tokenizer of a model, or of a configuration that asks for no dictionaries. It splits raw
    text by the splitter that `split` names; without one like the tokenizer of the model `base`, or
    at blanks if it has none.
    """
    config = model if isinstance(model, ElmoConfig) else model.config
    settings: dict[str, Any] = {"max_characters_per_token": config.max_characters_per_token}
    if split is not None:
        settings["word_splitter"] = splitter_name(split)
    elif base is not None and has_tokenizer(find_model(base)):
        known = load_tokenizer(find_model(base), config)
        settings |= {"word_splitter": known.word_splitter, "language": known.language}
    if config.char_ids != "bytes":
        if isinstance(model, ElmoConfig):
            raise ValueError("This model knows words by dictionaries; pass the model itself.")
        settings["dictionaries"] = cast(DictionaryRows, model.word_rows).dictionaries
    return ElmoTokenizer(**settings)


def load_config(place: str) -> ElmoConfig:
    """The configuration of a folder or Hub repository."""
    check_settings(place)
    with trouble_is_an_error(place):
        config = ElmoConfig.from_pretrained(place)
    names = config.architectures
    if names is not None and not (isinstance(names, list) and all(type(n) is str for n in names)):
        raise ValueError(f"{place!r}: `architectures` is {names!r} but must be a list of names.")
    return config


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


def find_weights(place: str) -> list[Path]:
    """The safetensors files of a model, if it has any."""
    if (single := find_file(place, WEIGHTS)) is not None:
        return [Path(single)]
    if (index := find_file(place, INDEX)) is None:
        return []
    files = {name: find_file(place, name) for name in weight_files(Path(index))}
    for name, file in files.items():
        if file is None:
            raise FileNotFoundError(f"its part {name!r} is missing")
    return [Path(file) for file in files.values() if file is not None]


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


def refuse_unusable(name: str, model: nn.Module) -> None:
    key = find_unusable(model)
    if key is not None:
        raise ValueError(
            f"{name!r} holds NaN, infinity or huge numbers in the tensor {key!r}; get the model "
            "again, or train it with a lower learning rate."
        )


def find_unusable(model: nn.Module) -> str | None:
    """
    The name of a weight with NaN, infinity, or numbers of such a size that results would not be
    finite. One pass over the weights, and no copy.
    """
    for key, weight in model.state_dict().items():
        if weight.numel() and weight.is_floating_point():
            lowest, highest = weight.aminmax()
            # also false for NaN
            if not (lowest >= -LARGEST_WEIGHT and highest <= LARGEST_WEIGHT):
                return key
    return None


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
