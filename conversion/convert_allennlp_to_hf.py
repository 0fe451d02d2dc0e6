"""Convert a published ELMo, of any format, to a Hugging Face folder.

    python conversion/convert_allennlp_to_hf.py \
        --options-file options.json --weight-file weights.hdf5 --output-dir my-elmo

The order is: read, map, load strictly, compare with the numpy reference, and only then write. The
weights keep the licence they were published under; the model card names the files and their hashes.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from elmo_hf import ElmoModel
from elmo_hf.conversion.adagrad import keep_accumulators
from elmo_hf.conversion.alignment import add_alignment
from elmo_hf.conversion.building import load_converted, whole_model
from elmo_hf.conversion.formats import Weights
from elmo_hf.conversion.source import open_source
from elmo_hf.hub.cards import converted_card
from elmo_hf.hub.download import Origin, download_model
from elmo_hf.hub.loading import make_tokenizer
from elmo_hf.hub.registry import find_published, refuse_unconvertible
from elmo_hf.modeling_elmo import ElmoPreTrainedModel
from elmo_hf.system.checksums import hash_file
from elmo_hf.system.command import AllowHttp, Offline, Overwrite, single_command
from elmo_hf.system.untrusted import printable
from elmo_hf.system.writing import new_folder, refuse_existing_folder
from elmo_hf.text import splitter_name
from elmo_hf.text_splitting import SPLITTERS, WHITESPACE

LaterSplit = Annotated[
    str | None,
    typer.Option(
        "--split",
        metavar="NAME",
        help=f"How the model's tokenizer will split raw text: {', '.join(SPLITTERS)}. The default "
        "is whitespace, or what is known of a published model.",
    ),
]

OptionsFile = Annotated[
    Path | None, typer.Option("--options-file", help="The model's options.json.")
]
WeightFile = Annotated[
    Path | None,
    typer.Option("--weight-file", help="The model's hdf5 weights, or a checkpoint's *.index."),
]
SoftmaxFile = Annotated[
    Path | None,
    typer.Option("--softmax-weight-file", help="The softmax, if it is in a separate file."),
]
VocabularyFile = Annotated[
    Path | None,
    typer.Option(
        "--vocab-file", help="The words of the softmax, or of a word-level model, one per line."
    ),
]
Alignment = Annotated[
    Path | None,
    typer.Option("--alignment", help="A matrix for one layer, as in de_best_mapping.pth."),
]
AlignmentLayer = Annotated[
    int, typer.Option("--alignment-layer", help="The layer that the matrix is for.")
]


def convert(
    source: Annotated[
        str | None,
        typer.Argument(
            help="A published model by its name in `elmo-hf models`, or a folder, zip, tar or Hub "
            "repository with the files of a model."
        ),
    ] = None,
    options_file: OptionsFile = None,
    weight_file: WeightFile = None,
    softmax_weight_file: SoftmaxFile = None,
    vocab_file: VocabularyFile = None,
    alignment: Alignment = None,
    alignment_layer: AlignmentLayer = 1,
    output_dir: Annotated[
        Path, typer.Option("--output-dir", help="The folder to write; `from_pretrained` loads it.")
    ] = Path("elmo"),
    split: LaterSplit = None,
    overwrite: Overwrite = False,
    allow_http: AllowHttp = False,
    offline: Offline = False,
) -> None:
    """
    Convert published weights to a Hugging Face folder.

    They are checked against a numpy implementation first. With a softmax, found or named, the
    folder holds an `ElmoForPreTraining`, which loads as an `ElmoModel` too; without one it holds an
    `ElmoModel`, or the tagger of an archive.
    """
    if split is not None:
        splitter_name(split)
    refuse_existing_folder(output_dir, overwrite)
    published = find_published(source)
    if published is not None:
        refuse_unconvertible(published)
    origin = download_model(published, None, allow_http, offline) if published else None
    named = {
        "options_file": options_file,
        "weight_file": weight_file,
        "softmax_weight_file": softmax_weight_file,
        "vocab_file": vocab_file,
    }
    done = write_converted(
        source, named, output_dir, overwrite, split, origin, alignment, alignment_layer, offline
    )
    for note in done.notes:
        print(printable(note), file=sys.stderr)
    parameters = f"{done.model.num_parameters():,} parameters"
    print(f"{parameters}, largest relative error {done.error:.1e}, saved in {output_dir}")


class Converted(NamedTuple):
    """What was written: the model, its largest error, and what is to be said of its origin."""

    model: ElmoPreTrainedModel
    error: float
    notes: list[str]


def write_converted(
    source: str | None,
    named: Mapping[str, Path | None],
    output_dir: Path,
    overwrite: bool = False,
    split: str | None = None,
    origin: Origin | None = None,
    alignment: Path | None = None,
    alignment_layer: int = 1,
    offline: bool = False,
) -> Converted:
    """Converts a source, or the downloaded files of a published model, to a folder."""
    if origin is not None:
        source, split = str(origin.source), split or origin.model.splitter
        alignment = alignment or origin.alignment
    with open_source(source, offline, **named) as weights:
        bilm, error = load_converted(weights)
        if origin is not None:
            bilm.config.provenance = {
                **(bilm.config.provenance or {}),
                "published_model": origin.model.name,
            }
        if alignment is not None:
            bilm = align(bilm, alignment, alignment_layer, weights)
        model = whole_model(bilm, weights)
        with new_folder(output_dir, overwrite) as folder:
            notes = [*weights.notes, *keep_accumulators(folder, model, weights)]
            card = converted_card(bilm, error, notes, model, origin)
            save_converted(folder, model, split or WHITESPACE, card)
    return Converted(model, error, notes)


def align(bilm: ElmoModel, file: Path, layer: int, weights: Weights) -> ElmoModel:
    """The biLM with a map for one layer; a task's mixes and head are made for the biLM alone."""
    if weights.head is not None or weights.mixes:
        raise ValueError("--alignment is for a biLM alone, but these weights have a task's mixes.")
    aligned = add_alignment(bilm, file, layer)
    origin = {"alignment_file": file.name, "alignment_sha256": hash_file(file)}
    aligned.config.provenance = {**(bilm.config.provenance or {}), **origin}
    return aligned


def save_converted(folder: Path, model: ElmoPreTrainedModel, split: str, card: str) -> None:
    model.save_pretrained(folder)
    make_tokenizer(model, split).save_pretrained(folder)
    (folder / "README.md").write_text(card, encoding="utf-8")


if __name__ == "__main__":
    single_command(convert)()
