"""The built distributions, not the clone: what a user downloads and installs."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from helpers.distribution import ROOT, build, copy_clone, environment, install, source_files
from helpers.tiny import tiny_config, write_model

pytestmark = pytest.mark.program


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The source distribution and the wheel."""
    folder = tmp_path_factory.mktemp("built")
    return build(copy_clone(folder / "clone"), folder / "dist")


@pytest.fixture(scope="module")
def site(built):
    """A folder with the installed wheel in it."""
    _, wheel = built
    return install(wheel.parent / "site", wheel)


def test_descriptions_are_fit_for_an_index(built):
    command = [sys.executable, "-m", "twine", "check", "--strict", *built]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("PASSED") == 2, done.stdout + done.stderr


def test_a_tree_without_git_has_the_same_source_files(tmp_path):
    copy_clone(tmp_path)
    for name in ("build/lib/x.py", "tests/__pycache__/x.pyc", ".cache/x", "outputs/x", "PKG-INFO"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert source_files(tmp_path) == source_files()


def test_wheel_holds_the_conversion_inside_the_package(built):
    names = zipfile.ZipFile(built[1]).namelist()
    tops = {name.split("/")[0] for name in names}
    assert "elmo_hf/conversion/key_map.py" in names and "elmo_hf/py.typed" in names
    assert {top for top in tops if not top.endswith(".dist-info")} == {"elmo_hf"}


def test_wheel_holds_every_file_of_the_package_once(built):
    """Modules, metrics, weights: what is in the folders is in the wheel, and nothing else is."""
    names = [name for name in zipfile.ZipFile(built[1]).namelist() if ".dist-info/" not in name]
    sources = [path for room in ("elmo_hf", "conversion") for path in (ROOT / room).rglob("*")]
    expected = {
        path.relative_to(ROOT).as_posix()
        for path in sources
        if path.is_file() and "__pycache__" not in path.parts
    }
    expected = {f"elmo_hf/{name}" if name.startswith("conversion/") else name for name in expected}
    assert sorted(names) == sorted(expected)
    assert sum(name.endswith("/model.safetensors") for name in names) == 1
    assert sum("/tagging/metrics/" in name for name in names) >= 2


def test_source_distribution_holds_what_its_tests_need(built):
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    expected = set(source_files(untracked=False))
    assert {"README.md", "LICENSE", "conversion/README.md"} <= expected
    assert expected <= names
    assert not {name for name in names if "__pycache__" in name or name.startswith("build")}


def run_installed(site: Path, folder: Path, *arguments: str) -> str:
    """What the installed command prints, without a clone, without a network."""
    code = (
        "import sys, elmo_hf, elmo_hf.cli\n"
        f"assert elmo_hf.__file__.startswith({str(site)!r}), elmo_hf.__file__\n"
        f"sys.argv = ['elmo-hf', *{arguments!r}]\n"
        "elmo_hf.cli.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment(site),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_installed_command_converts_without_a_clone(site, tmp_path):
    write_model(tmp_path / "source", tiny_config())
    run_installed(site, tmp_path, "convert", "source", "--output_dir", "elmo")
    assert (tmp_path / "elmo" / "model.safetensors").exists()


def test_installed_command_tags_and_embeds_with_the_bundled_model(site, tmp_path):
    (tmp_path / "text.txt").write_text("Will you book the book ?\n")
    tagged = run_installed(site, tmp_path, "tag", "text.txt")
    assert [row.split("\t")[3] for row in tagged.splitlines() if "\t" in row][2::2] == [
        "VERB",
        "NOUN",
    ]
    run_installed(site, tmp_path, "embed", "--input", "text.txt", "--output", "vectors.npy")
    assert len(np.load(tmp_path / "vectors.npy")) == 6
