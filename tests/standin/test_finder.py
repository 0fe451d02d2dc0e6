"""How AllenNLP's names are reached, and when they are not."""

import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from elmo_hf import standin
from elmo_hf.standin.__main__ import main
from elmo_hf.standin.finder import STARTUP
from elmo_hf.standin.surface import SURFACE


def run(*arguments, cwd=None, **environment):
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_name_of_the_table_is_there(installed):
    for module, names in SURFACE.items():
        found = importlib.import_module(module)
        for name, place in names.items():
            assert getattr(found, name) is getattr(
                importlib.import_module(f"elmo_hf.standin.{place}"), name
            )
    import allennlp.modules

    assert allennlp.modules.Elmo is allennlp.modules.elmo.Elmo
    assert "Elmo" in dir(allennlp.modules)


def test_all_names_of_a_module_may_be_imported(installed):
    names: dict[str, object] = {}
    exec("from allennlp.modules import *\nfrom simple_elmo import *", names)
    assert {"Elmo", "ScalarMix", "ElmoModel"} < names.keys()


@pytest.mark.parametrize("chosen, version", [("0.9", "0.9.0"), ("2.10", "2.10.1")])
def test_the_version_is_the_one_that_is_imitated(installed, chosen, version):
    installed.install(version=chosen)
    assert importlib.import_module("allennlp").__version__ == version


def test_what_is_not_covered_says_what_is(installed):
    with pytest.raises(ModuleNotFoundError, match="'allennlp.predictors'.*allennlp.modules.elmo"):
        importlib.import_module("allennlp.predictors")
    with pytest.raises(ImportError, match=r"'Params' from 'allennlp.common'.*covers there only"):
        from allennlp.common import Params  # noqa: F401
    with pytest.raises(ImportError, match="'nothing' from 'allennlp.modules.elmo'.*batch_to_ids"):
        from allennlp.modules.elmo import nothing  # noqa: F401


def test_looking_for_a_name_in_every_module_is_no_import(installed):
    module = importlib.import_module("allennlp.modules.elmo")
    assert not hasattr(module, "nothing")
    assert getattr(module, "nothing", None) is None


def test_nothing_happens_unasked_and_nothing_is_left():
    before = list(sys.meta_path), dict(os.environ)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("allennlp")
    standin.install(state="fresh", weights="somewhere", version="2.10")
    standin.install()
    importlib.import_module("allennlp.modules.elmo")
    importlib.import_module("simple_elmo")
    assert STARTUP in os.environ["PYTHONPATH"]
    standin.uninstall()
    assert (list(sys.meta_path), dict(os.environ)) == before
    assert not [name for name in sys.modules if name.startswith(("allennlp", "simple_elmo"))]
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("allennlp")
    standin.uninstall()


def test_a_real_one_comes_first(tmp_path, monkeypatch):
    (tmp_path / "allennlp").mkdir()
    (tmp_path / "allennlp" / "__init__.py").write_text("REAL = True")
    monkeypatch.syspath_prepend(tmp_path)
    standin.install()
    try:
        assert importlib.import_module("allennlp").REAL
        # not even the modules that it lacks
        with pytest.raises(ModuleNotFoundError, match="^No module named 'allennlp.modules'$"):
            importlib.import_module("allennlp.modules.elmo")
    finally:
        standin.uninstall()
        del sys.modules["allennlp"]


@pytest.mark.program
def test_a_real_one_comes_first_in_started_processes(tmp_path):
    (tmp_path / "allennlp").mkdir()
    (tmp_path / "allennlp" / "__init__.py").write_text("REAL = True")
    code = (
        "import sys, allennlp; assert allennlp.REAL\n"
        "assert not [name for name in sys.modules if name.startswith('elmo_hf')]"
    )
    (tmp_path / "script.py").write_text(
        "import subprocess, sys\n"
        f"sys.exit(subprocess.run([sys.executable, '-c', {code!r}]).returncode)"
    )
    ran = run("-m", "elmo_hf.standin", tmp_path / "script.py", PYTHONPATH=str(tmp_path))
    assert ran.returncode == 0, ran.stderr


def test_a_folder_that_is_no_package_counts_as_absent(tmp_path, monkeypatch):
    (tmp_path / "allennlp" / "modules").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)
    # found by then as a package without a file
    monkeypatch.delitem(sys.modules, "allennlp", raising=False)
    assert importlib.import_module("allennlp").__file__ is None
    standin.install()
    try:
        assert importlib.import_module("allennlp.modules").Elmo
    finally:
        standin.uninstall()


def test_settings_that_are_none_are_refused():
    with pytest.raises(ValueError, match="state is 'warm' but must be carried or fresh"):
        standin.install(state="warm")
    assert not any(name.startswith("ELMO_HF_STANDIN_") for name in os.environ)


def test_a_thread_finds_it(installed):
    found = []
    thread = threading.Thread(target=lambda: found.append(importlib.import_module("simple_elmo")))
    thread.start()
    thread.join()
    assert found[0].ElmoModel


SCRIPT = """
import multiprocessing, os, subprocess, sys
from allennlp.modules.elmo import batch_to_ids
def work(words):
    from allennlp.modules.elmo import batch_to_ids
    return batch_to_ids([words]).shape

if __name__ == "__main__":
    print(os.environ["SEEN"], sys.argv, batch_to_ids([["a", "b"]]).shape)
    for method in ("spawn", "fork"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, pool.map(work, [["x"], ["y", "z"]]))
    code = "import sys; assert 'torch' not in sys.modules\\nfrom allennlp.modules import Elmo"
    print("subprocess", subprocess.run([sys.executable, "-c", code]).returncode)
"""


