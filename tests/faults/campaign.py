"""A campaign against everything that comes from outside: damaged files, kills, full disks, races.

    python tests/faults/campaign.py --minutes 20 --seed 1
    python tests/faults/campaign.py --only hdf5 zip --mode process --trials 1000
    python tests/faults/campaign.py --seed 1 --only hdf5 --mode process --trial 17

A trial is held if it ends in one sentence or in the right result, and leaves nothing behind. Every
trial depends on the seed, its kind and its number alone, so each can be repeated by itself. The
exit code is 1 if one failed.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

# before torch is imported; nothing here may ask the Hub
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["ACCELERATE_USE_CPU"] = "true"
# the package of this very clone, whichever is installed
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from faults import children, report
from faults.judge import failure
from faults.workers import Done, run_trials
from tqdm import tqdm

# the share of the time that a mode gets; rooms' functions are the quickest and get the most
SHARES = {"process": 35, "command": 30, "kill": 15, "disk": 8, "race": 7, "thread": 5}
MODES = tuple(SHARES)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=20, help="how long it takes in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", metavar="KIND", help="these rows of the tables only")
    parser.add_argument("--mode", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--trials", type=int, help="so many per row, instead of minutes")
    parser.add_argument("--trial", type=int, metavar="NUMBER", help="repeat this one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--append", type=Path, metavar="FILE", help="add the counts to this file")
    parser.add_argument("--summary", type=Path, metavar="FILE", help="only print what a file has")
    return parser.parse_args()


def rows(mode: str) -> dict[str, Any]:
    """The rows of the table that a mode goes through."""
    from faults import table
    from faults.disturbed import can_mount
    from faults.threads import SHARED

    if mode == "process":
        return {kind.name: kind for kind in table.KINDS if kind.in_process}
    if mode == "command":
        return {kind.name: kind for kind in table.KINDS if kind.in_command}
    if mode == "thread":
        return dict(SHARED)
    if mode == "disk" and not can_mount():
        print("Full disks are left out: only root may mount small ones.", file=sys.stderr)
        return {}
    return {command.name: command for command in table.COMMANDS}


def prepare(mode: str, row: Any, name: str, folder: Path) -> Any:
    """What makes the trials of a row."""
    from faults import damaged, disturbed, threads

    if mode in ("process", "command"):
        return damaged.Damaged(row, folder, in_process=mode == "process")
    if mode == "thread":
        return threads.Threads(name, folder)
    modes = {"kill": disturbed.Killed, "disk": disturbed.FullDisk, "race": disturbed.Race}
    return modes[mode](row, folder)


def run_row(cell: report.Cell, row: Any, numbers: Any, args: argparse.Namespace) -> None:
    """All trials of one row in one mode."""
    with getattr(row, "beside", nullcontext)():
        run_cell(cell, row, numbers, args)


def run_cell(cell: report.Cell, row: Any, numbers: Any, args: argparse.Namespace) -> None:
    from faults.disturbed import unmount_below

    folder = Path(tempfile.mkdtemp())
    try:
        prepared = prepare(cell.mode, row, cell.kind, folder)
    except RuntimeError as error:
        what = " ".join(str(error).split())[-300:]
        cell.add(Done(0, failure("undamaged and undisturbed, it fails", what), ""))
        return

    def trial(number: int) -> Any:
        return prepared.trial(Random(f"{cell.seed}:{cell.kind}:{number}"), number)

    started = time.monotonic()
    patience = 20 if cell.mode == "process" else 4 * getattr(row, "patience", 120)
    try:
        with tqdm(desc=f"{cell.mode} {cell.kind}", unit="", leave=False) as bar:
            for done in run_trials(trial, numbers, args.jobs, patience):
                cell.add(done)
                bar.update()
                bar.set_postfix(failed=cell.failed, refresh=False)
                if args.trial is not None:
                    tqdm.write(f"{done.damage}\n{done.outcome.verdict}: {done.outcome.text}")
    finally:
        unmount_below(folder)
        shutil.rmtree(folder, ignore_errors=True)
        cell.seconds = time.monotonic() - started


def scratch_home() -> str | None:
    """Memory, where there is a disk in it: nothing waits for a real one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def numbers_until(deadline: float) -> Iterator[int]:
    """Numbers of trials, at least one, until the time is over."""
    number = 0
    while number == 0 or time.monotonic() < deadline:
        yield number
        number += 1


def plan(args: argparse.Namespace) -> list[tuple[str, str, Any, float]]:
    """Every row of every mode, with its seconds."""
    chosen = []
    for mode in args.mode:
        found = rows(mode)
        wanted = {name: row for name, row in found.items() if not args.only or name in args.only}
        weights = {name: getattr(row, "weight", 1.0) for name, row in wanted.items()}
        share = SHARES[mode] / sum(weights.values(), 1e-9)
        chosen += [(mode, name, row, share * weights[name]) for name, row in wanted.items()]
    if not chosen:
        known = sorted({name for mode in MODES for name in rows(mode)})
        sys.exit(f"Nothing to do; the rows are: {', '.join(known)}.")
    whole = sum(share for *_, share in chosen)
    return [(*cell, 60 * args.minutes * share / whole) for *cell, share in chosen]  # type: ignore[misc]


def run_all(args: argparse.Namespace) -> Iterator[report.Cell]:
    """Every row of every mode, one after the other."""
    children.warm_up()
    for mode, name, row, seconds in plan(args):
        cell = report.Cell(name, mode, args.seed)
        deadline = time.monotonic() + seconds
        numbers: Any = range(args.trials) if args.trials else numbers_until(deadline)
        run_row(cell, row, numbers if args.trial is None else [args.trial], args)
        speed = cell.trials / max(cell.seconds, 1e-3)
        tqdm.write(f"{mode} {name}: {cell.trials} trials, {cell.failed} failed, {speed:.1f}/s")
        if args.append is not None:
            report.append(args.append, [cell])
        yield cell


def main() -> None:
    args = parse()
    if args.summary is not None:
        cells = report.load(args.summary)
    else:
        with tempfile.TemporaryDirectory(
            prefix="faults-", dir=scratch_home(), ignore_cleanup_errors=True
        ) as home:
            tempfile.tempdir = home
            os.environ["HF_DATASETS_CACHE"] = f"{home}/datasets"
            cells = list(run_all(args))
    print(report.classes(cells))
    print(report.table(cells))
    sys.exit(any(cell.failed for cell in cells))


if __name__ == "__main__":
    main()
