"""Optional libraries: one message that names the extra, and public names that wait for use."""

import ast
import importlib
import sys
import types

import pytest

from elmo_hf.extras import EXTRAS, require
from elmo_hf.system.lazy import lazy_names


def test_a_library_that_is_there_is_imported():
    assert require("json", "Anything") is sys.modules["json"]


@pytest.mark.parametrize("library", sorted(EXTRAS))
def test_a_missing_library_names_its_extra(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError) as error:
        require(library, "Drawing")
    extra = EXTRAS[library]
    assert str(error.value) == f"Drawing requires {library}: pip install 'elmo_hf[{extra}]'"


def test_a_missing_module_of_ours_is_a_defect():
    with pytest.raises(ModuleNotFoundError, match="No module named 'elmo_hf.nowhere'"):
        require("elmo_hf.nowhere", "Anything")


@pytest.fixture
def room(monkeypatch):
    """A package whose one module needs h5py, and defines `Vectors`."""
    package = types.ModuleType("lazy_room")
    package.__path__ = []
    package.__getattr__, package.__dir__, package.__all__ = lazy_names(
        "lazy_room", files=["Vectors", "read"]
    )
    module = types.ModuleType("lazy_room.files")
    module.Vectors = "the class"
    monkeypatch.setitem(sys.modules, "lazy_room", package)
    monkeypatch.setitem(sys.modules, "lazy_room.files", module)
    return package


def test_lazy_names_come_when_they_are_used(room):
    assert room.__all__ == ["Vectors", "read"]
    assert room.Vectors == "the class" and {"Vectors", "read", "__path__"} <= set(dir(room))
    with pytest.raises(AttributeError, match="module 'lazy_room' has no attribute 'nothing'"):
        _ = room.nothing


def test_a_lazy_name_names_the_extra_it_needs(room, monkeypatch, tmp_path):
    (tmp_path / "files.py").write_text("import h5py\n")
    room.__path__ = [str(tmp_path)]
    monkeypatch.delitem(sys.modules, "lazy_room.files")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"lazy_room.Vectors requires h5py: pip install 'elmo_hf"):
        _ = room.Vectors


@pytest.mark.parametrize("name", ["tagging", "training", "pretraining"])
def test_type_checkers_see_the_names_of_a_lazy_room(name):
    room = importlib.import_module(f"elmo_hf.{name}")
    with open(room.__file__, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    seen = {
        (node.module, alias.name, alias.asname)
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        for alias in node.names
    }
    [table] = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_names"
    ]
    assert seen == {
        (f"elmo_hf.{name}.{module.arg}", one, one)
        for module in table.keywords
        for one in ast.literal_eval(module.value)
    }
    assert {one for _, one, _ in seen} == set(room.__all__)
