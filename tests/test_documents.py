"""README's snippets run, its links lead somewhere, and the examples do what they print."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from elmo_hf import ElmoConfig, ElmoModel, ElmoTokenizer

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    path
    for path in sorted(ROOT.rglob("*.md"))
    if ".venv" not in str(path) and ".cache" not in str(path)
]


def snippets(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize(
    "name", ["README.md", "docs/embedding.md", "docs/moving.md", "docs/tagging.md"]
)
def test_snippets_print_what_their_comments_say(name, tmp_path, monkeypatch, capsys):
    """The model of the snippets is as wide as the original, but its inside is kept small."""
    monkeypatch.chdir(tmp_path)
    config = ElmoConfig(cell_size=8, char_filters=[[1, 4]], num_highway_layers=0)
    ElmoModel(config).save_pretrained("my-elmo")
    ElmoTokenizer().save_pretrained("my-elmo")
    code = "\n".join(snippets(ROOT / name, "python"))
    capsys.readouterr()
    exec(compile(code, name, "exec"), {})
    promised = re.findall(r"print\(.*\)\s+# (\(.*?\)|\d+)", code)
    assert capsys.readouterr().out.splitlines() == promised and promised


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_commands_in_the_pages_exist():
    from elmo_hf.cli import app

    names = {command.callback.__name__ for command in app.registered_commands}
    known = {name.replace("_", "-") for name in names}
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert set(re.findall(r"elmo-hf ([a-z][a-z-]*)", text)) <= known
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make ([a-z-]+)\b(?=`|  |\n| in)", text):
        assert re.search(rf"^{target}:", makefile, re.M), target


def run_example(name: str, *arguments) -> str:
    command = [sys.executable, ROOT / "examples" / name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_examples_run_one_after_the_other(tmp_path):
    run_example("random_model.py", "--output_dir", tmp_path)
    printed = run_example("embed_sentences.py", "--model_name_or_path", tmp_path)
    assert "layer 0 (2, 10, 128)  cosine of 'bank': 1.000" in printed
    assert "last_hidden_state (2, 10, 128)" in printed
