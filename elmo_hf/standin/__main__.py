# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`python -m elmo_hf.standin script.py …`: runs a program that imports AllenNLP or simple_elmo."""

import argparse
import os
import runpy
import sys
from collections.abc import Sequence

from elmo_hf.standin.finder import install
from elmo_hf.standin.settings import STATES, VERSIONS

USAGE = "python -m elmo_hf.standin [options] script.py ... | -m module ..."


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m elmo_hf.standin",
        usage=USAGE,
        description="Run old code that imports AllenNLP's ELMo or simple_elmo, as it is.",
        # an abbreviation could be an option of the program's
        allow_abbrev=False,
    )
    parser.add_argument(
        "--state",
        choices=STATES,
        help="`carried` (default): each call starts where the one before ended, as in AllenNLP; "
        "`fresh`: a sentence gets the same vectors every time.",
    )
    parser.add_argument(
        "--weights",
        metavar="FOLDER",
        help="Where copies of published files are, under the names they have in their addresses.",
    )
    parser.add_argument(
        "--version",
        choices=VERSIONS,
        help="Which AllenNLP the program was written for (default: 0.9); in 2.10, masks are "
        "booleans instead of numbers.",
    )
    parser.add_argument(
        "-m",
        dest="module",
        nargs=argparse.REMAINDER,
        help="Run a module, as `python -m` does, with the options that follow it.",
    )
    parser.add_argument("script", nargs=argparse.REMAINDER, help="The program and its own options.")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser()
    chosen = parser.parse_args(arguments)
    program = chosen.module or chosen.script
    if not program:
        parser.error("there is no program to run")
    if chosen.weights is not None and not os.path.isdir(os.path.expanduser(chosen.weights)):
        parser.error(f"--weights: there is no folder {chosen.weights!r}")
    if chosen.module is None and not os.path.exists(program[0]):
        parser.error(f"there is no program {program[0]!r}")
    sys.argv = program
    if chosen.module is None and not sys.flags.safe_path:
        # as if Python had been called with the script itself, which it finds behind a link
        sys.path[0] = os.path.dirname(os.path.realpath(program[0]))
    install(chosen.state, chosen.weights, chosen.version)
    if chosen.module is None:
        runpy.run_path(program[0], run_name="__main__")
    else:
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
