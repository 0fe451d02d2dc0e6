"""README's snippets run, its links lead somewhere, and the examples do what they print."""

import functools
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from elmo_hf import ElmoConfig, ElmoForPreTraining, ElmoTokenizer, WordVocabulary
from elmo_hf.cli import app
from elmo_hf.word_vocabulary import SPECIAL_WORDS

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("docs", "examples", "elmo_hf", "conversion", "benchmarks")
PAGES = [*ROOT.glob("*.md"), *(page for name in FOLDERS for page in (ROOT / name).rglob("*.md"))]


def snippets(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize(
    "name",
    [
        "README",
        "docs/embedding",
        "docs/moving",
        "docs/old-code",
        pytest.param("docs/pretraining", marks=pytest.mark.program),
        "docs/tagging",
        "elmo_hf/bundled_model/README",
    ],
)
def test_snippets_print_what_their_comments_say(name, tmp_path, monkeypatch, capsys):
    """The model of the snippets is as wide as the original, but its inside is kept small."""
    monkeypatch.chdir(tmp_path)
    words = [*SPECIAL_WORDS, "The", "river", "bank", ".", "of", "a"]
    config = ElmoConfig(
        cell_size=8, char_filters=[[1, 4]], num_highway_layers=0, lm_vocab_size=len(words)
    )
    model = ElmoForPreTraining(config)
    model.vocabulary = WordVocabulary(words)
    model.save_pretrained("my-elmo")
    ElmoTokenizer().save_pretrained("my-elmo")
    for file in ("train.txt", "test.txt"):
        Path(file).write_text("The bank of a river .\n" * 20)
    code = "\n".join(snippets(ROOT / f"{name}.md", "python"))
    capsys.readouterr()
    exec(compile(code, name, "exec"), {})
    promised = re.findall(r"print\(.*\)\s+# ([^:\n]+)", code)
    assert capsys.readouterr().out.splitlines() == promised and promised


def without_snippets(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def anchors(text: str) -> set[str]:
    """The names that GitHub gives to a page's headings."""
    found: list[str] = []
    for heading in re.findall(r"^#+ +(.*?) *$", without_snippets(text), re.M):
        # only the text of a link counts
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.append(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    # a heading that was there before gets a number
    return {
        f"{name}-{found[:place].count(name)}" if name in found[:place] else name
        for place, name in enumerate(found)
    }


def test_anchors_are_named_as_on_github():
    page = "# What's `new_in` 2.0?\n```bash\n# no\n```\n## [A - b](c.md)\n## One\n# One\n"
    assert anchors(page) == {"whats-new_in-20", "a---b", "one", "one-1"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^):\s]+)\)", page.read_text(encoding="utf-8")):
        file, _, anchor = target.partition("#")
        place = page.parent / file if file else page
        assert place.exists(), target
        assert not anchor or anchor in anchors(place.read_text(encoding="utf-8")), target


def commands(page: Path) -> list[str]:
    """
    The commands of a page's shell snippets, without comments, those of several lines whole, and
    those in its tables and sentences.
    """
    code = "\n".join(snippets(page, "bash")).replace("\\\n", " ")
    text = " ".join(page.read_text(encoding="utf-8").split())
    inline = re.findall(r"`((?:python|accelerate|elmo-hf|examples/\S+\.sh) [^`]+)`", text)
    return [line.split(" #")[0].strip() for line in code.splitlines() if line.strip()] + inline


@functools.cache
def options_of(script: str) -> set[str]:
    """The options of a script: those that its source names, or those that `--help` lists."""
    source = (ROOT / script).read_text(encoding="utf-8")
    named = set(re.findall(r'add_argument\(\s*"(--[a-z0-9_-]+)"', source))
    if "parse_settings(" not in source:
        return named
    command = [sys.executable, ROOT / script, "--help"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"--[a-z0-9_-]+", printed))


# A script and its options, up to another command or to a script that it starts itself.
SCRIPT = r"((?:examples|benchmarks)/\S+\.py)((?:(?!examples/)[^|])*)"


@pytest.mark.program
def test_commands_in_the_pages_exist():
    """Every command of ours with its options, every script with its, every target of make."""
    command = typer.main.get_command(app)
    seen = 0
    for page in PAGES:
        for line in commands(page):
            for some in re.findall(r"(?:elmo-hf|-m elmo_hf) ([^|]+)", line):
                name, *arguments = shlex.split(some)
                known = {option for p in command.commands[name].params for option in p.opts}
                known |= {"--help"}
                assert {part for part in arguments if part.startswith("--")} <= known, line
                seen += 1
            for script, some in re.findall(SCRIPT, line):
                assert (ROOT / script).exists(), line
                known = options_of(script)
                assert set(re.findall(r"(?<!\S)--[a-z0-9_-]+", some)) <= known, line
                seen += 1
    assert seen > 60
    makefile = (ROOT / "Makefile").read_text()
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert set(re.findall(r"elmo-hf ([a-z][a-z-]*)", text)) <= set(command.commands)
    for target in re.findall(r"[`$] ?make\s([a-z-]+)", text):
        assert re.search(rf"^{target}:", makefile, re.M), target


# options of accelerate's launcher and of AllenNLP's program that the pages mention
OTHERS = {
    "--all",
    "--average",
    "--machine_rank",
    "--main_process_ip",
    "--multi_gpu",
    "--num_machines",
    "--num_processes",
    "--rdzv_backend",
    "--requeue",
    "--top",
}


@pytest.mark.program
def test_options_in_the_sentences_of_pages_exist():
    """Those in backticks, of whichever command or script they are."""
    known = {"--help", *OTHERS}
    for command in typer.main.get_command(app).commands.values():
        known |= {option for parameter in command.params for option in parameter.opts}
    for folder in ("examples", "benchmarks"):
        for script in (ROOT / folder).rglob("*.py"):
            known |= options_of(script.relative_to(ROOT).as_posix())
    for name in ("__main__", "command"):
        known |= options_of(f"elmo_hf/standin/{name}.py")
    seen = set()
    for page in PAGES:
        for code in re.findall(r"`([^`]+)`", without_snippets(page.read_text(encoding="utf-8"))):
            named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9_-]*", code))
            assert named <= known, (page, code)
            seen |= named
    assert seen > OTHERS and len(seen) > 30


def run_example(name: str, *arguments) -> str:
    command = [sys.executable, ROOT / "examples" / name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.program
def test_examples_run_one_after_the_other(tmp_path):
    run_example("random_model.py", "--output_dir", tmp_path)
    printed = run_example("embed_sentences.py", "--model_name_or_path", tmp_path)
    assert "layer 0 (2, 10, 256)  cosine of 'bank': 1.000" in printed
    assert "last_hidden_state (2, 10, 256)" in printed
