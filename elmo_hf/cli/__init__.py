"""The command `elmo-hf`. Each subcommand is a plain function; its signature is its `--help`."""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from torch import distributed
from torch.nn import Module
from tqdm.auto import tqdm
from transformers.utils import logging

from elmo_hf._version import __version__
from elmo_hf.conversion.convert_allennlp_to_hf import convert
from elmo_hf.conversion.export_hf_to_allennlp import export
from elmo_hf.embedding.embedder import ElmoEmbedder
from elmo_hf.embedding.job import (
    EmbeddingJob,
    Line,
    dataset_lines,
    file_lines,
    load_column,
    standard_input,
)
from elmo_hf.hub.bundled import BUNDLED, find_model, load_elmo
from elmo_hf.hub.publish import publish
from elmo_hf.pretraining.corpus import Corpus
from elmo_hf.system.command import NORMALIZE
from elmo_hf.system.memory import keep_freed_memory
from elmo_hf.tagging.tagger import ElmoTagger
from elmo_hf.text.files import find_files, size_of
from elmo_hf.word_vocabulary import WordVocabulary

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")]

app = typer.Typer(
    name="elmo-hf",
    no_args_is_help=True,
    add_completion=False,
    context_settings=NORMALIZE,
    help="ELMo as a Hugging Face model: convert published weights, embed and tag text, take "
    "weights back. A small English model is inside; its name is carried.",
)


def print_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=print_version, is_eager=True, help="Print the version and end."
        ),
    ] = False,
) -> None:
    """What comes before a command; the app's own help stands for it."""


def info(
    model: Annotated[str, typer.Argument(help="An ELMo folder or Hub name.")] = BUNDLED,
) -> None:
    """Print a model's sizes, layers, parameters and provenance."""
    loaded = load_elmo(model)
    config = loaded.config
    parts: dict[str, Module] = {"token encoder": loaded.token_encoder}
    parts |= {f"biLSTM layer {number + 1}": layer for number, layer in enumerate(loaded.layers)}
    filters = ", ".join(f"{count} of {width}" for width, count in config.char_filters)
    facts = {
        "model": model,
        "class": ", ".join(config.architectures or ["unknown"]),
        "hidden size": f"{config.hidden_size} (2 x {config.projection_size})",
        "cell size": config.cell_size,
        "layers": f"{config.num_hidden_layers} biLSTM + token layer",
        "character filters": f"{filters} ({config.num_filters} in all)",
        "highways": config.num_highway_layers,
        "characters per word": config.max_characters_per_token,
        "clips": f"cell {config.cell_clip}, projection {config.projection_clip}",
        **{name: f"{count_parameters(part):,} parameters" for name, part in parts.items()},
        "all": f"{count_parameters(loaded):,} parameters",
        **(config.provenance or {"provenance": "not recorded"}),
    }
    width = max(map(len, facts))
    for name, fact in facts.items():
        print(f"{name.replace('_', ' '):<{width}}  {fact}")


def vocab(
    files: Annotated[
        list[str], typer.Argument(help="Text, one tokenised sentence a line; .gz is read too.")
    ],
    output_file: Annotated[
        Path, typer.Option("--output_file", help="The vocabulary file to write.")
    ] = Path("vocab.txt"),
    max_size: Annotated[
        int | None, typer.Option("--max_size", min=3, help="Keep at most so many words.")
    ] = None,
    min_count: Annotated[
        int, typer.Option("--min_count", min=1, help="Keep words seen at least so often.")
    ] = 1,
    overwrite: Overwrite = False,
) -> None:
    """Count the words of a text into a vocabulary for pretraining, most frequent first."""
    refuse_existing(output_file, overwrite)
    paths = [path for pattern in files for path in find_files(pattern)]
    counts: Counter[str] = Counter()
    with tqdm(total=size_of(paths), desc="count", unit="B", unit_scale=True) as bar:
        corpus = Corpus(paths, counts, bar.update)
    vocabulary = WordVocabulary.of_counts(counts, max_size, min_count)
    vocabulary.save(output_file)
    known = sum(counts[word] for word in vocabulary.words)
    print(
        f"{len(vocabulary):,} words, {known / corpus.num_words:.2%} of the text's "
        f"{corpus.num_words:,}, saved in {output_file}"
    )


