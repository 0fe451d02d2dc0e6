"""The table of published models, and its list."""

import dataclasses
import json
import random
import re
import runpy
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from elmo_hf.cli import main
from elmo_hf.cli.models import models
from elmo_hf.conversion.convert_allennlp_to_hf import convert
from elmo_hf.conversion.formats import FORMATS as CONVERTED
from elmo_hf.hub import published_model
from elmo_hf.hub.registry import (
    FORMATS,
    OTHER_FORMATS,
    OWN_TABLE,
    ROLES,
    TABLE,
    find_published,
    read_registry,
    read_table,
)
from elmo_hf.text_splitting import find_splitter

ROOT = Path(__file__).resolve().parents[2]
DIGITS = {"sha256": 64, "sha1": 40, "md5": 32}


@pytest.fixture(scope="module")
def registry():
    return read_table(TABLE)


def test_formats_are_those_of_the_converter():
    assert set(FORMATS) == {known.name for known in CONVERTED} | set(OTHER_FORMATS)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("multilingual-other-layers", "matrices for models; get them with `elmo-hf download`"),
        ("multilingual-unsupervised", "name the file of one with --alignment"),
        ("allennlp-transformer-elmo", "it is a transformer, which is not made of LSTMs"),
    ],
)
@pytest.mark.parametrize("program", [convert, published_model])
def test_what_cannot_be_converted_is_not_downloaded(name, message, program, tmp_path, monkeypatch):
    monkeypatch.setenv("ELMO_HF_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    # a download, even one that is switched off, would be another error
    with pytest.raises(ValueError, match=message):
        program(name, offline=True)
    assert not list(tmp_path.iterdir())


def test_the_table_is_complete(registry):
    assert len(registry.models) == 140
    counts = {name: len(registry.select(family=name)) for name in registry.families}
    assert counts["many-langs"] == 45 and counts["nlpl"] == 15 and counts["embeddia"] == 7
    names = [model.name for model in registry.models]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]+([.-][a-z0-9]+)*", name) for name in names)


def test_every_model_has_the_facts_of_its_kind(registry):
    for model in registry.models:
        assert model.format in FORMATS and model.family in registry.families, model
        assert model.title and model.licence and len(model.citation) > 20, model
        assert urlsplit(model.page).scheme.startswith("http"), model
        find_splitter(model.splitter)
        assert set(model.languages) <= registry.languages.keys(), model
        assert model.languages or model.family == "proteins" or model.name == "nlpl-219"
        assert all(size is None or size > 0 for size in (model.cell_size, model.projection_size))
    used = {code for model in registry.models for code in model.languages}
    assert used == set(registry.languages)
    assert all(re.fullmatch(r"[a-z]{2,3}(-[A-Z][a-z]{3})?", code) for code in registry.languages)


def test_every_file_has_a_role_places_and_whole_hashes(registry):
    for model in registry.models:
        assert model.files or model.name == "materials-science"
        for file in model.files:
            assert file.role in ROLES and re.fullmatch(r"[\w.-]+", file.name), (model.name, file)
            assert len(set(file.urls)) == len(file.urls) and all(map(str.isascii, file.urls))
            assert file.size is None or file.size > 0
            for kind, digits in file.hashes:
                assert re.fullmatch(rf"[0-9a-f]{{{DIGITS[kind]}}}", digits)
            secure = [url.startswith("https://") for url in file.urls]
            # places without it come last
            assert secure == sorted(secure, reverse=True)
            if not any(secure):
                assert "https://" in model.notes or model.name == "seqvec-files", model.name


def test_models_are_found_by_name_language_and_family(registry, tmp_path, monkeypatch):
    assert registry.find("Original-5.5B").title == "AllenNLP original 5.5B"
    assert {model.name for model in registry.select("fi")} == {"many-langs-fi", "embeddia-fi"}
    assert registry.select("Finnish") == registry.select("fi")
    assert len(registry.select("zh", "many-langs")) == 2
    spoken = {code for model in registry.select("Norwegian") for code in model.languages}
    assert spoken >= {"no", "nb", "nn"} and registry.select("Chinese") == registry.select("zh")
    with pytest.raises(ValueError, match="did you mean original or"):
        registry.find("orignal")
    with pytest.raises(ValueError, match="many-langs-fi or embeddia-fi"):
        registry.find("finnish")
    with pytest.raises(ValueError, match="such as Finnish"):
        registry.select("finish")
    with pytest.raises(ValueError, match="the families are: allennlp"):
        registry.select(family="google")
    monkeypatch.chdir(tmp_path)
    assert find_published("small").name == "small"
    assert find_published("someone/elmo") is None
    (tmp_path / "small").mkdir()
    assert find_published("small") is None
    with pytest.raises(FileNotFoundError, match=r"did you mean medium"):
        find_published("medum")


