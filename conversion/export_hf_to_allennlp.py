"""Write an ELMo folder back as `model.hdf5` and `options.json`, for AllenNLP and simple_elmo.

The way back through the same table as the conversion: convert and export return every dataset byte
for byte, except the forget gate's bias, which loses a rounding of the last bit to TensorFlow's 1.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from elmo_hf import ElmoForPreTraining, ElmoModel
from elmo_hf.conversion.convert_allennlp_to_hf import TOLERANCE, largest_error, reference_layers
from elmo_hf.conversion.key_map import rule_for_name
from elmo_hf.conversion.options_map import options_from_config
from elmo_hf.conversion.source import load_elmo
from elmo_hf.conversion.weights_file import open_weights, write_weights
from elmo_hf.system.writing import new_folder, refuse_existing


def export(
    model: Annotated[str, typer.Argument(help="An ELMo folder or Hub repository.")],
    output_dir: Annotated[
        Path, typer.Option("--output_dir", help="The folder for model.hdf5 and options.json.")
    ] = Path("elmo-hdf5"),
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the output folder if it exists.")
    ] = False,
) -> None:
    """Write a model as hdf5 and options.json, which AllenNLP, simple_elmo and bilm-tf load."""
    refuse_existing(output_dir, overwrite)
    loaded = load_elmo(model)
    options = options_from_config(loaded.config)
    with new_folder(output_dir, overwrite) as folder:
        text = json.dumps(options, indent=2) + "\n"
        (folder / "options.json").write_text(text, encoding="utf-8")
        write_weights(folder / "model.hdf5", exported_arrays(loaded))
        with open_weights(folder / "model.hdf5") as datasets:
            error = largest_error(loaded, reference_layers(options, datasets))
        if not error <= TOLERANCE:
            raise ValueError(f"The exported weights differ from the model by {error:.1e}.")
        if "ElmoForPreTraining" in (loaded.config.architectures or []):
            write_softmax(ElmoForPreTraining.from_pretrained(model), folder)
    print(f"largest relative error {error:.1e}, saved in {output_dir}")


def exported_arrays(model: ElmoModel) -> Iterator[tuple[str, np.ndarray]]:
    """All datasets of the hdf5 layout, one at a time."""
    state = model.state_dict()
    done = set()
    for name in state:
        # AllenNLP keeps a task's mix with the task
        if name.startswith("mixes."):
            continue
        rule = rule_for_name(name)
        if rule.key not in done:
            done.add(rule.key)
            arrays = [state[part].float().numpy() for part in rule.names]
            yield rule.key, np.ascontiguousarray(rule.operation.to_array(*arrays))


def write_softmax(model: ElmoForPreTraining, folder: Path) -> None:
    """The language model's own part: a second hdf5, as AllenNLP published it, and its words."""
    parts = {"softmax/W": model.softmax.weight, "softmax/b": model.softmax.bias}
    arrays = ((key, part.detach().float().numpy()) for key, part in parts.items())
    write_weights(folder / "softmax_weights.hdf5", arrays)
    if model.vocabulary is not None:
        model.vocabulary.save(folder / "vocab.txt")
