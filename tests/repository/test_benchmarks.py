"""The plan of `make benchmark` and what becomes of its figures; nothing is measured here."""

import json
import re
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import environments  # noqa: E402
import measuring  # noqa: E402
import plan  # noqa: E402
import run  # noqa: E402
import tables  # noqa: E402
import texts  # noqa: E402

SURROUNDINGS = {"machine": "one core", "software": "Python", "code": "abc"}


@pytest.fixture
def benchmark(tmp_path):
    read = {option: texts.Text(tmp_path / option, option) for option in ("text", "train")}
    rows = [
        plan.Row("agreement", "small", "a.py", "--good"),
        plan.Row("speed", "small, batch 1", "b.py", "--fast", after="agreement: small"),
        plan.Row("vocabulary", "bilm", "c.py", "--large", ("train",)),
    ]
    return run.Benchmark(rows, False, read, tmp_path, SURROUNDINGS)


@pytest.fixture
def programs(monkeypatch):
    """Programs that measure nothing; a list of those that ran, and a set of those that fail."""
    ran, failing = [], set()

    def measure(benchmark, row):
        ran.append(row.program)
        if row.program in failing:
            raise RuntimeError("it failed")
        figures = {"elmo_hf": {"words_per_second": [1.0], "largest_error": [1e-6]}}
        return {
            "figures": figures,
            "rounds": 1,
            "conditions": benchmark.conditions(row),
            "date": "2026-01-01",
        }

    monkeypatch.setattr(run, "measure", measure)
    return ran, failing


