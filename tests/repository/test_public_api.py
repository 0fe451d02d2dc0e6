"""The public names, and the arrows between the rooms."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import filter as fnmatch_filter
from fnmatch import fnmatch
from itertools import dropwhile, takewhile
from pathlib import Path

import pytest

import elmo_hf

ROOT = Path(__file__).resolve().parents[2]
PUBLIC_NAMES = [
    "ElmoConfig",
    "ElmoEmbedder",
    "ElmoForPreTraining",
    "ElmoForSequenceClassification",
    "ElmoForTokenClassification",
    "ElmoModel",
    "ElmoPreTrainedModel",
    "ElmoScorer",
    "ElmoState",
    "ElmoTagger",
    "ElmoTokenClassificationPipeline",
    "ElmoTokenizer",
    "WordVocabulary",
    "__version__",
    "batch_to_ids",
    "bundled_model",
    "bundled_tagger",
    "load_published",
    "published_model",
]
# From the ground up: a room may import the rooms before it, never those after it.
ROOMS = [
    "the flat part",
    "system",
    "text",
    "pages",
    "hub",
    "embedding",
    "export",
    "training",
    "tagging",
    "pretraining",
    "engines",
    "conversion",
    "standin",
    "cli",
]
# imported inside a function, for one way of calling it
EXCEPTIONS = {
    ("elmo_hf/embedding/embedder.py", "conversion"),
    ("elmo_hf/hub/published.py", "conversion"),
}
# where a library may be imported, and nowhere else
LIBRARIES = {
    "h5py": (
        "conversion/weights_file.py",
        "elmo_hf/embedding/formats/hdf5.py",
        "elmo_hf/standin/embedder.py",
    ),
    "pyarrow": (
        "elmo_hf/embedding/formats/*",
        "elmo_hf/engines/*",
        "examples/embed_with_ray.py",
    ),
    "pyspark": ("elmo_hf/engines/spark.py", "examples/embed_with_spark.py"),
    "ray": ("elmo_hf/engines/ray.py", "examples/embed_with_ray.py", "examples/cluster/*"),
    "datasets": (
        "elmo_hf/text/*",
        "elmo_hf/tagging/*",
        "elmo_hf/pretraining/*",
        "examples/run_pos_trainer.py",
    ),
    "accelerate": (
        "elmo_hf/training/*",
        "elmo_hf/tagging/*",
        "elmo_hf/pretraining/*",
        "examples/bundled_model/measure_perplexity.py",
        "examples/run_pos.py",
        "examples/run_pretrain.py",
    ),
    "evaluate": ("elmo_hf/tagging/*",),
    "fsspec": ("elmo_hf/text/remote.py",),
    "httpx2": ("elmo_hf/hub/download.py", "elmo_hf/hub/transfer.py"),
    "matplotlib": ("elmo_hf/pages/*",),
    "sacremoses": ("elmo_hf/text_splitting.py",),
    "spacy": ("elmo_hf/text_splitting.py", "elmo_hf/tagging/spacy_component.py"),
    "srsly": ("elmo_hf/tagging/spacy_component.py",),
    "triton": ("elmo_hf/recurrence_kernels.py",),
    "seqeval": ("elmo_hf/tagging/metrics/*",),
    "typer": (
        "elmo_hf/cli/*",
        "elmo_hf/system/command.py",
        "conversion/convert_allennlp_to_hf.py",
        "conversion/export_hf_to_allennlp.py",
    ),
}
# Files that must not know more than their job. A library must not come in through another of our
# files either.
STRICTER = {
    "elmo_hf/characters.py": {"torch", "transformers", "numpy"},
    "elmo_hf/configuration_elmo.py": {"torch"},
    "elmo_hf/tokenization_elmo.py": {
        "torch",
        "elmo_hf.bilm_elmo",
        "elmo_hf.language_model_elmo",
        "elmo_hf.layers_elmo",
        "elmo_hf.modeling_elmo",
        "elmo_hf.packing",
    },
    "elmo_hf/bilm_elmo.py": {"elmo_hf.tokenization_elmo"},
    "elmo_hf/language_model_elmo.py": {"elmo_hf.tokenization_elmo"},
    "elmo_hf/modeling_elmo.py": {"elmo_hf.tokenization_elmo", "elmo_hf.word_vocabulary"},
    "elmo_hf/text_lines.py": {"torch", "transformers"},
    "conversion/key_map.py": {"torch", "h5py", "elmo_hf"},
    "conversion/options_map.py": {"torch", "h5py", "numpy", "elmo_hf"},
    "conversion/tensor_ops.py": {"torch", "h5py", "elmo_hf"},
    "conversion/reference_elmo.py": {"torch", "h5py", "elmo_hf", "elmo_hf.conversion.key_map"},
}
SOURCES = sorted(
    path
    for folder in ("elmo_hf", "conversion", "examples")
    for path in (ROOT / folder).rglob("*.py")
)
# these two see all rooms
ENTRANCES = {"elmo_hf/__init__.py", "elmo_hf/__main__.py"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    """The full name by which a file is imported; that of its folder for an `__init__.py`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] == "conversion":
        parts = ("elmo_hf", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


OWN = {module_of(path): path for path in SOURCES if path.parts[len(ROOT.parts)] != "examples"}


def nodes(tree: ast.AST, at_load: bool) -> Iterator[ast.AST]:
    """All nodes, or only those that run when the module is loaded."""
    for node in ast.iter_child_nodes(tree):
        inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for_types = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        if not (at_load and (inside or for_types)):
            yield node
            yield from nodes(node, at_load)


def imported_modules(path: Path, at_load: bool = False) -> set[str]:
    """Full names of all imported modules, relative imports and calls of `require` resolved."""
    package = module_of(path).split(".")
    if path.name != "__init__.py":
        package.pop()
    names = set()
    for node in nodes(ast.parse(path.read_text(encoding="utf-8")), at_load):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            full = {f"{module}.{alias.name}" for alias in node.names}
            # `from . import packing` imports a module, not a name of the package
            names |= full & OWN.keys()
            if full - OWN.keys():
                names.add(module)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "require":
            names |= {given.value for given in node.args[:1] if isinstance(given, ast.Constant)}
    return names


def room_of(module: str) -> str | None:
    """The room of one of our modules; None for `elmo_hf` itself and for others'."""
    parts = module.split(".")
    if parts[0] != "elmo_hf" or len(parts) == 1:
        return None
    return parts[1] if parts[1] in ROOMS else ROOMS[0]


def is_inside(module: str, forbidden: str) -> bool:
    return module == forbidden or module.startswith(f"{forbidden}.")


@pytest.mark.parametrize(
    "path", [path for path in OWN.values() if name_of(path) not in ENTRANCES], ids=name_of
)
def test_rooms_import_only_downward(path):
    own, imported = room_of(module_of(path)), imported_modules(path)
    above = ROOMS[ROOMS.index(own) + 1 :]
    wrong = {
        module
        for module in imported
        if room_of(module) in above and (name_of(path), room_of(module)) not in EXCEPTIONS
    }
    if own != "conversion":
        # the package as a whole stands above its rooms
        wrong |= imported & {"elmo_hf"}
    assert not wrong


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_nothing_imports_what_stands_outside(path):
    """The conversion is imported as a part of the package; examples and tests are not imported."""
    outside = {"conversion", "examples", "tests", "helpers"}
    if name_of(path).startswith("examples/") or name_of(path) in ENTRANCES:
        outside.add("elmo_hf.conversion")
    imported = imported_modules(path)
    assert not {module for module in imported for some in outside if is_inside(module, some)}


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_libraries_are_imported_where_they_belong(path):
    for module in imported_modules(path):
        allowed = LIBRARIES.get(module.split(".")[0], ["*"])
        assert any(fnmatch(name_of(path), pattern) for pattern in allowed), module


@pytest.mark.parametrize("name", STRICTER)
def test_files_know_no_more_than_their_job(name):
    imported = imported_modules(ROOT / name)
    if "elmo_hf" in STRICTER[name]:
        # of the package, the conversion's own modules only
        others = {module for module in imported if not is_inside(module, "elmo_hf.conversion")}
        assert not {module for module in others if is_inside(module, "elmo_hf")}
    forbidden = STRICTER[name] - {"elmo_hf"}
    assert not {module for module in imported for some in forbidden if is_inside(module, some)}


def reached_modules(path: Path) -> dict[str, str]:
    """What loading a file imports through our own files: each module with the file that does."""
    found, waiting, seen = {}, [path], set()
    while waiting:
        file = waiting.pop()
        seen.add(file)
        for module in imported_modules(file, at_load=True):
            found[module] = name_of(file)
            # the package itself is not followed: a published model has these files without it
            if module != "elmo_hf" and OWN.get(module, file) not in seen:
                waiting.append(OWN[module])
    return found


@pytest.mark.parametrize("name", STRICTER)
def test_no_library_comes_in_through_another_file(name):
    libraries = {module for module in STRICTER[name] if not module.startswith("elmo_hf")}
    reached = reached_modules(ROOT / name)
    assert not {
        f"{module} in {file}"
        for module, file in reached.items()
        for library in libraries
        if is_inside(module, library)
    }


def test_rules_name_files_that_exist():
    names = [name_of(path) for path in SOURCES]
    patterns = [pattern for patterns in LIBRARIES.values() for pattern in patterns]
    patterns += [*STRICTER, *ENTRANCES, *(name for name, _ in EXCEPTIONS)]
    assert not [pattern for pattern in patterns if not fnmatch_filter(names, pattern)]
    modules = {some for rule in STRICTER.values() for some in rule if some.startswith("elmo_hf")}
    assert modules <= OWN.keys()
    for name, room in EXCEPTIONS:
        assert room in {room_of(module) for module in imported_modules(ROOT / name)}, name


EXAMPLES = [path for path in SOURCES if name_of(path).startswith("examples/")]


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_examples_import_public_names_only(path):
    """Of the package or of a room, and no sibling: each script can be read alone."""
    siblings = {other.stem for other in EXAMPLES if other != path}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules = {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules = {node.module or ""}
        else:
            continue
        for module in modules:
            assert module.split(".")[0] not in siblings, module
            if module.split(".")[0] != "elmo_hf":
                continue
            assert len(module.split(".")) <= 2, module
            public = importlib.import_module(module).__all__
            names = {alias.name for alias in node.names} - {"elmo_hf"}
            assert names <= set(public), (module, names - set(public))


@pytest.mark.program
def test_import_of_the_library_needs_no_extra():
    """Only the modules that `import elmo_hf` itself loads."""
    code = (
        "import sys\n"
        "for extra in ('h5py', 'accelerate', 'datasets', 'evaluate', 'sacremoses', 'matplotlib'):\n"
        "    sys.modules[extra] = None\n"
        "import elmo_hf, elmo_hf.cli\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_are_pinned():
    assert sorted(elmo_hf.__all__) == PUBLIC_NAMES
    assert all(hasattr(elmo_hf, name) for name in PUBLIC_NAMES)


@pytest.mark.parametrize("room", [room for room in ROOMS[1:] if room not in ("cli", "conversion")])
def test_rooms_have_their_public_names(room):
    module = importlib.import_module(f"elmo_hf.{room}")
    assert module.__all__ and all(hasattr(module, name) for name in module.__all__)


def test_files_and_functions_stay_small():
    """A file that grows beyond this has a second job, and so has a function."""
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 450, name_of(path)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < 50, f"{name_of(path)}: {node.name}"


MAP = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def map_table(room: str) -> str:
    """A room's table in docs/architecture.md, without its head."""
    place = "\n## The model\n" if room == ROOMS[0] else f"\n| `{room}/` |"
    assert MAP.count(place) == 1, place
    lines = dropwhile(lambda line: not line.startswith("|"), MAP.partition(place)[2].splitlines())
    return "\n".join(takewhile(lambda line: line.startswith("|"), lines))


@pytest.mark.parametrize("room", ROOMS)
def test_the_map_names_every_file_of_a_room_and_no_other(room):
    files = {path.name for module, path in OWN.items() if room_of(module) == room}
    files -= {"__init__.py"}
    table = map_table(room)
    named = set(re.findall(r"`(?:[a-z]+/)?(\w+\.py)`", table))
    if room == ROOMS[0]:
        # the sentence below the table
        files -= {"__main__.py", "_version.py"}
    assert named == files


def test_the_map_names_the_entrances_of_the_package():
    for name in ("__init__.py", "__main__.py", "_version.py"):
        assert f"`{name}`" in MAP
