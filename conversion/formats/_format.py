"""What every format of published weights is turned into, and what a format says of itself."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from elmo_hf.dictionaries import Dictionaries
from elmo_hf.word_vocabulary import WordVocabulary

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Mix(NamedTuple):
    """A trained mix of the layers: gamma, and a number per layer before the softmax."""

    gamma: float
    scalars: tuple[float, ...]


class TaggerHead(NamedTuple):
    """The head of a tagger."""

    labels: list[str]
    # under their names in `ElmoForTokenClassification`
    parameters: Mapping[str, np.ndarray]
    # keywords of `ElmoConfig`
    settings: Mapping[str, Any]


class Weights(NamedTuple):
    """
    A model's arrays under the names of the bilm hdf5 layout, whatever format they come from.

    An array has `shape`, `dtype` and `nbytes`, and is read by `array[()]`, only when it is used.
    """

    # in the form of bilm-tf's options.json
    options: dict[str, Any]
    arrays: Mapping[str, Any]
    # the files that the model card names with their hashes, by what they are: `weight_file`
    files: Mapping[str, Path]
    # `softmax/W` and `softmax/b`, if they are there
    softmax: Mapping[str, Any] = NOTHING
    # the words of the softmax, as a file or, where they are known already, as they are
    vocab_file: Path | None = None
    vocabulary: WordVocabulary | None = None
    mixes: tuple[Mix, ...] = ()
    # whole sentences for the model card: what was assumed, or left out
    notes: tuple[str, ...] = ()
    # keywords of `ElmoConfig` that no options.json has
    settings: Mapping[str, Any] = NOTHING
    head: TaggerHead | None = None
    # Adagrad's sums of squared gradients, under the names of the arrays, and the steps they are of
    accumulators: Mapping[str, Any] = NOTHING
    steps: int | None = None
    # of a model that knows words or characters by them
    dictionaries: Dictionaries | None = None


class WeightFormat(NamedTuple):
    """One format. A new one is a module in this folder and its line in `FORMATS`."""

    # as people call it
    name: str
    # the files of a model, as globs: what is unpacked of an archive and fetched from the Hub
    wanted: tuple[str, ...]
    # files that are of this format even alone, as globs
    parts: tuple[str, ...]
    # whether files of these names are a model in this format
    recognises: Callable[[Sequence[str]], bool]
    # The weights of a folder that was recognised, open as long as the context lasts. `named` are
    # files that the user has named, by the fields of `Source`.
    open: Callable[[Path, Mapping[str, Path | None]], AbstractContextManager[Weights]]
