"""The public names, and the arrows between the rooms."""

import ast
import re
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
# what each room may never import; the command line stands above the rooms it opens
FORBIDDEN = {
    "elmo_hf": {
        "elmo_hf.conversion",
        "conversion",
        "examples",
        "tests",
        "h5py",
        "datasets",
        "accelerate",
        "evaluate",
    },
    "conversion": {"examples", "tests", "datasets", "accelerate", "evaluate"},
    "examples": {"elmo_hf.conversion", "conversion", "tests", "h5py"},
}
# files with rules of their own
STRICTER = {
    "elmo_hf/characters.py": {"torch", "transformers", "numpy"},
    "elmo_hf/configuration_elmo.py": {"torch"},
    "elmo_hf/tokenization_elmo.py": {"torch", "elmo_hf.modeling_elmo"},
    "elmo_hf/modeling_elmo.py": {"elmo_hf.tokenization_elmo"},
    "conversion/key_map.py": {"torch", "h5py", "elmo_hf"},
    "conversion/options_map.py": {"torch", "h5py", "numpy", "elmo_hf"},
    "conversion/tensor_ops.py": {"torch", "h5py", "elmo_hf"},
    "conversion/reference_elmo.py": {"torch", "h5py", "elmo_hf", "elmo_hf.conversion.key_map"},
}
# what these need for one thing only, they import when that is asked for
LOOSER = {
    "conversion/weights_file.py": {"h5py"},
    "elmo_hf/embedder.py": {"elmo_hf.conversion"},
    "elmo_hf/embed_corpus.py": {"h5py", "datasets"},
}
COMMAND_LINE = "elmo_hf/cli.py"


def imported_modules(path: Path) -> set[str]:
    """Full names of all imported modules, relative imports resolved."""
    package = path.parent.name
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            prefix = f"{package}." if node.level else ""
            names.add(prefix + (node.module or ""))
    return names


def is_or_is_inside(name: str, forbidden: str) -> bool:
    # `elmo_hf` alone forbids the package itself, not the conversion's own modules below it
    if forbidden == "elmo_hf":
        return name == "elmo_hf" or re.match(r"elmo_hf\.(?!conversion)", name) is not None
    return name == forbidden or name.startswith(f"{forbidden}.")


SOURCES = [path for room in FORBIDDEN for path in sorted((ROOT / room).rglob("*.py"))]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_rooms_import_only_downward(path):
    name = path.relative_to(ROOT).as_posix()
    if name == COMMAND_LINE:
        forbidden = {"examples", "tests", "h5py"}
    else:
        forbidden = FORBIDDEN[name.split("/")[0]] | STRICTER.get(name, set())
    if name.startswith("conversion/"):
        forbidden = forbidden | {"h5py"}
    forbidden = forbidden - LOOSER.get(name, set())
    wrong = {
        imported
        for imported in imported_modules(path)
        for room in forbidden
        if is_or_is_inside(imported, room)
    }
    assert not wrong


def test_the_rules_name_files_that_exist():
    assert all((ROOT / name).exists() for name in [*STRICTER, *LOOSER, COMMAND_LINE])


@pytest.mark.program
def test_import_of_the_library_needs_no_extra():
    """Only the modules that `import elmo_hf` itself loads."""
    import subprocess
    import sys

    code = (
        "import sys\n"
        "for extra in ('h5py', 'accelerate', 'datasets', 'evaluate', 'sacremoses'):\n"
        "    sys.modules[extra] = None\n"
        "import elmo_hf, elmo_hf.cli\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_are_pinned():
    assert sorted(elmo_hf.__all__) == PUBLIC_NAMES
    assert all(hasattr(elmo_hf, name) for name in PUBLIC_NAMES)
