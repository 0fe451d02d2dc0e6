"""Write an ELMo folder back as `model.hdf5` and `options.json`, for AllenNLP and simple_elmo.

    python conversion/export_hf_to_allennlp.py --model my-elmo --output-dir my-hdf5

The same table as in the conversion, read backwards: convert and export return every dataset byte
for byte, except the forget gate's bias, which may lose its last bit to the 1 that TensorFlow adds.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from torch import nn

from elmo_hf import ElmoForPreTraining
from elmo_hf.conversion.building import row_by_row
from elmo_hf.conversion.formats.word_level import SOFTMAX_VOCABULARY
from elmo_hf.conversion.key_map import BILM, SOFTMAX, rule_for_name
from elmo_hf.conversion.options_map import options_from_config
from elmo_hf.conversion.verification import TOLERANCE, largest_error, reference_layers
from elmo_hf.conversion.weights_file import open_weights, write_weights
from elmo_hf.hub.bundled import BUNDLED
from elmo_hf.hub.loading import load_elmo, load_model, saved_class
from elmo_hf.system.command import Model, Overwrite, single_command
from elmo_hf.system.failures import refuse_full_disk
from elmo_hf.system.writing import new_folder, refuse_existing_folder

# bytes of an hdf5 file besides its arrays, at most
ADDED = 1 << 18


def export(
    model: Model = BUNDLED,
    output_dir: Annotated[
        Path, typer.Option("--output-dir", help="The folder for model.hdf5 and options.json.")
    ] = Path("elmo-hdf5"),
    overwrite: Overwrite = False,
) -> None:
    """Write a model as hdf5 and options.json, which AllenNLP, simple_elmo and bilm-tf load."""
    refuse_existing_folder(output_dir, overwrite)
    loaded = load_elmo(model)
    if loaded.alignment is not None:
        raise ValueError(
            f"{model!r} has an alignment, which has no place in hdf5 files; export the model that "
            "it was added to."
        )
    options = options_from_config(loaded.config)
    softmax = None
    if saved_class(model) == "ElmoForPreTraining":
        softmax = load_model(ElmoForPreTraining, model)
    with new_folder(output_dir, overwrite) as folder:
        refuse_full_disk(folder, bytes_of(loaded) + (bytes_of(softmax.softmax) if softmax else 0))
        text = json.dumps(options, indent=2) + "\n"
        (folder / "options.json").write_text(text, encoding="utf-8")
        # AllenNLP keeps a task's mix with the task
        bilm = {
            name: part
            for name, part in loaded.state_dict().items()
            if not name.startswith("mixes.")
        }
        write_weights(folder / "model.hdf5", exported_arrays(BILM, bilm))
        with open_weights(folder / "model.hdf5") as datasets:
            expected = reference_layers(options, datasets, loaded.dictionaries)
            error = largest_error(loaded, expected)
        if not error <= TOLERANCE:
            raise ValueError(f"The exported weights differ from the model by {error:.1e}.")
        if loaded.dictionaries is not None and loaded.dictionaries.words is not None:
            # a word-level model is of no use without its words
            words = "\n".join(loaded.dictionaries.words.keys) + "\n"
            (folder / "vocab.txt").write_text(words, encoding="utf-8", newline="\n")
        if softmax is not None:
            write_softmax(softmax, folder)
    print(f"largest relative error {error:.1e}, saved in {output_dir}")


def bytes_of(module: nn.Module) -> int:
    """The size of a file of its weights, with what hdf5 adds to them."""
    return ADDED + 4 * sum(part.numel() for part in module.state_dict().values())


def exported_arrays(
    part: str, parameters: dict[str, torch.Tensor]
) -> Iterator[tuple[str, np.ndarray]]:
    """All datasets of the biLM or the softmax, one at a time."""
    done = set()
    for name in parameters:
        rule = rule_for_name(part + name)
        if rule.key not in done:
            done.add(rule.key)
            tensors = [parameters[other.removeprefix(part)] for other in rule.names]
            arrays = [tensor.float().numpy() for tensor in tensors]
            yield rule.key, row_by_row(rule.operation.to_array(*arrays)).numpy()


def write_softmax(model: ElmoForPreTraining, folder: Path) -> None:
    """The language model's softmax in a second hdf5, as AllenNLP published it, and its words."""
    arrays = exported_arrays(SOFTMAX, model.softmax.state_dict())
    write_weights(folder / "softmax_weights.hdf5", arrays)
    if model.vocabulary is not None:
        words = None if model.elmo.dictionaries is None else model.elmo.dictionaries.words
        has_others = words is not None and words.keys != model.vocabulary.words
        model.vocabulary.save(folder / (SOFTMAX_VOCABULARY if has_others else "vocab.txt"))


if __name__ == "__main__":
    single_command(export)()
