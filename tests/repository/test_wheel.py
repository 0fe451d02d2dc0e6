"""The built wheel, not the clone: what a user installs."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from helpers.tiny import tiny_config, write_model

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the installed wheel in it."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT]
    subprocess.run([*pip, *build], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", folder / "site", wheel], check=True)
    return folder / "site"


def test_wheel_holds_the_conversion_inside_the_package(site):
    (wheel,) = site.parent.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert "elmo_hf/conversion/key_map.py" in names and "elmo_hf/py.typed" in names
    assert {top for top in tops if not top.endswith(".dist-info")} == {"elmo_hf"}


def run_installed(site: Path, folder: Path, *arguments: str) -> str:
    """What the installed command prints, without a clone, without a network."""
    code = (
        "import sys, elmo_hf, elmo_hf.cli\n"
        f"assert elmo_hf.__file__.startswith({str(site)!r}), elmo_hf.__file__\n"
        f"sys.argv = ['elmo-hf', *{arguments!r}]\n"
        "elmo_hf.cli.main()\n"
    )
    settings = {"PYTHONPATH": str(site), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | settings,
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
    assert [line.split("\t")[3] for line in tagged.splitlines() if line][2::2] == ["VERB", "NOUN"]
    run_installed(site, tmp_path, "embed", "--input", "text.txt", "--output", "vectors.npy")
    assert len(np.load(tmp_path / "vectors.npy")) == 6
