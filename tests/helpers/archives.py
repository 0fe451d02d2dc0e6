"""Archives in the form of AllenNLP, written from the arrays of a tiny model."""

import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmo_hf import ElmoConfig
from elmo_hf.conversion.options_map import options_from_config

PREFIX = "text_field_embedder.token_embedder_elmo._elmo."
GAMMA, SCALARS = 1.25, (0.5, -0.25, 1.0)
LABELS = ["O", "B-X", "I-X"]


def allennlp_gates(stacked: np.ndarray) -> np.ndarray:
    """TensorFlow's columns i, j, f, o as AllenNLP's rows i, f, j, o."""
    i, j, f, o = np.split(stacked.T, 4)
    return np.concatenate([i, f, j, o])


def allennlp_tensors(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The state of AllenNLP's `Elmo` with the weights of hdf5 arrays, as its loader makes it."""
    encoder, lstm = "_elmo_lstm._token_embedder", "_elmo_lstm._elmo_lstm"
    table = arrays["char_embed"]
    found = {f"{encoder}._char_embedding_weights": np.vstack([np.zeros_like(table[:1]), table])}
    for key, array in arrays.items():
        part, _, kind = key.rpartition("/")
        if part == "CNN":
            letter, number = kind[0], kind.rpartition("_")[2]
            name = f"{encoder}.char_conv_{number}.{'weight' if letter == 'W' else 'bias'}"
            found[name] = array[0].transpose(2, 1, 0) if letter == "W" else array
        elif part == "CNN_proj":
            found[f"{encoder}._projection.{'weight' if kind == 'W_proj' else 'bias'}"] = array.T
        elif kind == "W_transform":
            place = f"{encoder}._highways._layers.{part.rpartition('_')[2]}"
            found[f"{place}.weight"] = np.vstack([array.T, -arrays[f"{part}/W_carry"].T])
            biases = [arrays[f"{part}/b_transform"], -arrays[f"{part}/b_carry"]]
            found[f"{place}.bias"] = np.concatenate(biases)
        elif part.startswith("RNN_"):
            direction = "backward" if part[4] == "1" else "forward"
            place = f"{lstm}.{direction}_layer_{part.split('/')[3][4:]}"
            if kind == "W_0":
                one, other = np.split(array, 2)
                found[f"{place}.input_linearity.weight"] = allennlp_gates(one)
                found[f"{place}.state_linearity.weight"] = allennlp_gates(other)
            elif kind == "B":
                bias = allennlp_gates(array)
                bias[len(bias) // 4 : len(bias) // 2] += 1
                found[f"{place}.state_linearity.bias"] = bias
            else:
                found[f"{place}.state_projection.weight"] = array.T
    found["scalar_mix_0.gamma"] = np.float32([GAMMA])
    for number, value in enumerate(SCALARS):
        found[f"scalar_mix_0.scalar_parameters.{number}"] = np.float32([value])
    return found


def tagger_tensors(width: int, size: int, crf: bool, seed: int = 0) -> dict[str, np.ndarray]:
    """A bidirectional LSTM, a linear layer, and a CRF if asked for."""
    draw = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return draw.standard_normal(shape).astype(np.float32)

    found, count = {}, len(LABELS)
    for direction in ("", "_reverse"):
        found[f"encoder._module.weight_ih_l0{direction}"] = normal(4 * size, width)
        found[f"encoder._module.weight_hh_l0{direction}"] = normal(4 * size, size)
        for kind in ("ih", "hh"):
            found[f"encoder._module.bias_{kind}_l0{direction}"] = normal(4 * size)
    found["tag_projection_layer._module.weight"] = normal(count, 2 * size)
    found["tag_projection_layer._module.bias"] = normal(count)
    if crf:
        found["crf.transitions"] = normal(count, count)
        # those of BIO, for O, B-X, I-X, the start and the end
        rows = ["11001", "11101", "11101", "11000", "00000"]
        found["crf._constraint_mask"] = np.float32([[*map(int, row)] for row in rows])
    return found


def write_archive(
    folder: Path,
    config: ElmoConfig,
    arrays: dict[str, np.ndarray],
    head: dict[str, np.ndarray] | None = None,
    kind: str = "simple_tagger",
    legacy: bool = True,
    **embedder: Any,
) -> Path:
    """config.json, weights.th and vocabulary/ in a folder, and beside it model.tar.gz of them."""
    tensors = {PREFIX + name: part for name, part in allennlp_tensors(arrays).items()}
    (folder / "vocabulary").mkdir(parents=True)
    settings = {"type": kind, "text_field_embedder": {"token_embedders": {"elmo": embedder}}}
    (folder / "config.json").write_text(json.dumps({"model": settings}))
    (folder / "vocabulary" / "labels.txt").write_text("\n".join(LABELS))
    (folder / "vocabulary" / "non_padded_namespaces.txt").write_text("*tags\n*labels")
    options = "fta/model.text_field_embedder.token_embedders.elmo.options_file"
    (folder / "fta").mkdir()
    (folder / options).write_text(json.dumps(options_from_config(config)))
    save = {
        name: torch.from_numpy(np.array(part)) for name, part in (tensors | (head or {})).items()
    }
    torch.save(save, folder / "weights.th", _use_new_zipfile_serialization=not legacy)
    archive = folder.with_name("model.tar.gz")
    with tarfile.open(archive, "w:gz") as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, path.name)
    return archive
