"""Convert a published ELMo (bilm-tf / AllenNLP hdf5 and options.json) to a Hugging Face folder.

    python conversion/convert_allennlp_to_hf.py \
        --options_file options.json --weight_file weights.hdf5 --output_dir my-elmo

The order is: read, map, load strictly, compare with the numpy reference, and only then write. The
weights keep the licence they were published under; the model card names the files and their hashes.
"""

import hashlib
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer

import elmo_hf
from elmo_hf import ElmoConfig, ElmoForPreTraining, ElmoModel, ElmoTokenizer
from elmo_hf.conversion import reference_elmo
from elmo_hf.conversion.key_map import rule_for_key, rule_for_name
from elmo_hf.conversion.options_map import check_options, config_from_options
from elmo_hf.conversion.source import Named, Source, open_source, read_options
from elmo_hf.conversion.weights_file import open_weights, read_array
from elmo_hf.hub.cards import model_card
from elmo_hf.system.writing import new_folder, refuse_existing
from elmo_hf.word_vocabulary import WordVocabulary

# max|a - b| / max|b| over a layer, float32 against the reference's float64
TOLERANCE = 1e-4
PROBE = [["The", "quick", "brown", "fox", "jumps", "."], ["naïve", "Straße", "x" * 60]]


def convert(
    source: Annotated[
        str | None,
        typer.Argument(
            help="A folder, an NLPL zip, or a Hub repository with options.json and *.hdf5."
        ),
    ] = None,
    options_file: Annotated[
        Path | None, typer.Option("--options_file", help="The model's options.json.")
    ] = None,
    weight_file: Annotated[
        Path | None, typer.Option("--weight_file", help="The model's hdf5 weights.")
    ] = None,
    softmax_weight_file: Annotated[
        Path | None,
        typer.Option(
            "--softmax_weight_file",
            help="The language model's softmax, if it is in a file of its own.",
        ),
    ] = None,
    vocab_file: Annotated[
        Path | None,
        typer.Option("--vocab_file", help="The words of the softmax, one a line."),
    ] = None,
    output_dir: Annotated[
        Path, typer.Option("--output_dir", help="The folder to make; `from_pretrained` loads it.")
    ] = Path("elmo"),
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the output folder if it exists.")
    ] = False,
) -> None:
    """
    Convert AllenNLP / bilm-tf weights to a Hugging Face folder, checked against numpy first.

    With a softmax, found or named, the folder holds an `ElmoForPreTraining`, which loads as an
    `ElmoModel` too; without one it holds an `ElmoModel`.
    """
    refuse_existing(output_dir, overwrite)
    named = Named(options_file, weight_file, softmax_weight_file, vocab_file)
    with open_source(source, named) as files:
        model, error = load_converted(files)
        language_model = load_language_model(model, files)
    with new_folder(output_dir, overwrite) as folder:
        (language_model or model).save_pretrained(folder)
        tokenizer = ElmoTokenizer(max_characters_per_token=model.config.max_characters_per_token)
        tokenizer.save_pretrained(folder)
        (folder / "README.md").write_text(model_card(model, error), encoding="utf-8")
    parameters = (language_model or model).num_parameters()
    print(f"{parameters:,} parameters, largest relative error {error:.1e}, saved in {output_dir}")


def load_converted(files: Source) -> tuple[ElmoModel, float]:
    """The model of two files, and its largest relative error against the reference."""
    options = read_options(files.options_file)
    with open_weights(files.weight_file) as datasets:
        config = make_config(options, datasets)
        check_datasets(config, datasets)
        config.provenance = provenance(files)
        # before the model is loaded, so that the two never take memory at the same time
        expected = reference_layers(options, datasets)
        model = load_model(config, datasets)
    error = largest_error(model, expected)
    if not error <= TOLERANCE:
        raise ValueError(
            f"The converted model differs from the reference by {error:.1e}, where {TOLERANCE:.0e} "
            "is allowed."
        )
    return model, error


def make_config(options: dict, datasets: dict) -> ElmoConfig:
    """The configuration the options ask for, if the weights agree."""
    keywords = config_from_options(options)
    check_options(keywords, {key: dataset.shape for key, dataset in datasets.items()})
    keywords["use_char_projection"] = "CNN_proj/W_proj" in datasets
    keywords["use_cell_projection"] = any(key.endswith("/W_P_0") for key in datasets)
    try:
        return ElmoConfig(**keywords)
    except Exception as error:
        # a strict dataclass wraps the sentence that names the value
        raise ValueError(f"The options are not usable: {error.__cause__ or error}") from error


