# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""How good a tagger is: its tags of words that are given, compared with gold tags."""

from pathlib import Path

from tqdm.auto import tqdm

from elmo_hf.tagging.figures import Figures, count_tags, measure
from elmo_hf.tagging.splits import load_tagged
from elmo_hf.tagging.tagger import ElmoTagger


def evaluate_tagger(
    tagger: ElmoTagger,
    gold: Path,
    train: Path | None = None,
    task: str = "pos",
    token_column: str | None = None,
    tag_column: str | None = None,
) -> Figures:
    """
    The figures of the task's metric on a tagged file, in any format of `read_tagged`. Words that
    are not in `train`, or have several tags there, are also counted on their own.
    """
    columns = (task, token_column, tag_column)
    dataset = load_tagged(gold, *columns)
    counts = None if train is None else count_tags(load_tagged(train, *columns))
    sentences = (row["tokens"] for row in dataset)
    tagged = tqdm(tagger.tag(sentences), total=len(dataset), unit="sentence")
    return measure(task, dataset, [sentence.tags for sentence in tagged], counts)
