"""Tiny models of ELMoForManyLangs: its files, and its computation in numpy from its own tensors."""

import json
from collections import OrderedDict
from pathlib import Path

import numpy as np
import torch

CHARACTERS = [*"abcdefgnorstuühßç北京.", "<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>"]
WORDS = ["<oov>", "<bos>", "<eos>", "<pad>", "the", "bank", "Ufer", "北京", ".", "abcdef"]
FILTERS = [[1, 3], [2, 4], [3, 5]]
CELL, WIDTH, CHAR_DIM, WORD_DIM = 7, 6, 4, 5


def random_tensors(
    char_dim: int = CHAR_DIM, word_dim: int = WORD_DIM, seed: int = 0
) -> dict[str, OrderedDict]:
    """The tensors of each file, without the suffix of its name."""
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw) * 0.5

    tokens, encoder = OrderedDict(), OrderedDict()
    count = sum(number for _, number in FILTERS) if char_dim else 0
    if word_dim:
        tokens["word_emb_layer.embedding.weight"] = normal(len(WORDS), word_dim)
    if char_dim:
        tokens["char_emb_layer.embedding.weight"] = normal(len(CHARACTERS), char_dim)
        for number, (width, filters) in enumerate(FILTERS):
            tokens[f"convolutions.{number}.weight"] = normal(filters, char_dim, width)
            tokens[f"convolutions.{number}.bias"] = normal(filters)
        for number in range(2):
            tokens[f"highways._layers.{number}.weight"] = normal(2 * count, count)
            tokens[f"highways._layers.{number}.bias"] = normal(2 * count)
    tokens["projection.weight"] = normal(WIDTH, word_dim + count)
    tokens["projection.bias"] = normal(WIDTH)
    for layer in range(2):
        for direction in ("forward", "backward"):
            name = f"{direction}_layer_{layer}"
            encoder[f"{name}.input_linearity.weight"] = normal(4 * CELL, WIDTH)
            encoder[f"{name}.state_linearity.weight"] = normal(4 * CELL, WIDTH)
            encoder[f"{name}.state_linearity.bias"] = normal(4 * CELL)
            encoder[f"{name}.state_projection.weight"] = normal(WIDTH, CELL)
    softmax = OrderedDict(
        {
            "column_emb.weight": normal(len(WORDS), WIDTH),
            "column_bias.weight": normal(len(WORDS), 1),
            "oov_column": normal(WIDTH, 1),
        }
    )
    return {"token_embedder": tokens, "encoder": encoder, "classifier": softmax}


def write_dictionary(path: Path, keys: list[str]) -> None:
    lines = (f"{key}\t{number}\n" for number, key in enumerate(keys))
    path.write_text("".join(lines), encoding="utf-8")


def write_many_langs(
    folder: Path,
    layout: dict | None = None,
    with_softmax: bool = False,
    old_form: bool = True,
    **sizes: int,
) -> dict[str, OrderedDict]:
    """
    The files of a model, whose tensors are returned. Without a `layout` they are as published: the
    one that is named is not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tensors = random_tensors(**sizes)
    for name, part in tensors.items():
        if name != "classifier" or with_softmax:
            zipped = not old_form
            torch.save(part, folder / f"{name}.pkl", _use_new_zipfile_serialization=zipped)
    write_dictionary(folder / "char.dic", CHARACTERS)
    write_dictionary(folder / "word.dic", WORDS)
    config = {"seed": 1, "gpu": 3, "config_path": "/home/author/cnn_50_100_512_4096_sample.json"}
    (folder / "config.json").write_text(json.dumps(config))
    if layout is not None:
        parts = {"token_embedder": {"name": "cnn"}, "encoder": {"name": "elmo"}}
        for part, settings in layout.items():
            parts[part] |= settings
        (folder / "cnn_50_100_512_4096_sample.json").write_text(json.dumps(parts))
    return tensors


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def expected_layers(
    tensors: dict[str, OrderedDict], words: list[str], max_characters: int = 50, tanh: bool = False
) -> np.ndarray:
    """The three layers of a sentence, (3, words, 2 * WIDTH), as ELMoForManyLangs computes them."""
    given = {name: part.double().numpy() for name, part in tensors["token_embedder"].items()}
    cut = ["<bos>", *(word[: max_characters - 2] for word in words), "<eos>"]
    parts = []
    if "word_emb_layer.embedding.weight" in given:
        table = given["word_emb_layer.embedding.weight"]
        parts.append(np.array([table[WORDS.index(w) if w in WORDS else 0] for w in cut]))
    if "char_emb_layer.embedding.weight" in given:
        parts.append(np.array([pooled(given, word, max_characters, tanh) for word in cut]))
    tokens = np.concatenate(parts, axis=1) @ given["projection.weight"].T + given["projection.bias"]
    encoder = {name: part.double().numpy() for name, part in tensors["encoder"].items()}
    layers, streams = [np.concatenate([tokens, tokens], axis=1)], [tokens, tokens[::-1]]
    for layer in range(2):
        for number, direction in enumerate(("forward", "backward")):
            read = lstm(encoder, f"{direction}_layer_{layer}", streams[number])
            streams[number] = read + streams[number] if layer else read
        layers.append(np.concatenate([streams[0], streams[1][::-1]], axis=1))
    return np.stack(layers)[:, 1:-1]


def pooled(given: dict[str, np.ndarray], word: str, width: int, tanh: bool) -> np.ndarray:
    number = {key: place for place, key in enumerate(CHARACTERS)}
    body = [word] if word in ("<bos>", "<eos>") else list(word)
    row = [number["<eow>"], *(number.get(c, number["<oov>"]) for c in body), number["<bow>"]]
    row += [number["<pad>"]] * (width - len(row))
    embedded = given["char_emb_layer.embedding.weight"][row]  # (characters, size)
    found = []
    for place, (span, _) in enumerate(FILTERS):
        kernel = given[f"convolutions.{place}.weight"]  # (filters, size, span)
        windows = [
            np.einsum("se,fes->f", embedded[start : start + span], kernel)
            for start in range(width - span + 1)
        ]
        best = np.max(windows, axis=0) + given[f"convolutions.{place}.bias"]
        found.append(np.tanh(best) if tanh else np.maximum(best, 0))
    hidden = np.concatenate(found)
    for place in range(2):
        weight, bias = (given[f"highways._layers.{place}.{kind}"] for kind in ("weight", "bias"))
        changed, gate = np.split(weight @ hidden + bias, 2)
        hidden = sigmoid(gate) * hidden + (1 - sigmoid(gate)) * np.maximum(changed, 0)
    return hidden


def lstm(encoder: dict[str, np.ndarray], name: str, inputs: np.ndarray) -> np.ndarray:
    output, cell, outputs = np.zeros(WIDTH), np.zeros(CELL), []
    for step in inputs:
        gates = encoder[f"{name}.input_linearity.weight"] @ step
        gates += encoder[f"{name}.state_linearity.weight"] @ output
        gates += encoder[f"{name}.state_linearity.bias"]
        enter, forget, candidate, leave = np.split(gates, 4)
        cell = np.clip(sigmoid(enter) * np.tanh(candidate) + sigmoid(forget) * cell, -3, 3)
        projected = encoder[f"{name}.state_projection.weight"] @ (sigmoid(leave) * np.tanh(cell))
        output = np.clip(projected, -3, 3)
        outputs.append(output)
    return np.array(outputs)
