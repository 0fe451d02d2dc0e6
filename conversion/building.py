"""Published weights as a model: read, mapped, loaded strictly and compared with the reference."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from huggingface_hub.errors import StrictDataclassError
from torch import nn

import elmo_hf
from elmo_hf import ElmoConfig, ElmoForPreTraining, ElmoModel
from elmo_hf.conversion.formats import Mix, Weights
from elmo_hf.conversion.heads import add_head, mix_parameters
from elmo_hf.conversion.key_map import BILM, SOFTMAX, datasets_of, rule_for_key, rule_for_name
from elmo_hf.conversion.options_map import NUM_CHARACTERS, check_options, config_from_options
from elmo_hf.conversion.verification import TOLERANCE, largest_error, reference_layers
from elmo_hf.conversion.weights_file import read_array
from elmo_hf.dictionaries import Dictionaries
from elmo_hf.modeling_elmo import ElmoPreTrainedModel
from elmo_hf.system.checksums import hash_file
from elmo_hf.word_vocabulary import WordVocabulary


def load_converted(weights: Weights) -> tuple[ElmoModel, float]:
    """The biLM of some weights, and its largest relative error against the reference."""
    options, arrays = weights.options, weights.arrays
    mixes = {"num_output_representations": max(1, len(weights.mixes))}
    config = make_config(options, arrays, weights.dictionaries, **mixes, **weights.settings)
    with torch.device("meta"):
        bilm = ElmoModel(config, add_scalar_mix=False)
    check_datasets(BILM, bilm, arrays)
    config.provenance = provenance(weights)
    # before the weights are loaded, so that the two never take memory at the same time
    expected = reference_layers(options, arrays, weights.dictionaries)
    model = load_model(config, arrays, weights.mixes)
    model.dictionaries = weights.dictionaries
    error = largest_error(model, expected)
    if not error <= TOLERANCE:
        raise ValueError(
            f"The converted model differs from the reference by {error:.1e}, where {TOLERANCE:.0e} "
            "is allowed."
        )
    return model, error


def make_config(
    options: dict,
    datasets: Mapping[str, Any],
    dictionaries: Dictionaries | None = None,
    **more: Any,
) -> ElmoConfig:
    """The configuration the options ask for, if the weights agree; `more` are other fields."""
    keywords = config_from_options(options)
    check_options(keywords, {key: dataset.shape for key, dataset in datasets.items()})
    keywords["use_char_projection"] = "CNN_proj/W_proj" in datasets
    keywords["use_cell_projection"] = any(key.endswith("/W_P_0") for key in datasets)
    if dictionaries is not None:
        keywords |= dictionaries.config_fields()
        if dictionaries.words is not None:
            keywords["word_embedding_size"] = datasets["embedding"].shape[-1]
    try:
        return ElmoConfig(**keywords, **more)
    except StrictDataclassError as error:
        # it wraps the sentence that names the value
        raise ValueError(f"The options are not usable: {error.__cause__ or error}") from error


def check_datasets(part: str, module: nn.Module, datasets: Mapping[str, Any]) -> None:
    """Refuse datasets that are unknown, missing or of a wrong shape for a module, by name."""
    expected = {}
    for name, parameter in module.state_dict().items():
        rule = rule_for_name(part + name, datasets)
        # both halves of a kernel have the same shape
        halves = [np.broadcast_to(np.float32(0), tuple(parameter.shape))] * len(rule.names)
        expected[rule.key] = rule.operation.to_array(*halves).shape
    for key, dataset in datasets_of(part, datasets).items():
        if key not in expected:
            raise ValueError(f"The dataset {key!r} is not part of a model with these options.")
        shapes = {expected[key]}
        if key == "char_embed":
            # some files already hold the row of the padding word
            shapes.add((NUM_CHARACTERS, *expected[key][1:]))
        if dataset.shape not in shapes:
            raise ValueError(
                f"The dataset {key!r} has shape {dataset.shape} where the options ask for "
                f"{expected[key]}."
            )
    missing = sorted(expected.keys() - datasets.keys())
    if missing:
        raise ValueError(f"The weights lack the datasets {', '.join(missing)}.")


def row_by_row(array: np.ndarray) -> torch.Tensor:
    """The array as parameters and files hold one; numpy turns a matrix 25 times as slowly."""
    return torch.from_numpy(array).contiguous()


def read_parameters(part: str, datasets: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The parameters of the biLM or the softmax, under their names in it."""
    tensors = {}
    for key, dataset in datasets_of(part, datasets).items():
        rule = rule_for_key(key)
        arrays = rule.operation.to_parameters(read_array(key, dataset))
        for name, array in zip(rule.names, arrays, strict=True):
            tensors[name.removeprefix(part)] = row_by_row(array)
    return tensors


def load_model(
    config: ElmoConfig, datasets: Mapping[str, Any], trained: Sequence[Mix] = ()
) -> ElmoModel:
    """A biLM with the weights of checked datasets; its mixes weight all layers alike if new."""
    with torch.device("meta"):
        model = ElmoModel(config)
    for name, parameter in model.mixes.to_empty(device="cpu").named_parameters():
        nn.init.constant_(parameter, 1.0 if name.endswith(".gamma") else 0.0)
    mixes = {f"mixes.{name}": part for name, part in model.mixes.state_dict().items()}
    mixes |= mix_parameters(trained, config.num_hidden_layers + 1)
    model.load_state_dict(read_parameters(BILM, datasets) | mixes, strict=True, assign=True)
    return model.eval()


def whole_model(bilm: ElmoModel, weights: Weights) -> ElmoPreTrainedModel:
    """The biLM with what was published with it: a tagger's head, a softmax or nothing."""
    if weights.head is not None:
        return add_head(bilm, weights.head)
    return add_softmax(bilm, weights) or bilm


def add_softmax(model: ElmoModel, weights: Weights) -> ElmoForPreTraining | None:
    """The biLM with its softmax; None without one."""
    vocabulary = weights.vocabulary
    if vocabulary is None and weights.vocab_file is not None:
        vocabulary = WordVocabulary.load(weights.vocab_file)
    softmax = weights.softmax
    if not softmax:
        return None
    # a dataset without a length, or of another one, is refused below
    count = max([len(part) for part in softmax.values() if part.shape], default=1)
    if vocabulary is not None and len(vocabulary) != count:
        raise ValueError(
            f"The vocabulary has {len(vocabulary):,} words but the softmax has {count:,}."
        )
    words = {"lm_vocab_size": count} if vocabulary is None else vocabulary.config_fields()
    with torch.device("meta"):
        language_model = ElmoForPreTraining(
            ElmoConfig.from_dict({**model.config.to_dict(), **words})
        )
    check_datasets(SOFTMAX, language_model.softmax, softmax)
    parameters = read_parameters(SOFTMAX, softmax)
    language_model.softmax.load_state_dict(parameters, strict=True, assign=True)
    # without the mixes, which only a task needs
    bilm = model.state_dict()
    shared = {name: bilm[name] for name in language_model.elmo.state_dict()}
    language_model.elmo.load_state_dict(shared, strict=True, assign=True)
    language_model.vocabulary = vocabulary
    language_model.elmo.dictionaries = weights.dictionaries
    return language_model.eval()


def provenance(weights: Weights) -> dict[str, str]:
    """Names and hashes of the files a model came from."""
    found = {"converted_by": f"elmo_hf {elmo_hf.__version__}"}
    for kind, file in weights.files.items():
        found[kind] = file.name
        found[f"{kind.removesuffix('_file')}_sha256"] = hash_file(file)
    return found
