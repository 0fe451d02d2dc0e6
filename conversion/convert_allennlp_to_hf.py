"""Convert a published ELMo (hdf5, TensorFlow checkpoint or TF-Hub) to a Hugging Face folder.

    python conversion/convert_allennlp_to_hf.py \
        --options-file options.json --weight-file weights.hdf5 --output-dir my-elmo

The order is: read, map, load strictly, compare with the numpy reference, and only then write. The
weights keep the licence they were published under; the model card names the files and their hashes.
"""

import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
import typer
from huggingface_hub.errors import StrictDataclassError
from torch import nn

import elmo_hf
from elmo_hf import ElmoConfig, ElmoForPreTraining, ElmoModel
from elmo_hf.conversion.adagrad import keep_accumulators
from elmo_hf.conversion.alignment import add_alignment
from elmo_hf.conversion.formats import Mix, Weights
from elmo_hf.conversion.heads import add_head, mix_parameters
from elmo_hf.conversion.key_map import BILM, SOFTMAX, datasets_of, rule_for_key, rule_for_name
from elmo_hf.conversion.options_map import NUM_CHARACTERS, check_options, config_from_options
from elmo_hf.conversion.source import open_source
from elmo_hf.conversion.verification import TOLERANCE, largest_error, reference_layers
from elmo_hf.conversion.weights_file import read_array
from elmo_hf.hub.cards import converted_card
from elmo_hf.hub.download import Origin, download_model
from elmo_hf.hub.loading import make_tokenizer
from elmo_hf.hub.registry import find_published
from elmo_hf.modeling_elmo import ElmoPreTrainedModel
from elmo_hf.system.command import AllowHttp, Offline, Overwrite, single_command
from elmo_hf.system.untrusted import printable
from elmo_hf.system.writing import new_folder, refuse_existing_folder
from elmo_hf.text import splitter_name
from elmo_hf.text_splitting import SPLITTERS, WHITESPACE
from elmo_hf.word_vocabulary import WordVocabulary

LaterSplit = Annotated[
    str | None,
    typer.Option(
        "--split",
        metavar="NAME",
        help=f"How the model's tokenizer will split raw text: {', '.join(SPLITTERS)}. The default "
        "is whitespace, or what is known of a published model.",
    ),
]

