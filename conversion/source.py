"""Where published weights are: named files, a folder, an archive or a Hub repository."""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from elmo_hf.conversion.formats import FORMATS, Weights, bilm_hdf5
from elmo_hf.system.failures import first_line
from elmo_hf.system.untrusted import is_archive, refuse_pointer, refuse_unreadable, unpack

# files that reveal a format that cannot be read, and its name
OTHER_FORMATS = {
    "token_embedder.pkl": "ELMoForManyLangs",
    "encoder.pkl": "ELMoForManyLangs",
    "saved_model.pb": "TF-Hub",
    "tfhub_module.pb": "TF-Hub",
    "*.ckpt*.index": "TensorFlow checkpoint",
    "model.safetensors": "Hugging Face",
}


@contextmanager
def open_source(source: str | None, **named: Path | None) -> Iterator[Weights]:
    """
    The weights, for as long as the context lasts (an archive is unpacked for that long).

    `source` is a folder, an archive or a repository in which they are searched; `named` gives
    single files, instead of it or to choose among several.
    """
    if source is None:
        files = bilm_hdf5.check_files(named)
        for file in (files.options_file, files.weight_file):
            refuse_other_formats(str(file), [file.name])
        with bilm_hdf5.open_files(files) as weights:
            yield weights
        return
    path = Path(source)
    refuse_unreadable(path)
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
            folder = download(source)
        with open_folder(source, folder, names, named) as weights:
            yield weights


@contextmanager
def open_folder(
    source: str, folder: Path, names: Sequence[str] | None, named: Mapping[str, Path | None]
) -> Iterator[Weights]:
    """The weights in a folder; `names` are those of all files, if not all of them are in it."""
    names = names or [path.name for path in folder.rglob("*")]
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


def refuse_other_formats(source: str, names: Sequence[str]) -> None:
    for pattern, format_name in OTHER_FORMATS.items():
        if fnmatch.filter(names, pattern):
            known = ", ".join(known.name for known in FORMATS)
            raise ValueError(
                f"{source!r} is in the {format_name} format, which cannot be converted; these can: "
                f"{known}."
            )


def unpack_archive(path: Path, folder: Path) -> list[str]:
    """Unpacks the files of a model; returns the names of all files in the archive."""
    refuse_pointer(path)
    refuse_other_formats(str(path), [path.name])
    if not is_archive(path):
        raise ValueError(
            f"{str(path)!r} is neither a folder nor a zip or tar; for single files use "
            "--options-file and --weight-file."
        )
    return unpack(path, folder, lambda name: any(fnmatch.fnmatch(name, some) for some in wanted()))


def wanted() -> list[str]:
    return [pattern for known in FORMATS for pattern in known.wanted]


def download(repository: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    patterns = [*wanted(), *OTHER_FORMATS]
    try:
        return Path(snapshot_download(repository, allow_patterns=patterns))
    except (HfHubHTTPError, LocalEntryNotFoundError) as error:
        raise FileNotFoundError(
            f"There is no local file {repository!r}, and the Hub could not provide it: "
            f"{first_line(error)}."
        ) from error