def test_the_list_is_a_table_or_json(registry, monkeypatch, capsys):
    def printed(*options):
        monkeypatch.setattr(sys, "argv", ["elmo-hf", "models", *options])
        with pytest.raises(SystemExit) as stop:
            main()
        assert not stop.value.code
        return capsys.readouterr().out

    head, *rows = printed("--family", "allennlp").splitlines()
    assert len(rows) == 9 and rows[0].startswith("small ")
    assert {row.index("not stated") for row in rows} == {head.index("licence")}
    assert len(printed().splitlines()) == 141
    found = json.loads(printed("--language", "fi", "--json"))
    assert [model["name"] for model in found] == ["many-langs-fi", "embeddia-fi"]
    assert found[0]["files"][0]["urls"][0].startswith("https://")


@pytest.mark.parametrize(
    "wrong, message",
    [
        ('name = "../tiny"', "is not the name of a file"),
        ('format = "zip"', "`format` must be one of"),
        ('family = "unknown"', "is not a table of models"),
        ("files = [{role = 'weights', urls = ['ftp://a/b']}]", "begin with https://"),
        ("files = [{role = 'weights', urls = ['https://a/..']}]", "is not the name of a file"),
        ("files = [{role = 'weights', urls = []}]", "'' is not the name of a file"),
        ("files = [{role = 'weights', urls = [1]}]", "is not a table of models"),
        ("files = [{role = 'weights', name = 'a', urls = [1]}]", "must be text, not 1"),
        ("files = [{role = 'weights', urls = ['https://a/b'], size = 'x'}]", "a whole number"),
        ("joined = '../x'", "'../x' is not the name of a file"),
        ("title = 3", "`title` must be text, not 3"),
        ("languages = [1]", "must be text, not 1"),
        ("x = 1\n[families.g]\n", "is not a table of models: KeyError..title"),
        ("= =", "is not a table of models"),
    ],
)
def test_a_wrong_table_of_ones_own_is_refused(wrong, message, tmp_path, monkeypatch):
    field = wrong.split(" = ")[0]
    facts = {"name": "'tiny'", "family": "'f'", "title": "'T'", "languages": "[]"}
    lines = [f"{name} = {value}" for name, value in facts.items() if name != field]
    family = "[families.f]\ntitle='F'\nformat='bilm hdf5'\nsplitter='moses'\nlicence=''\n"
    table = tmp_path / "own.toml"
    table.write_text("\n".join([f"{family}[[models]]", *lines, wrong]))
    monkeypatch.setenv(OWN_TABLE, str(table))
    with pytest.raises(ValueError, match=message):
        read_registry()


WHOLE = """[languages]
fi = "Finnish"
[families.f]
title = "F"
format = "bilm hdf5"
splitter = "moses"
licence = ""
[[models]]
name = "tiny"
family = "f"
title = "T"
languages = ["fi"]
cell_size = 4
joined = "whole.tgz"
joined_md5 = "00"
[[models.files]]
role = "part"
size = 12
md5 = "00"
urls = ["https://example.org/a.part"]
"""


def test_a_damaged_table_is_one_sentence(tmp_path, monkeypatch, capsys):
    """Also what is read of it in the list of models."""
    draw, refused = random.Random(0), 0
    values = ["3", "-1", "[]", "[1]", "'../x'", "''", "{}", "true", "nan", "1979-01-01", "'a'"]
    for number in range(400):
        lines = WHOLE.splitlines()
        at = draw.randrange(len(lines))
        change = draw.choice(["value", "gone", "byte"])
        if change == "value":
            lines[at] = f"{lines[at].partition('=')[0]}= {draw.choice(values)}"
        elif change == "gone":
            del lines[at]
        content = bytearray("\n".join(lines).encode())
        if change == "byte":
            content[draw.randrange(len(content))] = draw.randrange(256)
        table = tmp_path / f"{number}.toml"
        table.write_bytes(content)
        monkeypatch.setenv(OWN_TABLE, str(table))
        try:
            read_registry()
        except ValueError as error:
            refused += 1
            assert "\n" not in str(error) and len(str(error)) < 500
            continue
        models()
        models(as_json=True)
    assert 100 < refused < 350


def test_a_model_is_plain_data(registry):
    assert json.loads(json.dumps(dataclasses.asdict(registry.find("german"))))["joined"] is None
    assert registry.find("german-checkpoint").joined.name == "bilm-output-result.tgz"


def test_the_page_of_models_is_up_to_date():
    """Repair it with `python docs/which_model.py`."""
    script = runpy.run_path(str(ROOT / "docs" / "which_model.py"))
    assert script["PAGE"].read_text(encoding="utf-8") == script["page"]()
