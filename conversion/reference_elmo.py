"""ELMo in slow numpy loops, straight from the hdf5 arrays: the executable specification.

Independent on purpose: no torch, nothing of `elmo_hf`, not even the key table. A converted model is
compared with this before anything is written. Computed in double precision.
"""

from collections.abc import Mapping

import numpy as np

BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING = 257, 258, 259, 260, 261


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def clip(x: np.ndarray, bound: float | None) -> np.ndarray:
    return x if bound is None else np.clip(x, -bound, bound)


def character_row(word: str, width: int) -> list[int]:
    """Ids of a word's bytes, between markers; `<S>` and `</S>` are the sentence's own markers."""
    marker = {"<S>": BEGIN_SENTENCE, "</S>": END_SENTENCE}.get(word)
    body = [byte + 1 for byte in word.encode()[: width - 2]] if marker is None else [marker]
    row = [BEGIN_WORD, *body, END_WORD]
    return row + [PADDING] * (width - len(row))


def token_vector(arrays: Mapping, options: Mapping, row: list[int]) -> np.ndarray:
    """One word: embed, convolve, maximum over positions, activate, highways, project."""
    char_cnn = options["char_cnn"]
    table = np.asarray(arrays["char_embed"], dtype=np.float64)
    # ids start at 1, the file's rows at 0, unless it already has the padding row
    embedded = table[[index - 1 for index in row] if len(table) == 261 else row]
    pooled = []
    for number, (width, _) in enumerate(char_cnn["filters"]):
        kernel = np.asarray(arrays[f"CNN/W_cnn_{number}"], dtype=np.float64)[0]
        windows = [embedded[start : start + width] for start in range(len(row) - width + 1)]
        convolved = np.array([np.tensordot(window, kernel, 2) for window in windows])
        pooled.append(convolved.max(axis=0) + np.asarray(arrays[f"CNN/b_cnn_{number}"]))
    hidden = np.concatenate(pooled)
    hidden = np.tanh(hidden) if char_cnn["activation"] == "tanh" else np.maximum(hidden, 0)
    for number in range(char_cnn.get("n_highway", 0)):
        weights = {
            name: np.asarray(arrays[f"CNN_high_{number}/{name}"], dtype=np.float64)
            for name in ("W_carry", "b_carry", "W_transform", "b_transform")
        }
        gate = sigmoid(hidden @ weights["W_carry"] + weights["b_carry"])
        changed = np.maximum(hidden @ weights["W_transform"] + weights["b_transform"], 0)
        hidden = gate * changed + (1 - gate) * hidden
    if "CNN_proj/W_proj" in arrays:
        hidden = hidden @ np.asarray(arrays["CNN_proj/W_proj"], dtype=np.float64)
        hidden = hidden + np.asarray(arrays["CNN_proj/b_proj"])
    return hidden


def lstm(arrays: Mapping, options: Mapping, path: str, inputs: np.ndarray, state):
    """One direction of one layer, (time, width) -> (time, width), and the state after it."""
    kernel, bias = (np.asarray(arrays[f"{path}/{name}"], dtype=np.float64) for name in ("W_0", "B"))
    projection = None
    if f"{path}/W_P_0" in arrays:
        projection = np.asarray(arrays[f"{path}/W_P_0"], dtype=np.float64)
    width = inputs.shape[1]
    output, cell = (np.zeros(width), np.zeros(len(bias) // 4)) if state is None else state
    outputs = []
    for step in inputs:
        i, j, f, o = np.split(np.concatenate([step, output]) @ kernel + bias, 4)
        cell = clip(
            sigmoid(f + 1.0) * cell + sigmoid(i) * np.tanh(j), options["lstm"].get("cell_clip")
        )
        output = sigmoid(o) * np.tanh(cell)
        if projection is not None:
            output = clip(output @ projection, options["lstm"].get("proj_clip"))
        outputs.append(output)
    return np.array(outputs), (output, cell)


def run(arrays: Mapping, options: Mapping, words: list[str], state: dict | None = None):
    """
    All layers of one sentence, (layers + 1, words, 2 * projection), and the state after it.

    `state` is what an earlier call returned, to carry on from there.
    """
    width = options["char_cnn"]["max_characters_per_token"]
    rows = [character_row(word, width) for word in ("<S>", *words, "</S>")]
    tokens = np.array([token_vector(arrays, options, row) for row in rows])
    layers = [np.concatenate([tokens, tokens], axis=1)]
    streams = {0: tokens, 1: tokens[::-1]}
    new_state = {}
    for number in range(options["lstm"].get("n_layers", 1)):
        for direction, inputs in streams.items():
            path = f"RNN_{direction}/RNN/MultiRNNCell/Cell{number}/LSTMCell"
            start = state[direction, number] if state else None
            outputs, new_state[direction, number] = lstm(arrays, options, path, inputs, start)
            skip = options["lstm"].get("use_skip_connections") and number > 0
            streams[direction] = outputs + inputs if skip else outputs
        layers.append(np.concatenate([streams[0], streams[1][::-1]], axis=1))
    return np.stack(layers)[:, 1:-1], new_state
