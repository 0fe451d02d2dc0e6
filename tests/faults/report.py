"""Counts of a campaign: a table, the classes of failures, and files that add up."""

import json
import shlex
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from faults.workers import Done


@dataclass
class Cell:
    """What happened to one kind in one mode with one seed."""

    kind: str
    mode: str
    seed: int
    trials: int = 0
    error: int = 0
    equal: int = 0
    failed: int = 0
    seconds: float = 0.0
    failures: list[dict[str, Any]] = field(default_factory=list)

    def add(self, done: Done) -> None:
        self.trials += 1
        verdict = done.outcome.verdict
        setattr(self, verdict, getattr(self, verdict) + 1)
        if done.outcome.failed:
            self.failures.append(
                {
                    "class": done.outcome.group,
                    "what": done.outcome.text,
                    "damage": done.damage,
                    "repro": self.repro(done.number),
                }
            )

    def repro(self, number: int) -> str:
        return (
            f"python tests/faults/campaign.py --seed {self.seed} --only {shlex.quote(self.kind)} "
            f"--mode {self.mode} --trial {number}"
        )


def table(cells: Iterable[Cell]) -> str:
    """Markdown; the parts of several seeds are added up."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    for cell in cells:
        counts = {name: getattr(cell, name) for name in ("trials", "error", "equal", "failed")}
        sums.setdefault((cell.kind, cell.mode), Counter()).update(counts)
    rows = [
        "| what | how | trials | one sentence | right result | failed |",
        "|---|---|---|---|---|---|",
    ]
    total = sum(sums.values(), Counter())
    for (kind, mode), counts in [*sums.items(), (("all", ""), total)]:
        numbers = [f"{counts[name]:,}" for name in ("trials", "error", "equal", "failed")]
        rows.append(f"| {' | '.join([kind, mode, *numbers])} |")
    return "\n".join(rows)


def classes(cells: Iterable[Cell]) -> str:
    """The failures by their class, the most frequent first, each with one of its trials."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for cell in cells:
        for one in cell.failures:
            found.setdefault((cell.mode, one["class"]), []).append(one)
    lines = []
    for (mode, group), failures in sorted(found.items(), key=lambda item: -len(item[1])):
        first = failures[0]
        lines.append(f"{len(failures)} x {mode}: {group}")
        lines += [f"    {first['what']}", f"    {first['damage']}", f"    {first['repro']}"]
    return "\n".join(lines)


def append(path: Path, cells: Iterable[Cell]) -> None:
    with path.open("a", encoding="utf-8") as file:
        for cell in cells:
            file.write(json.dumps(asdict(cell)) + "\n")


def load(path: Path) -> list[Cell]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Cell(**json.loads(line)) for line in lines]
