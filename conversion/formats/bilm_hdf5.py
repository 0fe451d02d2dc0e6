"""The hdf5 files of bilm-tf and AllenNLP with their options.json: what most people have."""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from elmo_hf.conversion.formats._format import WeightFormat, Weights
from elmo_hf.conversion.formats.word_level import (
    SOFTMAX_VOCABULARY,
    read_dictionaries,
    refuse_side_files,
    softmax_words,
)
from elmo_hf.conversion.key_map import BILM, SOFTMAX, datasets_of
from elmo_hf.conversion.weights_file import open_weights
from elmo_hf.system.untrusted import read_json, refuse_unreadable

OPTIONS, HDF5, VOCABULARY = "*options*.json", "*.hdf5", "*vocab*.txt*"


class Source(NamedTuple):
    """The files of a model; only a language model has the last two."""

    options_file: Path
    weight_file: Path
    softmax_weight_file: Path | None = None
    vocab_file: Path | None = None


def recognises(names: Sequence[str]) -> bool:
    weights = [name for name in fnmatch.filter(names, HDF5) if "softmax" not in name]
    return bool(weights and fnmatch.filter(names, OPTIONS))


@contextmanager
def open_folder(folder: Path, named: Mapping[str, Path | None]) -> Iterator[Weights]:
    with open_files(choose_files(find_candidates(folder), named)) as weights:
        yield weights


@contextmanager
def open_files(source: Source) -> Iterator[Weights]:
    """The weights of files that were named or found."""
    options = read_json(source.options_file)
    with ExitStack() as held:
        arrays = held.enter_context(open_weights(source.weight_file))
        refuse_side_files(source.weight_file, arrays)
        others = arrays
        if source.softmax_weight_file is not None:
            others = held.enter_context(open_weights(source.softmax_weight_file))
        softmax = datasets_of(SOFTMAX, others)
        if source.softmax_weight_file is not None and not softmax:
            raise ValueError(f"{str(source.softmax_weight_file)!r} holds no softmax datasets.")
        words = read_dictionaries(options, arrays, source.vocab_file)
        yield Weights(
            options,
            datasets_of(BILM, arrays),
            {"options_file": source.options_file, "weight_file": source.weight_file},
            softmax,
            source.vocab_file if words is None else softmax_words(source.vocab_file),
            dictionaries=words,
        )


def find_candidates(folder: Path) -> dict[str, list[Path]]:
    """The files of each kind anywhere in a folder."""
    weights, vocabularies = sorted(folder.rglob(HDF5)), sorted(folder.rglob(VOCABULARY))
    return {
        "options_file": sorted(folder.rglob(OPTIONS)),
        "weight_file": [path for path in weights if "softmax" not in path.name],
        "softmax_weight_file": [path for path in weights if "softmax" in path.name],
        # if there is no other, it is the only one of a model of characters
        "vocab_file": [path for path in vocabularies if path.name != SOFTMAX_VOCABULARY]
        or vocabularies,
    }


def choose_files(found: Mapping[str, list[Path]], named: Mapping[str, Path | None]) -> Source:
    """One file of each kind: the named one, or else the only one found."""
    chosen = {}
    for kind, candidates in found.items():
        file = named.get(kind)
        if file is None and len(candidates) > 1:
            names = ", ".join(candidate.name for candidate in candidates)
            option = f"--{kind.replace('_', '-')}"
            raise ValueError(f"There are several candidates ({names}); choose one with {option}.")
        chosen[kind] = file or next(iter(candidates), None)
    return check_files(chosen)


def check_files(files: Mapping[str, Path | None]) -> Source:
    options, weights = files.get("options_file"), files.get("weight_file")
    if options is None or weights is None:
        raise ValueError(
            "Give a folder, an archive or a Hub repository, or both --options-file and "
            "--weight-file."
        )
    for file in files.values():
        if file is None:
            continue
        refuse_unreadable(file)
        if not file.is_file():
            raise FileNotFoundError(f"There is no file {str(file)!r}.")
    return Source(options, weights, files.get("softmax_weight_file"), files.get("vocab_file"))


FORMAT = WeightFormat("bilm hdf5", (OPTIONS, HDF5, VOCABULARY), (), recognises, open_folder)
