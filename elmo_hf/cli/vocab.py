# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`elmo-hf vocab`."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from tqdm.auto import tqdm

from elmo_hf.cli.options import (
    InputArguments,
    InputOptions,
    Overwrite,
    Paragraphs,
    Split,
    all_inputs,
)
from elmo_hf.pretraining.corpus import Corpus
from elmo_hf.system.writing import new_file, refuse_existing_file
from elmo_hf.text import check_split, find_files, raw_files, size_of, split_documents
from elmo_hf.text.split_option import NONE
from elmo_hf.word_vocabulary import WordVocabulary


def vocab(
    text: InputArguments = None,
    input_option: InputOptions = None,
    output: Annotated[Path, typer.Option("--output", help="The vocabulary file to write.")] = Path(
        "vocab.txt"
    ),
    max_size: Annotated[
        int | None, typer.Option("--max-size", min=3, help="Keep at most this many words.")
    ] = None,
    min_count: Annotated[
        int, typer.Option("--min-count", min=1, help="Keep words that occur at least this often.")
    ] = 1,
    split: Split = "none",
    paragraphs: Paragraphs = "line",
    overwrite: Overwrite = False,
) -> None:
    """
    Count the words of a text and write a vocabulary for pretraining, most frequent words first.
    Raw text is split on the way.
    """
    check_split(split, paragraphs)
    refuse_existing_file(output, overwrite)
    patterns = all_inputs(text, input_option)
    paths = [path for pattern in patterns for path in find_files(pattern)]
    with tqdm(total=size_of(paths), desc="count", unit="B", unit_scale=True) as bar:
        if split == NONE:
            counts = count_words(paths, bar)
        else:
            counts = count_raw_words(paths, split, paragraphs, bar)
    vocabulary = WordVocabulary.of_counts(counts, max_size, min_count)
    with new_file(output, overwrite) as building:
        vocabulary.save(building)
    known = sum(counts[word] for word in vocabulary.words)
    print(
        f"{len(vocabulary):,} words, {known / counts.total():.2%} of the text's "
        f"{counts.total():,}, saved in {output}"
    )


def count_words(paths: Sequence[Path], bar: tqdm) -> Counter[str]:
    counts: Counter[str] = Counter()
    Corpus(paths, counts, bar.update)
    return counts


def count_raw_words(paths: Sequence[Path], split: str, paragraphs: str, bar: tqdm) -> Counter[str]:
    text, counts = raw_files(paths), Counter[str]()
    for words in split_documents(
        text.open(), split, paragraphs, lambda line: bar.update(line.size)
    ):
        counts.update(words)
    if not counts:
        raise ValueError(f"There is no sentence in {text.name}.")
    return counts
