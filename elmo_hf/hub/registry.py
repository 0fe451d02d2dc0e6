# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The published ELMo models by name: what `registry.toml`, or a table of your own, says of them."""

import difflib
import functools
import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

TABLE = Path(__file__).with_name("registry.toml")
# a table of the same form that is used instead, as for copies inside a company
OWN_TABLE = "ELMO_HF_REGISTRY"
# formats that can be downloaded but not converted, and what can be done with them
OTHER_FORMATS = {
    "alignment": "it is no model but matrices for models; get them with `elmo-hf download` and "
    "name the file of one with --alignment",
    "transformer": "it is a transformer, which is not made of LSTMs; choose another one from the "
    "list of `elmo-hf models`",
}
FORMATS = (
    "bilm hdf5",
    "ELMoForManyLangs",
    "TensorFlow checkpoint",
    "TF-Hub module",
    "AllenNLP archive",
    *OTHER_FORMATS,
)
ROLES = (
    "options",
    "weights",
    "softmax",
    "vocabulary",
    "checkpoint",
    "alignment",
    "archive",
    "part",
)
HASHES = ("sha256", "sha1", "md5")
# what a model says itself, or its family for it
OF_FAMILY = ("format", "splitter", "licence", "citation", "page", "notes")


@dataclass(frozen=True)
class PublishedFile:
    """A file of a model, and the places where it is, the best one first."""

    role: str
    name: str
    urls: tuple[str, ...]
    size: int | None = None
    # hexadecimal, by the names of `hashlib`; only what somebody has published
    hashes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class PublishedModel:
    """A model that somebody has published."""

    name: str
    family: str
    title: str
    # codes of ISO 639; none for proteins
    languages: tuple[str, ...]
    format: str
    # how its text was split, as far as our splitters can
    splitter: str
    licence: str
    citation: str
    page: str
    files: tuple[PublishedFile, ...] = ()
    about: str = ""
    notes: str = ""
    cell_size: int | None = None
    projection_size: int | None = None
    # the archive that its parts are joined to, if it was published in parts
    joined: PublishedFile | None = None

    @property
    def size(self) -> int | None:
        """Bytes to download, as far as they matter; None if that is not known."""
        sizes = [file.size for file in self.files if file.size or file.role != "options"]
        return sum(size or 0 for size in sizes) if sizes and None not in sizes else None

    @property
    def shape(self) -> str:
        """As in `4096 / 512`, cells and projection; empty where nothing is known."""
        numbers = (self.cell_size, self.projection_size)
        return " / ".join("?" if n is None else str(n) for n in numbers) if any(numbers) else ""


@dataclass(frozen=True)
class Registry:
    models: tuple[PublishedModel, ...]
    # titles of the families, and names of the languages by code
    families: dict[str, str]
    languages: dict[str, str]

    def get(self, name: str) -> PublishedModel | None:
        """The model of this name, in capitals or not."""
        return next((model for model in self.models if model.name == name.lower()), None)

    def find(self, name: str) -> PublishedModel:
        """The model of this name; an error with names that are like it if there is none."""
        model = self.get(name)
        if model is None:
            raise ValueError(f"There is no published model {name!r}{self.advice(name)}.")
        return model

    def advice(self, name: str) -> str:
        """The end of a sentence about an unknown name."""
        close = self.close_names(name)
        meant = f"; did you mean {' or '.join(close)}?" if close else ""
        return f"{meant}{' See' if close else '; see'} the list of `elmo-hf models`"

    def close_names(self, name: str) -> list[str]:
        """Names like this one, or models of the language that it names."""
        wanted = name.lower()
        known = self.languages.items()
        codes = [code for code, language in known if wanted in (code.lower(), language.lower())]
        close = difflib.get_close_matches(wanted, [model.name for model in self.models], 3)
        spoken = [model.name for model in self.models if set(codes) & set(model.languages)]
        return list(dict.fromkeys([*close, *spoken]))[:4]

    def select(
        self, language: str | None = None, family: str | None = None
    ) -> list[PublishedModel]:
        """The models of a language, by its code or English name, and of a family."""
        found = list(self.models)
        if language is not None:
            codes = self.codes_of(language)
            found = [model for model in found if codes & set(model.languages)]
        if family is not None:
            if family not in self.families:
                names = ", ".join(self.families)
                raise ValueError(f"There is no family {family!r}; the families are: {names}.")
            found = [model for model in found if model.family == family]
        return found

    def codes_of(self, language: str) -> set[str]:
        wanted = language.lower()
        codes = {
            code
            for code, name in self.languages.items()
            # zh is both of zh-Hans and zh-Hant, Chinese is both of its scripts, and Norwegian is
            # also Bokmål and Nynorsk
            if wanted in (code.lower(), code.lower().partition("-")[0])
            or wanted in (name.lower(), name.lower().partition(" ")[0])
            or wanted == name.lower().partition(" (")[0]
        }
        if not codes:
            close = difflib.get_close_matches(wanted, [n.lower() for n in self.languages.values()])
            meant = f", such as {close[0].title()}" if close else ""
            raise ValueError(
                f"No published model is of the language {language!r}; give a code of ISO 639 or "
                f"an English name{meant}."
            )
        return codes


