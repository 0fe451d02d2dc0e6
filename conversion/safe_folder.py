"""A folder appears under its name whole or not at all."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp


@contextmanager
def new_folder(final: Path, overwrite: bool) -> Iterator[Path]:
    """A temporary folder beside `final` to write into; it takes the name `final` at the end."""
    final = final.absolute()
    check_free(final, overwrite)
    final.parent.mkdir(parents=True, exist_ok=True)
    building = Path(mkdtemp(prefix=f".{final.name}-", dir=final.parent))
    try:
        yield building
        # mkdtemp keeps others out, which an ordinary folder does not
        building.chmod(0o755)
        if final.exists():
            old = Path(mkdtemp(prefix=f".{final.name}-old-", dir=final.parent))
            final.rename(old / final.name)
            building.rename(final)
            shutil.rmtree(old)
        else:
            building.rename(final)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def check_free(final: Path, overwrite: bool) -> None:
    if final.exists() and not overwrite and (not final.is_dir() or any(final.iterdir())):
        raise FileExistsError(f"{str(final)!r} exists already; give --overwrite to replace it.")
