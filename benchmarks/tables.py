"""The figures of `run.py` as tables in Markdown."""

import statistics
from pathlib import Path
from typing import NamedTuple

from plan import ROWS, Row

from elmo_hf.system.writing import write_text


class Table(NamedTuple):
    title: str
    # which rows of the plan, and which of their figures
    part: str
    figure: str
    about: str
    # whether the cells say how many times as much the first column is
    ratio: bool = True


TABLES = (
    Table(
        "Agreement",
        "agreement",
        "largest_error",
        "The largest relative difference of any layer from AllenNLP's, over sixteen sentences.",
        ratio=False,
    ),
    Table("Embedding", "speed", "words_per_second", "Words per second, from words to vectors."),
    Table("Memory", "speed", "peak_rss_mb", "Peak memory of the rows above, in MB."),
    Table("Loading", "speed", "load_seconds", "Seconds to load the model of the rows above."),
    Table(
        "Share of the product peak",
        "speed",
        "share_of_peak",
        "The multiplications of the biLSTM alone, as a share of what large matrix products reach "
        "in the same process.",
    ),
    Table(
        "A corpus",
        "corpus",
        "words_per_second",
        "Words per second of `ElmoEmbedder`, all layers, beside AllenNLP at the batch of 8 to 256 "
        "sentences that suits it best.",
    ),
    Table("Growth", "growth", "words_per_second", "Words per second of `small`."),
    Table("Growth of memory", "growth", "peak_rss_mb", "Peak memory of the rows above, in MB."),
    Table(
        "A large corpus",
        "large corpus",
        "sentences_per_second",
        "Sentences per second of `elmo-hf embed` with the bundled model, without Python's start.",
    ),
    Table("Memory for a large corpus", "large corpus", "peak_rss_mb", "Peak memory in MB."),
    Table("Tokenizer", "tokenizer", "words_per_second", "Words per second, words to ids."),
    Table(
        "Pretraining",
        "pretraining",
        "words_per_second",
        "Words per second of a small biLM with Adagrad, training steps alone.",
    ),
    Table(
        "Perplexity",
        "perplexity",
        "perplexity",
        "Held-out perplexity after one epoch, as simple_elmo counts it.",
        ratio=False,
    ),
    Table(
        "A large vocabulary",
        "vocabulary",
        "words_per_second",
        "Words per second of a small biLM under a softmax 512 wide, training steps alone. "
        "simple_elmo trains with Adagrad in both rows.",
    ),
    Table(
        "Memory for a large vocabulary",
        "vocabulary",
        "peak_rss_mb",
        "Peak memory of the rows above, in MB.",
    ),
    Table("ONNX", "onnx", "words_per_second", "Words per second of the bundled model, all layers."),
    Table(
        "int8",
        "onnx",
        "mean_cosine",
        "The cosine of the words' vectors with torch's, on average over all layers.",
        ratio=False,
    ),
    Table("ONNX files", "onnx", "megabytes", "The size of the file in MB.", ratio=False),
    Table("Raw text", "raw text", "words_per_second", "Words per second, tagged."),
)


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value < 10 else f"{value:.1f}"


def cell(values: list[float], first: list[float] | None) -> str:
    """The median, the lowest and the highest of the rounds, and the ratio of the first column's."""
    median = statistics.median(values)
    text = number(median)
    if len(values) > 1:
        text += f" ({number(min(values))}-{number(max(values))})"
    if first is not None:
        text += f": **{statistics.median(first) / median:.2f} x**"
    return text


def cells(table: Table, figures: dict) -> dict[str, str]:
    """By side, of those that have the figure."""
    found = {side: kinds[table.figure] for side, kinds in figures.items() if table.figure in kinds}
    first = next(iter(found), None)
    return {
        side: cell(values, found[first] if table.ratio and side != first else None)
        for side, values in found.items()
    }


def in_words(row: Row, entry: dict) -> str:
    """The row's first table as a line for a terminal."""
    table = next(table for table in TABLES if table.part == row.part)
    said = "; ".join(
        f"{side} {text.replace('**', '')}" for side, text in cells(table, entry["figures"]).items()
    )
    return f"{row.key}: {said} ({table.figure.replace('_', ' ')})"


def markdown(table: Table, results: dict[str, dict], notes: list[str]) -> str:
    """`notes` collects what rows were measured on; a row names its place there."""
    rows = [row for row in ROWS if row.part == table.part and row.key in results]
    shown = {row: cells(table, results[row.key]["figures"]) for row in rows}
    sides = list(dict.fromkeys(side for found in shown.values() for side in found))
    if not sides:
        return ""
    lines = [["", "words", "rounds", *sides, "measured on"], ["---"] * (len(sides) + 4)]
    for row, found in shown.items():
        if found:
            entry = results[row.key]
            in_order = [found.get(side, "") for side in sides]
            words, rounds = words_read(entry["figures"]), str(entry["rounds"])
            lines.append([row.name, words, rounds, *in_order, note(entry, notes)])
    drawn = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"## {table.title}\n\n{table.about}\n\n{drawn}\n"


def words_read(figures: dict) -> str:
    first = next(iter(figures.values()))
    return f"{first['words'][0]:,.0f}" if "words" in first else ""


def note(entry: dict, notes: list[str]) -> str:
    conditions = {name: said for name, said in entry["conditions"].items() if name != "options"}
    text = "; ".join([*(f"{name}: {said}" for name, said in conditions.items()), entry["date"]])
    if text not in notes:
        notes.append(text)
    return f"[{notes.index(text) + 1}]"


def write_tables(results: dict[str, dict], path: Path) -> None:
    notes: list[str] = []
    parts = [part for table in TABLES if (part := markdown(table, results, notes))]
    numbered = [f"{place}. {text}" for place, text in enumerate(notes, start=1)]
    head = (
        "# Figures\n\nWritten by `make benchmark`; `benchmarks/README.md` says what is measured, "
        "and how. Figures are medians of the rounds, with the lowest and the highest round in "
        "brackets. In bold is how many times as much the first column is.\n"
    )
    write_text(path, "\n".join([head, *parts, "## Measured on", "", *numbered]) + "\n")