def read_registry() -> Registry:
    """The table inside the package, or the one that `ELMO_HF_REGISTRY` names."""
    return read_table(Path(os.environ.get(OWN_TABLE) or TABLE))


def find_published(source: str | None) -> PublishedModel | None:
    """The published model that a source names; a file or folder of this name is meant first."""
    if source is None or "/" in source or os.sep in source or Path(source).exists():
        return None
    registry = read_registry()
    model = registry.get(source)
    if model is None:
        raise FileNotFoundError(
            f"There is no folder, archive or Hub repository {source!r}, and no published model of "
            f"this name{registry.advice(source)}."
        )
    return model


def refuse_unconvertible(model: PublishedModel) -> None:
    """Before anything is downloaded in vain."""
    if model.format in OTHER_FORMATS:
        raise ValueError(f"{model.name!r} cannot be converted: {OTHER_FORMATS[model.format]}.")


@functools.cache
def read_table(path: Path) -> Registry:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        models = tuple(make_model(entry, table) for entry in table["models"])
        titles = {name: str(facts["title"]) for name, facts in table["families"].items()}
        languages = {code: str(name) for code, name in table.get("languages", {}).items()}
    except OSError as error:
        raise OSError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"{str(path)!r} is not a table of models: {error!r:.200}.") from error
    for model in models:
        check_types(model)
        check_model(model)
    refuse_repeated(path, [model.name for model in models])
    return Registry(models, titles, languages)


def make_model(entry: dict[str, Any], table: dict[str, Any]) -> PublishedModel:
    """One entry of the table, with what its family says for all of its models."""
    family = table["families"][entry["family"]]
    facts = {field: entry.get(field, family.get(field, "")) for field in OF_FAMILY}
    facts["citation"] = table.get("citations", {}).get(facts["citation"], facts["citation"])
    own = ("name", "family", "title", "about", "cell_size", "projection_size")
    joined = None
    if "joined" in entry:
        hashes = {"md5": entry["joined_md5"]} if "joined_md5" in entry else {}
        joined = make_file({"role": "archive", "name": entry["joined"], "urls": [], **hashes})
    return PublishedModel(
        **{field: entry[field] for field in own if field in entry},
        **facts,
        languages=tuple(entry["languages"]),
        files=tuple(make_file(file) for file in entry.get("files", [])),
        joined=joined,
    )


def make_file(entry: dict[str, Any]) -> PublishedFile:
    urls = tuple(entry["urls"])
    name = entry.get("name") or (PurePosixPath(urlsplit(urls[0]).path).name if urls else "")
    hashes = tuple((kind, entry[kind].lower()) for kind in HASHES if kind in entry)
    return PublishedFile(entry["role"], name, urls, entry.get("size"), hashes)


def check_types(model: PublishedModel) -> None:
    """Texts must be texts, and sizes numbers."""
    where = f"The table of models is wrong about {model.name!r}"
    texts = {field: getattr(model, field) for field in ("name", "title", "about", *OF_FAMILY)}
    texts |= {f"languages[{number}]": code for number, code in enumerate(model.languages)}
    sizes = {field: getattr(model, field) for field in ("cell_size", "projection_size")}
    for file in files_of(model):
        texts |= {f"name of {file.name!r}": file.name, f"role of {file.name!r}": file.role}
        texts |= {f"urls of {file.name!r}, {n}": url for n, url in enumerate(file.urls)}
        sizes[f"size of {file.name!r}"] = file.size
    for field, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"{where}: `{field}` must be text, not {text!r:.80}.")
    for field, size in sizes.items():
        if size is not None and (type(size) is not int or size < 0):
            raise ValueError(f"{where}: `{field}` must be a whole number, not {size!r:.80}.")


def files_of(model: PublishedModel) -> tuple[PublishedFile, ...]:
    return model.files if model.joined is None else (*model.files, model.joined)


def check_model(model: PublishedModel) -> None:
    """A table may be a user's own: what is used as a path or a choice must be one."""
    where = f"The table of models is wrong about {model.name!r}"
    if model.format not in FORMATS:
        raise ValueError(f"{where}: `format` must be one of {', '.join(FORMATS)}.")
    names = [file.name for file in files_of(model)]
    refuse_repeated(where, names)
    for name in (model.name, *names):
        if not name or name != PurePosixPath(name).name or name.startswith(".") or "\\" in name:
            raise ValueError(f"{where}: {name!r} is not the name of a file.")
    for file in model.files:
        if file.role not in ROLES:
            raise ValueError(f"{where}: `role` must be one of {', '.join(ROLES)}.")
        if not all(url.startswith(("https://", "http://")) for url in file.urls) or not file.urls:
            raise ValueError(f"{where}: {file.name!r} needs addresses that begin with https://.")


def refuse_repeated(where: object, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{where}: the name {name!r} occurs twice.")
        seen.add(name)
