# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Where files are kept that can be made again at any time."""

import logging
import os
from pathlib import Path
from tempfile import gettempdir

logger = logging.getLogger(__name__)


def cache_home() -> Path:
    """`$ELMO_HF_HOME`, or `elmo_hf` among the user's caches. It need not exist."""
    if home := os.environ.get("ELMO_HF_HOME"):
        return Path(home).expanduser().absolute()
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser().absolute() / "elmo_hf"


def cache_folder() -> Path:
    """`cache_home()`, created if necessary, or a temporary folder if it cannot be written."""
    home = cache_home()
    reason = make_writable(home)
    if not reason:
        return home
    # One per user: a temporary directory is shared.
    fallback = Path(gettempdir()) / f"elmo_hf-{getattr(os, 'getuid', lambda: 'cache')()}"
    failure = make_writable(fallback, mode=0o700)
    if hasattr(os, "getuid") and not failure and fallback.stat().st_uid != os.getuid():
        # its owner could put files into it that we would load
        failure = "it belongs to another user"
    if failure:
        raise OSError(
            f"Neither {str(home)!r} ({reason}) nor {str(fallback)!r} ({failure}) can be written; "
            "set ELMO_HF_HOME to a folder that can."
        )
    logger.warning(
        "The cache %r cannot be written (%s); using %r instead. Set ELMO_HF_HOME to choose another "
        "folder.",
        str(home),
        reason,
        str(fallback),
    )
    return fallback


def make_writable(folder: Path, mode: int = 0o777) -> str:
    """Creates a folder; returns why it cannot be written, or an empty string if it can."""
    try:
        folder.mkdir(mode, parents=True, exist_ok=True)
    except OSError as error:
        return error.strerror or str(error)
    return "" if os.access(folder, os.W_OK | os.X_OK) else "permission denied"