def export_onnx(
    model: Annotated[str, typer.Argument(help="An ELMo folder or Hub name.")] = BUNDLED,
    output_file: Annotated[
        Path, typer.Option("--output_file", help="The ONNX file to write.")
    ] = Path("elmo.onnx"),
    overwrite: Overwrite = False,
) -> None:
    """Write a model as ONNX, with its head if it has one, and compare it in onnxruntime."""
    from elmo_hf.export.onnx import write_model

    refuse_existing(output_file, overwrite)
    print(write_model(model, output_file))


def push(
    folder: Annotated[str, typer.Argument(help="A model folder.")],
    repo: Annotated[str, typer.Argument(help="The Hub repository, as in me/elmo-pos.")],
    private: Annotated[bool, typer.Option("--private", help="Only for you.")] = False,
) -> None:
    """Put a model on the Hub: weights, tokenizer, card, and code for those without elmo_hf."""
    print(f"pushed to {publish(find_model(folder), repo, private)}")


def tag(
    file: Annotated[
        Path | None,
        typer.Argument(help="Text, one tokenised sentence a line; by default standard input."),
    ] = None,
    model: Annotated[
        str, typer.Option("--model", help="A tagger: a folder or a Hub name.")
    ] = BUNDLED,
    style: Annotated[
        str | None,
        typer.Option("--format", help="conllu or colour; by default colour in a terminal."),
    ] = None,
) -> None:
    """Tag text: CoNLL-U, or a coloured line a sentence."""
    style = style or ("colour" if sys.stdout.isatty() else "conllu")
    if style not in ("conllu", "colour"):
        raise ValueError(f"--format is {style!r} but must be conllu or colour.")
    gpu = cuda_device()
    tagger = ElmoTagger(model, f"cuda:{gpu}" if gpu >= 0 else None)
    labels = sorted(tagger.labels.values())
    # bright ones of the terminal's 256 colours, as far from one another as their number allows
    colours = {tag: 17 + 211 * number // len(labels) for number, tag in enumerate(labels)}
    for sentence in tagger.tag(read_words(file)):
        pairs = list(zip(sentence.words, sentence.tags, strict=True))
        if style == "colour":
            print(" ".join(f"{word}\033[38;5;{colours[tag]}m/{tag}\033[0m" for word, tag in pairs))
            continue
        for number, (word, tag) in enumerate(pairs, start=1):
            print(number, word, "_", tag, *"______", sep="\t")
        print()


def embed(
    output: Annotated[
        Path, typer.Option("--output", help="The file to write: .hdf5, .parquet, .arrow or .npy.")
    ],
    source: Annotated[
        str,
        typer.Option(
            "--input",
            help="Text, one tokenised sentence a line; .gz and 'texts/*.txt' too; - is "
            "standard input.",
        ),
    ] = "-",
    model: Annotated[str, typer.Option("--model", help="An ELMo folder or Hub name.")] = BUNDLED,
    layers: Annotated[
        str, typer.Option("--layers", help="all, mix, top, mean, or the number of a layer.")
    ] = "all",
    pooling: Annotated[
        str, typer.Option("--pooling", help="none: a vector a word; mean or max: one a sentence.")
    ] = "none",
    dtype: Annotated[str, typer.Option("--dtype", help="float32 or float16.")] = "float32",
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="Instead of text: a dataset's name or folder.")
    ] = None,
    config: Annotated[
        str | None, typer.Option("--dataset-config", help="Which configuration of it.")
    ] = None,
    split: Annotated[str, typer.Option("--split", help="Which split of it.")] = "train",
    column: Annotated[str, typer.Option("--column", help="Its column of sentences.")] = "text",
    on_error: Annotated[
        str,
        typer.Option(
            "--on-error", help="A line that cannot be read: stop, or skip, as if it were empty."
        ),
    ] = "stop",
    overwrite: Overwrite = False,
) -> None:
    """
    Turn text into vectors. Killed, the same command goes on where it stood; under `accelerate
    launch -m elmo_hf embed` several processes or machines share the work.
    """
    if on_error not in ("stop", "skip"):
        raise ValueError(f"--on-error is {on_error!r} but must be stop or skip.")
    if dataset is not None and source != "-":
        raise ValueError("Give --input or --dataset, not both.")
    keep_freed_memory()
    with process_group() as (rank, processes), ExitStack() as held:
        embedder = ElmoEmbedder(model, cuda_device=cuda_device())
        job = EmbeddingJob(embedder, output, layers, pooling, dtype, on_error=on_error)
        lines, total, unit = open_corpus(
            source, dataset, config, split, column, on_error, processes
        )

        def begin() -> bool:
            """Whether there is anything left to do."""
            held.enter_context(job.alone())
            if output.exists() and not overwrite:
                if not job.is_finished(lines):
                    refuse_existing(output, overwrite)
                job.clean()
                print(f"saved in {output}")
                return False
            return True

        if not by_the_first(rank, processes, begin):
            return
        with tqdm(total=total, unit=unit, unit_scale=True, disable=rank > 0) as bar:
            started, words = time.perf_counter(), 0

            def progress(chunk: list[Line], is_new: bool) -> None:
                nonlocal words
                words += sum(len(line.words) for line in chunk) if is_new else 0
                speed = words / (time.perf_counter() - started)
                bar.set_postfix(words_per_s=f"{speed:.0f}", refresh=False)
                bar.update(sum(line.size for line in chunk))

            paths = job.run(lines, rank, processes, progress)
        wait_for_all(processes)
        if rank == 0:
            if not paths:
                raise ValueError(f"There is no line in {dataset or source!r}.")
            job.finish(paths)
            print(f"saved in {output}")


