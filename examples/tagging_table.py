"""Print the results of several runs of run_pos.py as a Markdown table, the best run last.

    python examples/tagging_table.py outputs/frozen outputs/finetuned

Every row is an output folder; the last columns show how the most frequent tag of each word scores.
"""

import argparse
import json
from pathlib import Path

from elmo_hf.system import run_program

SPLITS = ("validation", "test")


def read_results(folder: Path) -> dict:
    path = folder / "all_results.json"
    if not path.exists():
        raise FileNotFoundError(f"{str(folder)!r} has no all_results.json: the run is not over.")
    return json.loads(path.read_text(encoding="utf-8"))


def columns(results: dict) -> list[str]:
    """Validation and test, then their baselines; of the figure that chose the best epoch."""
    goal = results["goal"]
    names = [f"{split}_{kind}{goal}" for kind in ("", "baseline_") for split in SPLITS]
    return [f"{100 * results[name]:.2f}" if name in results else "" for name in names]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="+", help="output folders of run_pos.py")
    args = parser.parse_args()
    rows = {folder.name: columns(read_results(folder)) for folder in args.folders}
    print("| run | validation | test | most frequent tags: validation | test |")
    print("|---|---|---|---|---|")
    for name, figures in sorted(rows.items(), key=lambda row: float(row[1][0])):
        print(f"| {name} | " + " | ".join(figures) + " |")


if __name__ == "__main__":
    run_program(main)
