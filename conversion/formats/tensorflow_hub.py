"""TF-Hub modules: google/elmo and DeepPavlov's exports, folders with variables/variables.index.

No hyper-parameters are in these files. Sizes follow from the shapes of the arrays; what does not is
taken to be that of the original model, and the model card says so.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from elmo_hf.conversion.formats._format import Mix, WeightFormat, Weights
from elmo_hf.conversion.formats.tensorflow_checkpoint import (
    CELL_PARTS,
    DATA,
    MODULE_INDEX,
    add_dataset,
    bundle_files,
)
from elmo_hf.conversion.key_map import BILM, datasets_of
from elmo_hf.conversion.options_map import ASSUMPTION, assumed_options
from elmo_hf.conversion.tensor_bundle import BundleTensor, open_bundle
from elmo_hf.system.untrusted import read_json

NAME = "TF-Hub module"
MODULE_FILES = ("saved_model.pb", "tfhub_module.pb", MODULE_INDEX)
SCOPE = "bilm/"
CELL = re.compile(
    r"(RNN_[01]/RNN/MultiRNNCell/Cell\d+)/rnn/lstm_cell/(kernel|bias|projection/kernel)"
)
# the LSTMs' state, which a module carries from call to call
STATE = re.compile(r"(?:.*/)?Variable(?:_\d+)?")
# a mix as its numbers before the softmax and gamma: Google's names, and DeepPavlov's
MIXES = {
    "aggregation/weights": "aggregation/scaling",
    "aggregation/elmo_output_ELMo_W": "aggregation/elmo_output_ELMo_gamma",
}
# what TensorFlow 2 adds to the names of variables, which are numbers then
SAVED_ANEW = "/.ATTRIBUTES/VARIABLE_VALUE"


def recognises(names: Sequence[str]) -> bool:
    return any(name in MODULE_FILES for name in names)


@contextmanager
def open_folder(folder: Path, named: Mapping[str, Path | None]) -> Iterator[Weights]:
    indexes = sorted(folder.rglob(MODULE_INDEX))
    if len(indexes) != 1:
        found = f"There are several {NAME}s" if indexes else f"This {NAME} has no {MODULE_INDEX}"
        raise FileNotFoundError(f"{found}; name the folder of a whole one.")
    bundle = open_bundle(indexes[0], sorted(folder.rglob(DATA)))
    arrays: dict[str, BundleTensor] = {}
    others = {}
    for name, tensor in bundle.items():
        if name.endswith(SAVED_ANEW):
            raise ValueError(
                f"{str(indexes[0])!r} was saved anew by TensorFlow 2, which drops the names of the "
                "variables; get the module as it was published."
            )
        if STATE.fullmatch(name):
            continue
        if name.startswith(SCOPE):
            add_dataset(arrays, dataset_name(name), tensor)
        else:
            others[name] = tensor
    mixes, mix_note = read_mixes(others)
    options, notes = find_options(named.get("options_file"), datasets_of(BILM, arrays))
    files = bundle_files(indexes[0], bundle)
    if (options_file := named.get("options_file")) is not None:
        files["options_file"] = options_file
    yield Weights(options, arrays, files, mixes=mixes, notes=(*notes, mix_note, *left_out(others)))


def dataset_name(variable: str) -> str:
    """The name of a variable in the bilm hdf5 layout."""
    name = variable.removeprefix(SCOPE)
    cell = CELL.fullmatch(name)
    return f"{cell[1]}/LSTMCell/{CELL_PARTS[cell[2]]}" if cell else name


def find_options(
    file: Path | None, arrays: Mapping[str, BundleTensor]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The options that were named, or else those that follow from shapes and assumptions."""
    if file is not None:
        return read_json(file), ()
    for part in ("char_embed", "RNN_0"):
        if not any(key.startswith(part) for key in arrays):
            raise ValueError(f"The module lacks the weights {SCOPE}{part}; get it again.")
    return assumed_options({key: tensor.shape for key, tensor in arrays.items()}), (ASSUMPTION,)


def read_mixes(others: dict[str, BundleTensor]) -> tuple[tuple[Mix, ...], str]:
    """The mix of a module, taken out of its other variables, and a sentence about it."""
    for weights, scaling in MIXES.items():
        if weights in others:
            gamma = read_numbers(others.pop(scaling)) if scaling in others else [1.0]
            if len(gamma) != 1:
                raise ValueError(f"The variable {scaling!r} must be one number.")
            mix = Mix(gamma[0], tuple(read_numbers(others.pop(weights))))
            note = "The weights of the layers (`mixes`) are those of the module"
            return (mix,), f"{note}; it is assumed that they are normalised by a softmax."
    return (), "The module has no weights of the layers; they are equal."


def read_numbers(tensor: BundleTensor) -> list[float]:
    """The few numbers of a mix."""
    if tensor.dtype.kind != "f" or tensor.nbytes > 1024:
        raise ValueError(f"The variable {tensor.name!r} is no list of weights of layers.")
    return [float(number) for number in np.ravel(tensor[()])]


def left_out(others: Mapping[str, BundleTensor]) -> tuple[str, ...]:
    """A sentence about variables that are no part of a biLM."""
    if not others:
        return ()
    names = ", ".join(sorted(others)[:5]) + (", ..." if len(others) > 5 else "")
    return (f"These variables of the module were left out: {names}.",)


FORMAT = WeightFormat(NAME, (*MODULE_FILES, DATA), MODULE_FILES, recognises, open_folder)
