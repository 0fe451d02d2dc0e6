"""Where published weights are: two files, a folder, an NLPL zip or a Hub repository.

Finds `options.json` and the hdf5 under the names in use, and names the formats it cannot read.
"""

import fnmatch
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from elmo_hf.system.failures import first_line
from elmo_hf.system.untrusted import refuse_pointer, refuse_unreadable, unpack

# files that reveal another format, and its name
OTHER_FORMATS = {
    "token_embedder.pkl": "ELMoForManyLangs",
    "encoder.pkl": "ELMoForManyLangs",
    "saved_model.pb": "TF-Hub",
    "tfhub_module.pb": "TF-Hub",
    "*.ckpt*.index": "TensorFlow checkpoint",
    "weights.th": "AllenNLP archive",
    "model.tar.gz": "AllenNLP archive",
    "model.safetensors": "Hugging Face",
}
WANTED = ("*options*.json", "*.hdf5", "*vocab*.txt*")


class Source(NamedTuple):
    """The files of a model; only a language model has the last two."""

    options_file: Path
    weight_file: Path
    softmax_weight_file: Path | None = None
    vocab_file: Path | None = None


@contextmanager
def open_source(source: str | None, **named: Path | None) -> Iterator[Source]:
    """
    The files, for as long as the context lasts (a zip is unpacked for that long).

    `source` is a folder, a zip or a repository in which they are searched; `named` gives files by
    the fields of `Source`, instead of it or to choose among several.
    """
    if source is None:
        yield _checked(named)
        return
    path = Path(source)
    refuse_unreadable(path)
    if path.is_dir():
        yield _complete(_search(path, source), named)
    elif path.is_file():
        with TemporaryDirectory() as folder:
            names = _unzip(path, Path(folder))
            yield _complete(_search(Path(folder), source, names), named)
    elif source.count("/") == 1 and not path.parent.exists():
        yield _complete(_search(_download(source), source), named)
    else:
        raise FileNotFoundError(f"There is no folder, zip file or Hub repository {source!r}.")


def _checked(files: Mapping[str, Path | None]) -> Source:
    options, weights = files.get("options_file"), files.get("weight_file")
    if options is None or weights is None:
        raise ValueError(
            "Give a folder, zip or Hub repository, or both --options-file and --weight-file."
        )
    for file in files.values():
        if file is None:
            continue
        refuse_unreadable(file)
        if not file.is_file():
            raise FileNotFoundError(f"There is no file {str(file)!r}.")
    for file in (options, weights):
        _refuse_other_formats(str(file), [file.name])
    return Source(options, weights, files.get("softmax_weight_file"), files.get("vocab_file"))


def _complete(found: dict[str, list[Path]], named: Mapping[str, Path | None]) -> Source:
    """One file of each kind: the named one, or else the only one found."""
    chosen = {}
    for kind, candidates in found.items():
        file = named.get(kind)
        if file is None and len(candidates) > 1:
            names = ", ".join(candidate.name for candidate in candidates)
            option = f"--{kind.replace('_', '-')}"
            raise ValueError(f"There are several candidates ({names}); choose one with {option}.")
        chosen[kind] = file or next(iter(candidates), None)
    return _checked(chosen)


def _search(folder: Path, source: str, names: Sequence[str] | None = None) -> dict[str, list[Path]]:
    """The files of each kind anywhere in a folder; `names` tells of files that are not in it."""
    weights = sorted(folder.rglob("*.hdf5"))
    found = {
        "options_file": sorted(folder.rglob("*options*.json")),
        "weight_file": [path for path in weights if "softmax" not in path.name],
        "softmax_weight_file": [path for path in weights if "softmax" in path.name],
        "vocab_file": sorted(folder.rglob("*vocab*.txt*")),
    }
    lacking = [
        name
        for kind, name in (("options_file", "options.json"), ("weight_file", "*.hdf5 weights"))
        if not found[kind]
    ]
    if lacking:
        _refuse_other_formats(source, names or [path.name for path in folder.rglob("*")])
        raise FileNotFoundError(f"{source!r} holds no {' and no '.join(lacking)}.")
    return found


def _refuse_other_formats(source: str, names: Sequence[str]) -> None:
    for pattern, format_name in OTHER_FORMATS.items():
        if fnmatch.filter(names, pattern):
            raise ValueError(
                f"{source!r} is in the {format_name} format; only the bilm hdf5 layout can be "
                "converted."
            )


def _unzip(path: Path, folder: Path) -> list[str]:
    """Unpacks the files of a model; returns the names of all files in the zip."""
    refuse_pointer(path)
    _refuse_other_formats(str(path), [path.name])
    if not zipfile.is_zipfile(path):
        raise ValueError(
            f"{str(path)!r} is neither a folder nor a zip; for single files use --options-file and "
            "--weight-file."
        )
    return unpack(path, folder, lambda name: any(fnmatch.fnmatch(name, some) for some in WANTED))


def _download(repository: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    patterns = [*WANTED, *OTHER_FORMATS]
    try:
        return Path(snapshot_download(repository, allow_patterns=patterns))
    except (HfHubHTTPError, LocalEntryNotFoundError) as error:
        raise FileNotFoundError(
            f"There is no local file {repository!r}, and the Hub could not provide it: "
            f"{first_line(error)}."
        ) from error
