"""Where published weights are: named files, a folder, an archive or a Hub repository."""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory

from elmo_hf.conversion.formats import FORMATS, Weights, bilm_hdf5, tensorflow_checkpoint
from elmo_hf.system.failures import first_line
from elmo_hf.system.untrusted import is_archive, refuse_pointer, refuse_unreadable, unpack

# how the file ends that names a checkpoint of TensorFlow
CHECKPOINT = ".index"
# files that reveal a format that cannot be read, and its name
OTHER_FORMATS = {
    "model.safetensors": "Hugging Face",
    "*.magnitude": "Magnitude",
    "*.params": "GluonNLP",
    # what NLPL has besides ELMo
    "model.bin": "word2vec or fastText",
    "model.txt": "word2vec or fastText",
    "model.model": "word2vec or fastText",
}


@contextmanager
def open_source(
    source: str | None, offline: bool = False, **named: Path | None
) -> Iterator[Weights]:
    """
    The weights, for as long as the context lasts (an archive is unpacked for that long).

    `source` is a folder, an archive or a repository in which they are searched; `named` gives
    single files, instead of it or to choose among several. With `offline`, a repository must be in
    the cache.
    """
    if source is None:
        files = bilm_hdf5.check_files(named)
        for file in (files.options_file, files.weight_file):
            refuse_other_formats(str(file), [file.name])
            refuse_part(file)
        is_index = files.weight_file.suffix == CHECKPOINT
        open_files = tensorflow_checkpoint.open_beside if is_index else bilm_hdf5.open_files
        with open_files(files) as weights:
            yield weights
        return
    path = Path(source)
    refuse_unreadable(path)
    if path.suffix == CHECKPOINT and path.is_file():
        source, path, named = str(path.parent), path.parent, {**named, "weight_file": path}
    with TemporaryDirectory() as temporary:
        folder, names = path, None
        if path.is_file():
            folder = Path(temporary)
            names = unpack_archive(path, folder)
        elif not path.is_dir():
            if source.count("/") != 1 or path.parent.exists():
                raise FileNotFoundError(
                    f"There is no folder, archive or Hub repository {source!r}."
                )
            folder = download(source, offline)
        with open_folder(source, folder, names, named) as weights:
            yield weights


@contextmanager
def open_folder(
    source: str, folder: Path, names: Sequence[str] | None, named: Mapping[str, Path | None]
) -> Iterator[Weights]:
    """The weights in a folder; `names` are those of all files, if not all of them are in it."""
    names = candidates(names or [path.name for path in folder.rglob("*")], named)
    for known in FORMATS:
        if known.recognises(names):
            with known.open(folder, named) as weights:
                yield weights
            return
    refuse_other_formats(source, names)
    parts = {"options.json": bilm_hdf5.OPTIONS, "*.hdf5 weights": bilm_hdf5.HDF5}
    weights = [name for name in names if "softmax" not in name]
    lacking = [part for part, pattern in parts.items() if not fnmatch.filter(weights, pattern)]
    raise FileNotFoundError(f"{source!r} holds no {' and no '.join(lacking)}.")


def candidates(names: Sequence[str], named: Mapping[str, Path | None]) -> list[str]:
    """The names without weights of a format that a named file rules out."""
    weights, softmax = named.get("weight_file"), named.get("softmax_weight_file")
    suffix = ".hdf5" if weights is None and softmax is not None else weights and weights.suffix
    others = {CHECKPOINT, ".hdf5"} - {suffix} if suffix in (CHECKPOINT, ".hdf5") else set()
    return [name for name in names if PurePath(name).suffix not in others]


def refuse_other_formats(source: str, names: Sequence[str]) -> None:
    for pattern, format_name in OTHER_FORMATS.items():
        if fnmatch.filter(names, pattern):
            known = ", ".join(known.name for known in FORMATS)
            raise ValueError(
                f"{source!r} is in the {format_name} format, which cannot be converted; these can: "
                f"{known}."
            )


def refuse_part(file: Path) -> None:
    """A file alone may be known to be part of a folder."""
    for known in FORMATS:
        if any(fnmatch.fnmatch(file.name, part) for part in known.parts):
            raise ValueError(
                f"{str(file)!r} is one file of a model ({known.name}); name its folder."
            )


def unpack_archive(path: Path, folder: Path) -> list[str]:
    """Unpacks the files of a model; returns the names of all files in the archive."""
    refuse_pointer(path)
    refuse_other_formats(str(path), [path.name])
    refuse_part(path)
    if not is_archive(path):
        raise ValueError(
            f"{str(path)!r} is neither a folder nor a zip or tar; for single files use "
            "--options-file and --weight-file."
        )
    return unpack(path, folder, lambda name: any(fnmatch.fnmatch(name, some) for some in wanted()))


def wanted() -> list[str]:
    return [pattern for known in FORMATS for pattern in known.wanted]


def download(repository: str, offline: bool) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    patterns = [*wanted(), *OTHER_FORMATS]
    try:
        return Path(
            snapshot_download(repository, allow_patterns=patterns, local_files_only=offline)
        )
    except (HfHubHTTPError, LocalEntryNotFoundError) as error:
        raise FileNotFoundError(
            f"There is no local file {repository!r}, and the Hub could not provide it: "
            f"{first_line(error)}."
        ) from error
