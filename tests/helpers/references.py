"""Material nobody here wrote, from PyPI: AllenNLP's goldens and transformers' own test suites.

Third-party files are never committed; they live in `.cache/references/`, which git ignores.
Run as a script to fetch everything: `python tests/references.py`.
"""

import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest.mock
import zipfile
from pathlib import Path
from types import ModuleType

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "references"
ALLENNLP = "0.9.0"
ALLENNLP_FILES = (
    "allennlp/tests/fixtures/elmo",
    "allennlp/modules/sampled_softmax_loss.py",
    "allennlp/tests/modules/elmo_test.py",
    "allennlp/tests/commands/elmo_test.py",
    "allennlp/tests/data/token_indexers/elmo_indexer_test.py",
)
TRANSFORMERS = importlib.metadata.version("transformers")

# The sdist has the top-level suites but not these three modules and one text that they import.
STAND_INS = {
    "generation/test_utils.py": "class GenerationTesterMixin:\n    pass\n",
    "exporters/test_export.py": "class ExportTesterMixin:\n    pass\n",
    "utils/test_configuration_utils.py": (
        "config_common_kwargs = {\n"
        '    "return_dict": False, "output_hidden_states": True, "dtype": "float16",\n'
        '    "chunk_size_feed_forward": 5, "architectures": ["ElmoModel"],\n'
        '    "id2label": {0: "label"}, "label2id": {"label": "0"}, "problem_type": "regression",\n'
        "}\n"
    ),
    "fixtures/sample_text.txt": "A bright day .\n\nThe bank of the river .\nShe left .\n",
}


def _pip_download(requirement: str, folder: str, *options: str) -> Path:
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        *options,
        "-d",
        folder,
        requirement,
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    files = list(Path(folder).iterdir())
    if result.returncode or len(files) != 1:
        raise RuntimeError(
            f"pip could not download {requirement}, which tests compare with: {result.stderr}"
        )
    return files[0]


def _publish(built: Path, final: Path) -> Path:
    final.parent.mkdir(parents=True, exist_ok=True)
    built.rename(final)
    return final


def _allennlp() -> Path:
    """The files of AllenNLP's wheel that tests compare with."""
    final = CACHE / f"allennlp-{ALLENNLP}"
    if not all((final / name).exists() for name in ALLENNLP_FILES):
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            with zipfile.ZipFile(_pip_download(f"allennlp=={ALLENNLP}", folder)) as wheel:
                built = Path(folder) / "built"
                names = [name for name in wheel.namelist() if name.startswith(ALLENNLP_FILES)]
                wheel.extractall(built, names)
            shutil.rmtree(final, ignore_errors=True)
            _publish(built, final)
    return final


def allennlp_fixtures() -> Path:
    """AllenNLP's ELMo fixture: weights, options, sentences and TensorFlow's embeddings of them."""
    return _allennlp() / ALLENNLP_FILES[0]


def allennlp_tests() -> list[Path]:
    """AllenNLP's own tests of its ELMo, which belong into the package `allennlp.tests`."""
    return [_allennlp() / name for name in ALLENNLP_FILES[2:]]


def allennlp_sampled_softmax() -> ModuleType:
    """AllenNLP's port of TensorFlow's sampled softmax, without the rest of AllenNLP."""
    checks = ModuleType("allennlp.common.checks")
    checks.ConfigurationError = ValueError  # type: ignore[attr-defined]
    parents = {name: ModuleType(name) for name in ("allennlp", "allennlp.common")}
    spec = importlib.util.spec_from_file_location(
        "sampled_softmax", _allennlp() / ALLENNLP_FILES[1]
    )
    module = importlib.util.module_from_spec(spec)
    with unittest.mock.patch.dict(sys.modules, {**parents, checks.__name__: checks}):
        spec.loader.exec_module(module)
    return module


def transformers_suites() -> Path:
    """A folder whose package `tests` holds the suites of exactly the installed transformers."""
    final = CACHE / f"transformers-{TRANSFORMERS}"
    if not final.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            options = ("--no-binary", "transformers", "--no-build-isolation")
            sdist = _pip_download(f"transformers=={TRANSFORMERS}", folder, *options)
            built = Path(folder) / "built"
            with tarfile.open(sdist) as archive:
                for member in archive.getmembers():
                    parts = Path(member.name).parts
                    if (
                        member.isfile()
                        and len(parts) == 3
                        and parts[1] == "tests"
                        and parts[2].endswith(".py")
                    ):
                        member.name = str(Path("tests", parts[2]))
                        archive.extract(member, built, filter="data")
            for name, text in STAND_INS.items():
                path = built / "tests" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                (path.parent / "__init__.py").touch()
                path.write_text(text)
            (built / "tests" / "__init__.py").touch()
            _publish(built, final)
    return final


if __name__ == "__main__":
    print(allennlp_fixtures())
    print(transformers_suites())
