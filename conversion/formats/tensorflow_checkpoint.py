"""TensorFlow checkpoints of bilm-tf, simple_elmo and DeepPavlov, with options.json and vocab.txt.

They hold what an hdf5 file does, and in addition the softmax and the state of the optimizer.
"""

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from elmo_hf.conversion.formats import bilm_hdf5
from elmo_hf.conversion.formats._format import WeightFormat, Weights
from elmo_hf.conversion.formats.word_level import read_dictionaries
from elmo_hf.conversion.key_map import BILM, SOFTMAX, datasets_of
from elmo_hf.conversion.tensor_bundle import BundleTensor, open_bundle
from elmo_hf.conversion.weights_file import open_weights
from elmo_hf.system.untrusted import read_json

NAME = "TensorFlow checkpoint"
INDEX, DATA = "*.index", "*.data-?????-of-?????"
# the index of a TF-Hub module has this name
MODULE_INDEX = "variables.index"
SCOPE, ACCUMULATOR = "lm/", "/Adagrad"
# variables of the training loop
STEPS, PERPLEXITY = "global_step", "train_perplexity"
# with one layer, TensorFlow leaves a part of the name out
CELL = re.compile(
    r"(RNN_[01])/rnn/(?:multi_rnn_cell/cell_(\d+)/)?lstm_cell/(kernel|bias|projection/kernel)"
)
SHARED = (
    "In the checkpoint, the softmax and the words share one table; here each has its own, so the "
    "accumulators of the optimizer were left out."
)
CELL_PARTS = {"kernel": "W_0", "bias": "B", "projection/kernel": "W_P_0"}


def recognises(names: Sequence[str]) -> bool:
    """
    A softmax in hdf5 means that hdf5 is complete. Otherwise the softmax is only in the checkpoint,
    which then is preferred to the hdf5 file with the same biLM.
    """
    indexes = indexes_of(names)
    if not fnmatch.filter(names, bilm_hdf5.HDF5):
        # without numbers it is an error that names the missing file
        return bool(indexes)
    whole = [name for name in indexes if name.removesuffix("index") + "data" in stems(names)]
    return bool(whole) and not fnmatch.filter(names, "*softmax*.hdf5")


def indexes_of(names: Sequence[str]) -> list[str]:
    return [name for name in fnmatch.filter(names, INDEX) if name != MODULE_INDEX]


def stems(names: Sequence[str]) -> set[str]:
    return {name.partition(".data-")[0] + ".data" for name in fnmatch.filter(names, DATA)}


@contextmanager
def open_folder(folder: Path, named: Mapping[str, Path | None]) -> Iterator[Weights]:
    found = bilm_hdf5.find_candidates(folder)
    hdf5 = found["weight_file"]
    indexes = [path for path in folder.rglob(INDEX) if path.name != MODULE_INDEX]
    found |= {"weight_file": newest(indexes), "softmax_weight_file": []}
    if not (found["options_file"] or named.get("options_file")):
        raise FileNotFoundError(
            f"There is no options.json beside the {NAME} {found['weight_file'][0].name!r}; name "
            "one with --options-file."
        )
    source = bilm_hdf5.choose_files(found, named)
    with open_files(source, sorted(folder.rglob(DATA))) as weights:
        if named.get("weight_file") is None:
            refuse_other_weights(source.weight_file, weights, hdf5)
        yield weights


@contextmanager
def open_beside(source: bilm_hdf5.Source) -> Iterator[Weights]:
    """The weights of an index that was named; its shards are beside it."""
    with open_files(source, sorted(source.weight_file.parent.glob(DATA))) as weights:
        yield weights


def newest(indexes: Sequence[Path]) -> list[Path]:
    """
    The checkpoint of the last step, or of the last epoch if epochs are folders. The text file
    `checkpoint`, which should name it, may be missing, or from another machine.
    """

    def age(index: Path) -> tuple[int, int]:
        step = re.search(r"-(\d{1,18})\.index$", index.name)
        epoch = re.fullmatch(r"\d{1,18}", index.parent.name)
        return int(step[1]) if step else -1, int(epoch[0]) if epoch else -1

    last = max(map(age, indexes), default=None)
    return [index for index in sorted(indexes) if age(index) == last]


