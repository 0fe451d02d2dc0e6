"""The public names, and the arrows between the rooms."""

import ast
import importlib
import re
import subprocess
import sys
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
    "conversion",
    "cli",
]
# imported inside a function, for one way of calling it
EXCEPTIONS = {("elmo_hf/embedding/embedder.py", "conversion")}
# where a library that comes with an extra may be imported
LIBRARIES = {
    "h5py": r"conversion/weights_file\.py|elmo_hf/embedding/formats/hdf5\.py",
    "pyarrow": r"elmo_hf/embedding/formats/.*",
    "datasets": r"elmo_hf/(text|tagging)/.*|examples/run_pos_trainer\.py",
    "accelerate": r"elmo_hf/(training|tagging|pretraining)/.*|examples/run_(pos|pretrain)\.py",
    "evaluate": r"elmo_hf/tagging/.*",
    "typer": r"elmo_hf/cli/.*|elmo_hf/system/command\.py|conversion/(convert|export)_.*\.py",
}
# files that must not know more than their job
STRICTER = {
    "elmo_hf/characters.py": {"torch", "transformers", "numpy"},
    "elmo_hf/configuration_elmo.py": {"torch"},
    "elmo_hf/tokenization_elmo.py": {"torch", "elmo_hf.modeling_elmo"},
    "elmo_hf/bilm_elmo.py": {"elmo_hf.tokenization_elmo"},
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


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported_modules(path: Path) -> set[str]:
    """Full names of all imported modules, relative imports resolved."""
    package = ".".join(path.relative_to(ROOT).parts[:-1])
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            prefix = f"{package}." if node.level else ""
            names.add(prefix + (node.module or ""))
    return names


def room_of(module: str) -> str | None:
    """The room of one of our modules; None for `elmo_hf` itself and for others'."""
    parts = module.split(".")
    if parts[0] != "elmo_hf" or len(parts) == 1:
        return None
    return parts[1] if parts[1] in ROOMS else ROOMS[0]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_rooms_import_only_downward(path):
    folder, *parts = path.relative_to(ROOT).parts
    imported = imported_modules(path)
    if folder == "examples" or path.name in ("__main__.py",):
        return
    own = "conversion" if folder == "conversion" else parts[0] if len(parts) > 1 else ROOMS[0]
    if name_of(path) == "elmo_hf/__init__.py":
        return
    above = ROOMS[ROOMS.index(own) + 1 :]
    found = {(module, room_of(module)) for module in imported}
    wrong = {
        module
        for module, room in found
        if room in above and (name_of(path), room) not in EXCEPTIONS
    }
    wrong |= imported & {"conversion", "examples", "tests"}
    if own != "conversion":
        # the package as a whole stands above its rooms
        wrong |= imported & {"elmo_hf"}
    assert not wrong


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_libraries_of_extras_are_imported_where_they_belong(path):
    for module in imported_modules(path):
        allowed = LIBRARIES.get(module.split(".")[0])
        assert allowed is None or re.fullmatch(allowed, name_of(path)), module


@pytest.mark.parametrize("name", STRICTER)
def test_files_know_no_more_than_their_job(name):
    def is_inside(module: str, forbidden: str) -> bool:
        # `elmo_hf` alone forbids the package itself, not the conversion's own modules below it
        if forbidden == "elmo_hf":
            return re.match(r"elmo_hf(?!\.conversion)", module) is not None
        return module == forbidden or module.startswith(f"{forbidden}.")

    imported = imported_modules(ROOT / name)
    wrong = {m for m in imported for forbidden in STRICTER[name] if is_inside(m, forbidden)}
    assert not wrong


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
            assert module.split(".")[0] not in siblings | {"conversion", "tests"}, module
            if module.split(".")[0] != "elmo_hf":
                continue
            assert len(module.split(".")) <= 2, module
            public = importlib.import_module(module).__all__
            names = {alias.name for alias in node.names} - {"elmo_hf"}
            assert names <= set(public), (module, names - set(public))


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


def test_the_map_names_every_file():
    """docs/architecture.md has a line for each file of the package and of the conversion."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = [path for path in SOURCES if not name_of(path).startswith("examples/")]
    missing = [
        name_of(path)
        for path in rooms
        if path.name != "__init__.py" and f"`{path.name}`" not in text
    ]
    assert not missing