@pytest.mark.program
def test_programs_and_what_they_start(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    # what another library's start does is still done
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "sitecustomize.py").write_text("import os; os.environ['SEEN'] = '1'")
    ran = run(
        "-m", "elmo_hf.standin", "--state", "fresh", tmp_path / "script.py", "--state", "-m", "x",
        PYTHONPATH=str(tmp_path / "start"),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "'--state', '-m', 'x'] torch.Size([1, 2, 50])" in ran.stdout
    for method in ("spawn", "fork"):
        assert f"{method} [torch.Size([1, 1, 50]), torch.Size([1, 2, 50])]" in ran.stdout
    assert "subprocess 0" in ran.stdout


@pytest.mark.program
def test_the_command_as_a_module(tmp_path, fixture_files):
    text, output = tmp_path / "text.txt", tmp_path / "out.hdf5"
    text.write_text("A sentence .\nAnother one\n")
    options, weights = fixture_files
    ran = run(
        "-m", "elmo_hf.standin", "-m", "allennlp.run", "elmo", text, output, "--average",
        "--options-file", options, "--weight-file", weights,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert output.exists()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "there is no program to run"),
        (["--weights", "no/folder", "x.py"], "there is no folder 'no/folder'"),
        (["no/script.py"], "there is no program 'no/script.py'"),
        (["--state", "warm", "x.py"], "invalid choice: 'warm'"),
    ],
)
def test_mistakes_on_the_command_line_are_sentences(capsys, arguments, message):
    before = list(sys.meta_path)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2 and message in capsys.readouterr().err
    assert sys.meta_path == before


def test_a_program_behind_a_link_finds_what_is_beside_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "beside_the_program.py").write_text("")
    (tmp_path / "real" / "script.py").write_text("import allennlp, beside_the_program")
    (tmp_path / "link.py").symlink_to(tmp_path / "real" / "script.py")
    try:
        main([str(tmp_path / "link.py")])
        assert sys.path[0] == str((tmp_path / "real").resolve())
    finally:
        standin.uninstall()


def test_a_notebook_loads_and_unloads_it():
    standin.load_ipython_extension(None)
    assert importlib.import_module("allennlp")
    standin.unload_ipython_extension(None)
    assert "allennlp" not in sys.modules


def rows_of_the_page() -> list[tuple[set[str], set[str]]]:
    """Modules and names, of each row of the page's table of what is covered."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "old-code.md").read_text("utf-8")
    table = page.partition("## What is covered")[2].partition("\nParameters have")[0]
    cells = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    return [(set(re.findall("`(.*?)`", a)), set(re.findall("`(.*?)`", b))) for a, b in cells]


def test_the_page_names_every_module_and_no_other():
    # those without names of their own are packages only
    modules = {module for module, names in SURFACE.items() if names}
    modules -= {"allennlp.modules"}
    assert set().union(*(named for named, _ in rows_of_the_page())) == modules


def test_each_row_of_the_page_names_what_its_modules_have(installed):
    rows = rows_of_the_page()
    everywhere = set().union(*(names for _, names in rows))
    for modules, names in rows:
        covered = set().union(*(SURFACE[module] for module in modules))
        # what a module imports of others is named with those
        assert covered <= everywhere
        classes = [getattr(importlib.import_module(m), n) for m in modules for n in SURFACE[m]]
        source = "".join(inspect.getsource(each) for each in classes if inspect.isclass(each))
        for name in names - covered - {"elmo", "allennlp.modules"}:
            assert re.search(rf"def {name}\(|self\.{name}\b", source), (modules, name)


def test_a_started_process_waits_until_it_is_needed(monkeypatch):
    """What `sitecustomize` puts there is replaced by `install` and removed by `uninstall`."""
    spec = importlib.util.spec_from_file_location("customized", Path(STARTUP, "sitecustomize.py"))
    before = list(sys.meta_path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert len(sys.meta_path) == len(before) + 1
    assert importlib.import_module("allennlp.modules").Elmo
    assert [type(each).__name__ for each in sys.meta_path[len(before) :]] == ["StandInFinder"]
    standin.uninstall()
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    standin.uninstall()
    assert sys.meta_path == before


def test_empty_entries_of_the_search_path_stay(monkeypatch):
    """An empty one is the current folder."""
    for given in (":/x", "/x:", "/x"):
        monkeypatch.setenv("PYTHONPATH", given)
        standin.install()
        assert os.environ["PYTHONPATH"].endswith(f":{given}")
        standin.uninstall()
        assert os.environ["PYTHONPATH"] == given


def test_modules_have_what_they_import(installed):
    from allennlp.commands.elmo import ConfigurationError, _ElmoBiLm, lazy_groups_of
    from allennlp.modules import elmo

    assert elmo._ElmoBiLm is _ElmoBiLm and elmo.ConfigurationError is ConfigurationError
    assert elmo.lazy_groups_of is lazy_groups_of and elmo.Batch([]) is not None


def test_two_copies_of_this_package_start_once(tmp_path):
    """A program of one environment may start one of another, each with a stand-in."""
    copy = shutil.copytree(STARTUP, tmp_path / "copy")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "sitecustomize.py").write_text("print('mine')")
    places = [STARTUP, str(copy), str(tmp_path / "mine")]
    count = "sum(hasattr(f, 'belongs_to_elmo_hf') for f in sys.meta_path)"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; print({count})"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["mine", "1"] and not done.stderr