def check_datasets(config: ElmoConfig, datasets: dict) -> None:
    """Refuse datasets that are unknown, missing or of a wrong shape, by name."""
    expected = {}
    for name, shape in parameter_shapes(config).items():
        rule = rule_for_name(name)
        # a kernel's two halves have the same shape, so one stands for both
        parts = [np.broadcast_to(np.float32(0), shape)] * len(rule.names)
        expected[rule.key] = rule.operation.to_array(*parts).shape
    for key, dataset in datasets.items():
        rule = rule_for_key(key)
        shapes = {expected.get(key)}
        if key == "char_embed":
            # some files already hold the row of the padding word
            shapes.add((262, config.char_embedding_size))
        if rule.names and dataset.shape not in shapes:
            raise ValueError(
                f"The dataset {key!r} has shape {dataset.shape} where the options ask for "
                f"{expected.get(key, 'none')}."
            )
    missing = sorted(expected.keys() - datasets.keys())
    if missing:
        raise ValueError(f"The weights lack the datasets {', '.join(missing)}.")


def parameter_shapes(config: ElmoConfig) -> dict[str, tuple[int, ...]]:
    """The biLM's parameters; the mixes belong to a task and no biLM file has them."""
    with torch.device("meta"):
        state = ElmoModel(config, add_scalar_mix=False).state_dict()
    return {name: tuple(tensor.shape) for name, tensor in state.items()}


def load_model(config: ElmoConfig, datasets: dict) -> ElmoModel:
    """An `ElmoModel` with the weights of checked datasets; its mixes start out even."""
    with torch.device("meta"):
        model = ElmoModel(config)
    tensors = {}
    for key, dataset in datasets.items():
        rule = rule_for_key(key)
        if rule.names:
            arrays = rule.operation.to_parameters(read_array(key, dataset))
            for name, array in zip(rule.names, arrays, strict=True):
                tensors[name] = torch.from_numpy(np.ascontiguousarray(array))
    for number, mix in enumerate(model.mixes.to_empty(device="cpu")):
        model._init_weights(mix)
        tensors |= {f"mixes.{number}.{name}": part for name, part in mix.state_dict().items()}
    model.load_state_dict(tensors, strict=True, assign=True)
    return model.eval()


def load_language_model(model: ElmoModel, files: Source) -> ElmoForPreTraining | None:
    """The biLM with its softmax, from a file of its own or the main one; None without one."""
    vocabulary = None if files.vocab_file is None else WordVocabulary.load(files.vocab_file)
    with open_weights(files.softmax_weight_file or files.weight_file) as datasets:
        if not {"softmax/W", "softmax/b"} <= datasets.keys():
            if files.softmax_weight_file is not None:
                raise ValueError(
                    f"{str(files.softmax_weight_file)!r} holds no softmax/W, softmax/b."
                )
            return None
        weight, bias = (read_array(key, datasets[key]) for key in ("softmax/W", "softmax/b"))
    if weight.shape != (len(bias), model.config.projection_size):
        raise ValueError(
            f"The softmax has shapes {weight.shape} and {bias.shape} where the model needs "
            f"(words, {model.config.projection_size}) and (words,)."
        )
    if vocabulary is not None and len(vocabulary) != len(bias):
        raise ValueError(
            f"The vocabulary has {len(vocabulary):,} words but the softmax {len(bias):,}."
        )
    words = {"lm_vocab_size": len(bias)} if vocabulary is None else vocabulary.config_fields()
    config = ElmoConfig.from_dict({**model.config.to_dict(), **words})
    with torch.device("meta"):
        language_model = ElmoForPreTraining(config)
    tensors = {
        f"elmo.{name}": part
        for name, part in model.state_dict().items()
        # a language model has no use for a task's mix
        if not name.startswith("mixes.")
    }
    tensors |= {"softmax.weight": torch.from_numpy(weight), "softmax.bias": torch.from_numpy(bias)}
    language_model.load_state_dict(tensors, strict=True, assign=True)
    language_model.vocabulary = vocabulary
    return language_model.eval()


def reference_layers(options: dict, datasets: dict) -> list[np.ndarray]:
    """What the numpy reference makes of the probe, (layers, words, hidden_size) a sentence."""
    return [reference_elmo.run(datasets, options, words)[0] for words in PROBE]


def largest_error(model: ElmoModel, expected: list[np.ndarray]) -> float:
    """max|a - b| / max|b| between the model and the reference, over all layers of the probe."""
    tokenizer = ElmoTokenizer(max_characters_per_token=model.config.max_characters_per_token)
    worst = 0.0
    for words, truths in zip(PROBE, expected, strict=True):
        batch = tokenizer([words], is_split_into_words=True, return_tensors="pt")
        with torch.inference_mode():
            layers = model(**batch, output_hidden_states=True).hidden_states
        for layer, truth in zip(layers, truths, strict=True):
            # a layer of nothing but zeros has no scale of its own
            error = np.abs(layer[0].numpy() - truth).max() / (np.abs(truth).max() or 1.0)
            # a comparison with NaN must not pass as small
            worst = max(worst, float(error)) if np.isfinite(error) else float("inf")
    return worst


def provenance(files: Source) -> dict[str, str]:
    """Names and hashes of the files a model came from."""
    return {
        "converted_by": f"elmo_hf {elmo_hf.__version__}",
        "options_file": files.options_file.name,
        "options_sha256": sha256(files.options_file),
        "weight_file": files.weight_file.name,
        "weight_sha256": sha256(files.weight_file),
    }


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    from elmo_hf.system.command import single_command

    single_command(convert)()