@contextmanager
def open_files(source: bilm_hdf5.Source, files: Sequence[Path]) -> Iterator[Weights]:
    """The weights of an index; its shards are among `files`."""
    bundle = open_bundle(source.weight_file, files)
    options = read_json(source.options_file)
    arrays: dict[str, BundleTensor] = {}
    accumulators: dict[str, BundleTensor] = {}
    for name, tensor in bundle.items():
        if name in (STEPS, PERPLEXITY):
            continue
        kept = accumulators if name.endswith(ACCUMULATOR) else arrays
        add_dataset(kept, dataset_name(name.removesuffix(ACCUMULATOR)), tensor)
    refuse_other_models(repr(str(source.weight_file)), arrays)
    softmax: Mapping[str, Any] = datasets_of(SOFTMAX, arrays)
    notes: tuple[str, ...] = ()
    if [*softmax] == ["softmax/b"] and "embedding" in arrays:
        # bilm-tf's `share_embedding_softmax`
        softmax = {**softmax, "softmax/W": arrays["embedding"]}
        accumulators, notes = {}, (SHARED,)
    yield Weights(
        options,
        datasets_of(BILM, arrays),
        {"options_file": source.options_file, **bundle_files(source.weight_file, bundle)},
        softmax,
        source.vocab_file,
        notes=notes,
        accumulators=datasets_of("", accumulators),
        steps=read_steps(bundle),
        dictionaries=read_dictionaries(options, arrays, source.vocab_file),
    )


def bundle_files(index: Path, bundle: Mapping[str, BundleTensor]) -> dict[str, Path]:
    """The files of a bundle as the model card names them; the shards hold the weights."""
    first, *others = sorted({tensor.file for tensor in bundle.values()})
    more = {f"weight_{number}_file": shard for number, shard in enumerate(others, start=2)}
    return {"weight_file": first, **more, "index_file": index}


def add_dataset(datasets: dict[str, BundleTensor], key: str, tensor: BundleTensor) -> None:
    """Refuses a variable that is no array of numbers, or the second of its name."""
    where = f"The variable {tensor.name!r}"
    if key in datasets:
        raise ValueError(f"{where} is the same as {datasets[key].name!r}; there must be only one.")
    if tensor.dtype.kind != "f":
        raise ValueError(f"{where} holds {tensor.dtype}, not floating-point numbers.")
    if not tensor.shape or 0 in tensor.shape:
        raise ValueError(f"{where} holds no array of numbers.")
    datasets[key] = tensor


def dataset_name(variable: str) -> str:
    """The name of a variable in the bilm hdf5 layout, as in `embedding` for `lm/embedding`."""
    name = variable.removeprefix(SCOPE)
    cell = CELL.fullmatch(name)
    if cell is None:
        return name
    direction, layer, part = cell.groups(default="0")
    return f"{direction}/RNN/MultiRNNCell/Cell{int(layer)}/LSTMCell/{CELL_PARTS[part]}"


def refuse_other_models(what: str, arrays: Mapping[str, Any]) -> None:
    if any(name.startswith("rnn/") for name in arrays):
        raise ValueError(f"{what} holds one direction only; ELMo needs both.")
    if not arrays:
        raise ValueError(f"{what} holds no weights of a bilm model.")


def read_steps(bundle: Mapping[str, BundleTensor]) -> int | None:
    """How many steps the training had taken."""
    if STEPS not in bundle:
        return None
    if bundle[STEPS].shape not in ((), (1,)):
        raise ValueError(f"The variable {STEPS!r} must be one number, but has more of them.")
    steps = float(np.ravel(bundle[STEPS][()])[0])
    if not (0 <= steps < 2**53 and steps.is_integer()):
        raise ValueError(f"The variable {STEPS!r} is {steps}, which is no number of steps.")
    return int(steps)


def refuse_other_weights(index: Path, weights: Weights, files: Sequence[Path]) -> None:
    """Hdf5 files beside a checkpoint should be made of it; if none is, the user must choose."""
    for file in files:
        # one that cannot be read is another one
        with suppress(ValueError), open_weights(file) as datasets:
            if same_arrays(weights.arrays, datasets_of(BILM, datasets)):
                return
    if files:
        names = ", ".join(file.name for file in files)
        raise ValueError(
            f"The weights in {index.name} and in {names} differ; choose a file with --weight-file."
        )


def same_arrays(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    """The pad row is left out: one file may have it, and the other not."""
    if ours.keys() != theirs.keys():
        return False
    for key in ours:
        rows = min(len(ours[key]), len(theirs[key])) if key == "char_embed" else 0
        if not np.array_equal(ours[key][()][-rows:], theirs[key][()][-rows:]):
            return False
    return True


FORMAT = WeightFormat(
    NAME, (bilm_hdf5.OPTIONS, INDEX, DATA, bilm_hdf5.VOCABULARY), (DATA,), recognises, open_folder
)
