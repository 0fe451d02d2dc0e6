# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""A program started from a shell: what its user can fix is one sentence, not a traceback."""

import sys
from collections.abc import Callable


def run_program(main: Callable[[], None]) -> None:
    try:
        main()
    except (ValueError, OSError, ImportError, MemoryError) as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(1)