def test_readme_lists_every_row_and_its_program():
    page = (BENCHMARKS / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| ([a-z ]+) \| `(\w+\.py)` \|", page, re.M))
    assert listed == {(row.part, row.program) for row in plan.ROWS}
    quick = {
        part for part, said in re.findall(r"^\| ([a-z ]+) \| `\w+\.py` \| (.+) \|", page, re.M)
    }
    assert quick == {row.part for row in plan.ROWS if row.quick is not None}


def test_every_row_has_a_table_and_a_program_with_its_options():
    assert {table.part for table in tables.TABLES} == {row.part for row in plan.ROWS}
    assert len({row.key for row in plan.ROWS}) == len(plan.ROWS)
    for row in plan.ROWS:
        source = (BENCHMARKS / row.program).read_text(encoding="utf-8")
        known = set(re.findall(r'add_argument\(\s*"(--[a-z-]+)"', source))
        named = f"{row.options} {row.quick or ''} " + " ".join(f"--{text}" for text in row.texts)
        assert set(re.findall(r"--[a-z-]+", named)) <= known, row
        assert row.quick is None or row.quick_seconds > 0
        assert not row.after or row.after in {other.key for other in plan.ROWS}


def test_kept_figures_are_rows_and_their_tables_are_written_from_them(tmp_path):
    kept = json.loads((BENCHMARKS / "results" / "figures.json").read_text(encoding="utf-8"))
    assert kept.keys() <= {row.key for row in plan.ROWS}
    tables.write_tables(kept, tmp_path / "tables.md")
    written = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert written == (BENCHMARKS / "results" / "tables.md").read_text(encoding="utf-8")


def test_a_table_has_medians_with_their_spread_and_ratios(benchmark, tmp_path):
    row = plan.ROWS[1]
    figures = {
        "elmo_hf": {"words": [1234, 1234, 1234], "words_per_second": [30.0, 5000.0, 4000.0]},
        "allennlp": {"words_per_second": [400.0]},
    }
    conditions = {"options": "--secret", "text": "a text", **SURROUNDINGS}
    entry = {"figures": figures, "rounds": 3, "conditions": conditions, "date": "2026-01-01"}
    tables.write_tables({row.key: entry}, tmp_path / "tables.md")
    written = (tmp_path / "tables.md").read_text(encoding="utf-8")
    expected = f"| {row.name} | 1,234 | 3 | 4,000 (30.0-5,000) | 400: **10.00 x** | [1] |"
    assert expected in written.splitlines()
    assert "1. text: a text; machine: one core; software: Python; code: abc; 2026-01-01" in written
    # figures that were not measured have no table
    assert "Peak memory" not in written
    assert "--secret" not in written


def test_an_interrupted_run_resumes_with_the_rows_that_are_missing(benchmark, programs, capsys):
    ran, failing = programs
    failing.add("b.py")
    results = {}
    assert run.measure_all(benchmark, results) == ["speed: small, batch 1"]
    assert ran == ["a.py", "b.py", "c.py"]
    assert run.read_figures(benchmark.output) == results
    ran.clear()
    failing.clear()
    capsys.readouterr()
    results = run.read_figures(benchmark.output)
    assert run.measure_all(benchmark, results) == []
    assert ran == ["b.py"]
    assert "2 of 3 rows are done.\n[3/3, 0 min left] speed: small" in capsys.readouterr().out
    # other code, and another text for one of them
    ran.clear()
    other = benchmark._replace(surroundings={**SURROUNDINGS, "code": "abd"})
    assert run.measure_all(other, dict(results)) == [] and ran == ["a.py", "b.py", "c.py"]
    ran.clear()
    read = {**benchmark.texts, "train": texts.Text(Path("train"), "another")}
    assert run.measure_all(benchmark._replace(texts=read), results) == [] and ran == ["c.py"]


def test_no_speed_is_measured_where_values_disagree(benchmark, programs):
    ran, failing = programs
    failing.add("a.py")
    failed = run.measure_all(benchmark, {})
    assert failed == ["agreement: small", "speed: small, batch 1"] and ran == ["a.py", "c.py"]


def test_sides_take_turns():
    turns = []

    def side(name):
        return lambda: turns.append(name) or {"speed": len(turns)}

    figures = measuring.alternate({"ours": side("o"), "theirs": side("t")}, rounds=3)
    assert "".join(turns) == "ottoot"
    assert figures == {"ours": {"speed": [1, 4, 5]}, "theirs": {"speed": [2, 3, 6]}}


def test_texts_are_the_sample_or_what_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "CACHE", tmp_path / "cache")
    named = tmp_path / "mine.txt"
    named.write_text("One sentence .\n\nAnother .\n", encoding="utf-8")
    read = texts.prepare(None, named, None)
    assert read["train"].name.startswith("mine.txt, 2 sentences, 5 words, sha256 ")
    assert read["train"].path.read_text(encoding="utf-8") == "One sentence .\nAnother .\n"
    assert "sample of the repository (all parts), 724 sentences, 8,462 words" in read["text"].name
    assert read["treebank"].path.name == "train.conllu"
    assert len(read["heldout"].path.read_text(encoding="utf-8").splitlines()) == 97
    named.write_text("\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"no sentence in 'mine.txt'"):
        texts.prepare(named, None, None)


def test_an_interrupted_row_takes_its_processes_and_files_along(tmp_path):
    """The program of a row starts another one, and both have a temporary folder."""
    inner = (
        "import sys, tempfile, time; t = tempfile.mkdtemp(); print(t, flush=True); time.sleep(60)"
    )
    outer = f"""
import signal, subprocess, sys, os
inner = subprocess.Popen([sys.executable, "-c", {inner!r}], stdout=subprocess.PIPE, text=True)
folder = inner.stdout.readline().strip()
open({str(tmp_path / "said")!r}, "w").write(f"{{inner.pid}} {{folder}}")
os.kill(os.getppid(), signal.SIGINT)
inner.wait()
"""
    # which a shell may have told its background jobs to ignore
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run.run_alone([sys.executable, "-c", outer])
    finally:
        signal.signal(signal.SIGINT, handler)
    process, folder = (tmp_path / "said").read_text().split()
    assert not Path(folder).exists()
    for _ in range(100):
        if (
            not Path(f"/proc/{process}").exists()
            or "\nState:\tZ" in Path(f"/proc/{process}/status").read_text()
        ):
            return
        time.sleep(0.1)
    pytest.fail("The inner program is still running.")


def test_what_pip_cannot_install_is_one_sentence(monkeypatch, tmp_path):
    said = "WARNING: Retrying\nERROR: No matching distribution found for torch\n"
    monkeypatch.setattr(
        environments.subprocess, "run", lambda *a, **k: SimpleNamespace(returncode=1, stderr=said)
    )
    with pytest.raises(
        SystemExit, match=r"install allennlp==2.*found for torch\); check the connec"
    ):
        environments.install(tmp_path, "--no-deps", "allennlp==2.10.1")


def test_a_program_that_fails_is_named_with_what_it_said():
    code = "import sys; print('no luck', file=sys.stderr); sys.exit(3)"
    with pytest.raises(SystemExit, match=r"(?s)failed:\nno luck"):
        measuring.run([sys.executable, "-c", code])
