"""Writes the lists of published models in which-model.md: `python docs/which_model.py`."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from elmo_hf.hub.cards import code, plain, table
from elmo_hf.hub.registry import TABLE, PublishedModel, Registry, read_table

PAGE = Path(__file__).with_name("which-model.md")
# what is between them is made here; all else on the page is written by hand
LISTS = re.compile("(?<=<!-- lists -->\n).*(?=<!-- end of the lists -->)", re.S)
# a family of more models is a list of names
LONG = 20


def lists(registry: Registry) -> str:
    return "".join(section(registry, family) for family in registry.families)


def section(registry: Registry, family: str) -> str:
    """A heading, what all models of a family share, and the models."""
    models = registry.select(family=family)
    first = models[0]
    facts = [f"[Page]({first.page})", f"licence {plain(first.licence)}", f"cite {cite(first)}"]
    text = f"\n### {registry.families[family]}\n\n{'; '.join(facts)}. {common_notes(models)}\n\n"
    if len(models) > LONG:
        return text + ", ".join(f"{code(m.name)} {plain(m.title)}" for m in models) + "\n"
    head = ["name", "model", "cells / projection", "format", "splitter", "notes"]
    return text + table(head, [row(model, models) for model in models]) + "\n"


def row(model: PublishedModel, models: list[PublishedModel]) -> list[str]:
    notes = [model.about] if model.about else []
    notes += [model.notes] if model.notes != usual_notes(models) else []
    if model.licence != models[0].licence:
        notes.append(f"licence {model.licence}")
    shown = plain("; ".join(note.rstrip(".") for note in notes))
    name, splitter = code(model.name), code(model.splitter)
    return [name, plain(model.title), model.shape, model.format, splitter, shown]


def usual_notes(models: list[PublishedModel]) -> str:
    """What the table says of the family as a whole: the notes that most of its models have."""
    notes = [model.notes for model in models]
    return max(notes, key=notes.count)


def common_notes(models: list[PublishedModel]) -> str:
    return plain(usual_notes(models))


def cite(model: PublishedModel) -> str:
    """Author and year; the whole citation is in `elmo-hf models --json` and in the model card."""
    return plain(re.split(r"(?<=\d{4}),", model.citation)[0].partition(", http")[0])


def page() -> str:
    """The page as it should be."""
    made = lists(read_table(TABLE)).lstrip("\n")
    return LISTS.sub(lambda _: f"\n{made}\n", PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