SoftmaxFile = Annotated[
    Path | None,
    typer.Option("--softmax-weight-file", help="The softmax, if it is in a separate file."),
]
VocabularyFile = Annotated[
    Path | None,
    typer.Option("--vocab-file", help="The words of the softmax, one per line."),
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
    options_file: Annotated[
        Path | None, typer.Option("--options-file", help="The model's options.json.")
    ] = None,
    weight_file: Annotated[
        Path | None,
        typer.Option("--weight-file", help="The model's hdf5 weights, or a checkpoint's *.index."),
    ] = None,
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
    origin = download_model(published, None, allow_http, offline) if published else None
    named = {
        "options_file": options_file,
        "weight_file": weight_file,
        "softmax_weight_file": softmax_weight_file,
        "vocab_file": vocab_file,
    }
    done = write_converted(
        source, named, output_dir, overwrite, split, origin, alignment, alignment_layer
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
) -> Converted:
    """Converts a source, or the downloaded files of a published model, to a folder."""
    if origin is not None:
        source, split = str(origin.source), split or origin.model.splitter
        alignment = alignment or origin.alignment
    with open_source(source, **named) as weights:
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


def whole_model(bilm: ElmoModel, weights: Weights) -> ElmoPreTrainedModel:
    """The biLM with what was published with it: a tagger's head, a softmax or nothing."""
    if weights.head is not None:
        return add_head(bilm, weights.head)
    return add_softmax(bilm, weights) or bilm


def align(bilm: ElmoModel, file: Path, layer: int, weights: Weights) -> ElmoModel:
    """The biLM with a map for one layer; a task's mixes and head are made for the biLM alone."""
    if weights.head is not None or weights.mixes:
        raise ValueError("--alignment is for the weights of a biLM, but this is an archive.")
    aligned = add_alignment(bilm, file, layer)
    origin = {"alignment_file": file.name, "alignment_sha256": sha256(file)}
    aligned.config.provenance = {**(bilm.config.provenance or {}), **origin}
    return aligned


def save_converted(folder: Path, model: ElmoPreTrainedModel, split: str, card: str) -> None:
    model.save_pretrained(folder)
    make_tokenizer(model.config, split).save_pretrained(folder)
    (folder / "README.md").write_text(card, encoding="utf-8")


def load_converted(weights: Weights) -> tuple[ElmoModel, float]:
    """The biLM of some weights, and its largest relative error against the reference."""
    options, arrays = weights.options, weights.arrays
    mixes = max(1, len(weights.mixes))
    config = make_config(options, arrays, **weights.settings, num_output_representations=mixes)
    with torch.device("meta"):
        bilm = ElmoModel(config, add_scalar_mix=False)
    check_datasets(BILM, bilm, arrays)
    config.provenance = provenance(weights)
    # before the weights are loaded, so that the two never take memory at the same time
    expected = reference_layers(options, arrays)
    model = load_model(config, arrays, weights.mixes)
    error = largest_error(model, expected)
    if not error <= TOLERANCE:
        raise ValueError(
            f"The converted model differs from the reference by {error:.1e}, where {TOLERANCE:.0e} "
            "is allowed."
        )
    return model, error


def make_config(options: dict, datasets: Mapping[str, Any], **more: Any) -> ElmoConfig:
    """The configuration the options ask for, if the weights agree; `more` are other fields."""
    keywords = config_from_options(options)
    check_options(keywords, {key: dataset.shape for key, dataset in datasets.items()})
    keywords["use_char_projection"] = "CNN_proj/W_proj" in datasets
    keywords["use_cell_projection"] = any(key.endswith("/W_P_0") for key in datasets)
    try:
        return ElmoConfig(**keywords, **more)
    except StrictDataclassError as error:
        # it wraps the sentence that names the value
        raise ValueError(f"The options are not usable: {error.__cause__ or error}") from error


def check_datasets(part: str, module: nn.Module, datasets: Mapping[str, Any]) -> None:
    """Refuse datasets that are unknown, missing or of a wrong shape for a module, by name."""
    expected = {}
    for name, parameter in module.state_dict().items():
        rule = rule_for_name(part + name)
        # both halves of a kernel have the same shape
        halves = [np.broadcast_to(np.float32(0), tuple(parameter.shape))] * len(rule.names)
        expected[rule.key] = rule.operation.to_array(*halves).shape
    for key, dataset in datasets_of(part, datasets).items():
        if key not in expected:
            raise ValueError(f"The dataset {key!r} is not part of a model with these options.")
        shapes = {expected[key]}
        if key == "char_embed":
            # some files already hold the row of the padding word
            shapes.add((NUM_CHARACTERS, *expected[key][1:]))
        if dataset.shape not in shapes:
            raise ValueError(
                f"The dataset {key!r} has shape {dataset.shape} where the options ask for "
                f"{expected[key]}."
            )
    missing = sorted(expected.keys() - datasets.keys())
    if missing:
        raise ValueError(f"The weights lack the datasets {', '.join(missing)}.")


def read_parameters(part: str, datasets: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The parameters of the biLM or the softmax, under their names in it."""
    tensors = {}
    for key, dataset in datasets_of(part, datasets).items():
        rule = rule_for_key(key)
        arrays = rule.operation.to_parameters(read_array(key, dataset))
        for name, array in zip(rule.names, arrays, strict=True):
            tensors[name.removeprefix(part)] = torch.from_numpy(np.ascontiguousarray(array))
    return tensors


def load_model(
    config: ElmoConfig, datasets: Mapping[str, Any], trained: Sequence[Mix] = ()
) -> ElmoModel:
    """A biLM with the weights of checked datasets; its mixes weight all layers alike if new."""
    with torch.device("meta"):
        model = ElmoModel(config)
    for name, parameter in model.mixes.to_empty(device="cpu").named_parameters():
        nn.init.constant_(parameter, 1.0 if name.endswith(".gamma") else 0.0)
    mixes = {f"mixes.{name}": part for name, part in model.mixes.state_dict().items()}
    mixes |= mix_parameters(trained, config.num_hidden_layers + 1)
    model.load_state_dict(read_parameters(BILM, datasets) | mixes, strict=True, assign=True)
    return model.eval()


def add_softmax(model: ElmoModel, weights: Weights) -> ElmoForPreTraining | None:
    """The biLM with its softmax; None without one."""
    vocabulary = None if weights.vocab_file is None else WordVocabulary.load(weights.vocab_file)
    softmax = weights.softmax
    if not softmax:
        return None
    # a dataset without a length, or of another one, is refused below
    count = max([len(part) for part in softmax.values() if part.shape], default=1)
    if vocabulary is not None and len(vocabulary) != count:
        raise ValueError(
            f"The vocabulary has {len(vocabulary):,} words but the softmax has {count:,}."
        )
    words = {"lm_vocab_size": count} if vocabulary is None else vocabulary.config_fields()
    with torch.device("meta"):
        language_model = ElmoForPreTraining(
            ElmoConfig.from_dict({**model.config.to_dict(), **words})
        )
    check_datasets(SOFTMAX, language_model.softmax, softmax)
    parameters = read_parameters(SOFTMAX, softmax)
    language_model.softmax.load_state_dict(parameters, strict=True, assign=True)
    # without the mixes, which only a task needs
    bilm = model.state_dict()
    shared = {name: bilm[name] for name in language_model.elmo.state_dict()}
    language_model.elmo.load_state_dict(shared, strict=True, assign=True)
    language_model.vocabulary = vocabulary
    return language_model.eval()


def provenance(weights: Weights) -> dict[str, str]:
    """Names and hashes of the files a model came from."""
    found = {"converted_by": f"elmo_hf {elmo_hf.__version__}"}
    for kind, file in weights.files.items():
        found[kind] = file.name
        found[f"{kind.removesuffix('_file')}_sha256"] = sha256(file)
    return found


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    single_command(convert)()
