# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""A program started from a shell: what its user can fix is one sentence, not a traceback."""

import os
import sys
from collections.abc import Callable

from tqdm.auto import tqdm

from elmo_hf.system.failures import describe
from elmo_hf.system.untrusted import printable


def run_program(main: Callable[[], None]) -> None:
    try:
        main()
        # now, while a failure can still be handled; `>&-` leaves no output at all
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads our output any more, as in `python examples/word_senses.py | head`. What is
        # still in the buffer must not fail again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (ValueError, OSError, ImportError, MemoryError) as error:
        # on a line of its own, also where a library's progress bar was interrupted
        tqdm.write(f"Error: {printable(describe(error))}", file=sys.stderr)
        sys.exit(1)
