"""Programs: errors a user can fix are one sentence, and their options take either spelling."""

import subprocess
import sys

import pytest

from elmo_hf.system.command import single_command
from elmo_hf.system.program import run_program


@pytest.mark.parametrize("kind", [ValueError, FileNotFoundError, ImportError, MemoryError])
def test_what_a_user_can_fix_is_one_sentence(capsys, kind):
    def fail():
        raise kind("Name a file.")

    with pytest.raises(SystemExit) as stop:
        run_program(fail)
    assert stop.value.code == 1
    assert capsys.readouterr().err == "Error: Name a file.\n"


def test_a_defect_keeps_its_traceback():
    def fail():
        raise TypeError("a defect")

    with pytest.raises(TypeError, match="a defect"):
        run_program(fail)


def test_a_program_that_succeeds_prints_what_it_prints(capsys):
    run_program(lambda: print("done"))
    assert capsys.readouterr() == ("done\n", "")


@pytest.mark.program
def test_a_reader_that_leaves_is_no_error():
    code = (
        "from elmo_hf.system.program import run_program\n"
        "run_program(lambda: [print('line') for _ in range(100_000)])\n"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as program:
        assert program.stdout.readline() == "line\n"
        program.stdout.close()
        assert program.stderr.read() == ""
    assert program.returncode == 1


@pytest.mark.parametrize("option", ["--output-dir", "--output_dir"])
@pytest.mark.parametrize("joined", [True, False])
def test_a_script_takes_underscores(monkeypatch, capsys, option, joined):
    def script(output_dir: str) -> None:
        print(output_dir)

    # a plain parameter is an argument; an option is one with a default
    script.__defaults__ = ("nowhere",)
    arguments = [f"{option}=my_folder"] if joined else [option, "my_folder"]
    monkeypatch.setattr(sys, "argv", ["script", *arguments])
    with pytest.raises(SystemExit) as stop:
        single_command(script)()
    assert stop.value.code == 0 and capsys.readouterr().out == "my_folder\n"


def test_an_error_without_a_message_or_with_commands_for_a_terminal(capsys):
    for error, printed in (
        (MemoryError(), "Error: There is not enough memory; use a smaller model or input, or "),
        (ValueError("a \x1b[31mname"), "Error: a \\x1b[31mname\n"),
    ):

        def fail(error=error):
            raise error

        with pytest.raises(SystemExit):
            run_program(fail)
        assert capsys.readouterr().err.startswith(printed)