@contextmanager
def process_group() -> Iterator[tuple[int, int]]:
    """This process's number, and how many accelerate or torchrun started."""
    processes = int(os.environ.get("WORLD_SIZE", 1))
    if processes == 1:
        yield 0, 1
        return
    # one may wait for the others as long as they work
    distributed.init_process_group("gloo", timeout=timedelta(days=365))
    try:
        yield distributed.get_rank(), processes
    finally:
        distributed.destroy_process_group()


def by_the_first(rank: int, processes: int, work: Callable[[], Any]) -> Any:
    """What the first process finds, or why it cannot go on, for all of them."""
    found = None
    if rank == 0:
        try:
            found = work()
        except (ValueError, OSError) as error:
            found = error
    if processes > 1:
        box = [found]
        distributed.broadcast_object_list(box)
        [found] = box
    if isinstance(found, Exception):
        raise found
    return found


def wait_for_all(processes: int) -> None:
    if processes > 1:
        distributed.barrier()


def cuda_device() -> int:
    """The GPU of this process, or -1."""
    return int(os.environ.get("LOCAL_RANK", 0)) if torch.cuda.is_available() else -1


def open_corpus(
    source: str,
    dataset: str | None,
    config: str | None,
    split: str,
    column: str,
    on_error: str,
    processes: int,
) -> tuple[Iterator[Line], int | None, str]:
    """The lines of whatever was named, their size if it is known, and its unit."""
    if dataset is None:
        return *open_lines(source, on_error, processes), "B"
    rows = load_column(dataset, config, split, column)
    return dataset_lines(rows, on_error), len(rows), "line"


def open_lines(source: str, on_error: str, processes: int = 1) -> tuple[Iterator[Line], int | None]:
    """The lines of files or of standard input, and their size if it is known."""
    files = [] if source == "-" else find_files(source)
    if processes > 1 and not (files and all(file.is_file() for file in files)):
        raise ValueError("Several processes cannot share standard input or a pipe; name a file.")
    if source == "-":
        return standard_input(on_error), None
    # a pipe has no size
    return file_lines(files, on_error), size_of(files) or None


def read_words(file: Path | None) -> Iterator[list[str]]:
    """The words of each line of a file or of standard input that has any, with a progress bar."""
    lines, total = open_lines("-" if file is None else str(file), on_error="stop")
    # what is typed needs no bar
    typed = file is None and sys.stdin.isatty()
    with tqdm(total=total, unit="B", unit_scale=True, disable=typed) as bar:
        for line in lines:
            bar.update(line.size)
            if line.words:
                yield line.words


def refuse_existing(file: Path, overwrite: bool) -> None:
    if file.exists() and not overwrite:
        raise FileExistsError(f"{str(file)!r} exists; give --overwrite to replace it.")


def count_parameters(module: Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def run(command: Callable) -> None:
    """Run a program: what a user can mend is said in one sentence, not in a traceback."""
    try:
        command()
    except (ValueError, OSError, ImportError, MemoryError) as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(1)


for command in (convert, embed, export, export_onnx, info, push, tag, vocab):
    app.command()(command)


def main() -> None:
    # its bars would break ours
    logging.disable_progress_bar()
    run(app)
