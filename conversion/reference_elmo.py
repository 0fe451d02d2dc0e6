"""ELMo in slow numpy loops, straight from the hdf5 arrays: the executable specification.

Independent on purpose: no torch, nothing of `elmo_hf`, not even the key table. A converted model is
compared with this before anything is written. Computed in double precision.
"""

from collections.abc import Mapping

import numpy as np

BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING = 257, 258, 259, 260, 261


def sigmoid(x: np.ndarray) -> np.ndarray:
    return (1 + np.tanh(x / 2)) / 2


def clip(x: np.ndarray, bound: float | None) -> np.ndarray:
    return x if bound is None else np.clip(x, -bound, bound)


def character_row(word: str, width: int) -> list[int]:
    """Ids of a word's bytes, between markers; `<S>` and `</S>` are the sentence's own markers."""
    marker = {"<S>": BEGIN_SENTENCE, "</S>": END_SENTENCE}.get(word)
    body = [byte + 1 for byte in word.encode()[: width - 2]] if marker is None else [marker]
    row = [BEGIN_WORD, *body, END_WORD]
    return row + [PADDING] * (width - len(row))


def read(arrays: Mapping, key: str) -> np.ndarray:
    """One array in double precision; the caller holds no more of them than it needs at a time."""
    return np.asarray(arrays[key], dtype=np.float64)


def token_vectors(arrays: Mapping, options: Mapping, rows: list[list[int]]) -> np.ndarray:
    """Words, one row of bytes each."""
    table = read(arrays, "char_embed")
    # ids start at 1, the file's rows at 0, unless it already has the padding row
    embedded = table[np.array(rows) - 1 if len(table) == 261 else np.array(rows)]
    return project(arrays, convolve(arrays, options, embedded))


def dictionary_vectors(
    arrays: Mapping, options: Mapping, words: list[str], dictionaries: Mapping
) -> np.ndarray:
    """
    Words that a model knows by dictionaries, each a mapping of keys to numbers: a vector of the
    word itself, then what its code points give, as far as there are such tables.
    """
    numbers = {name: found for name, found in dictionaries.items() if found is not None}
    begin, end, unknown = "<bos>", "<eos>", "<oov>"
    cut = options.get("char_cnn", options).get("max_characters_per_token")
    if cut is None:
        begin, end, unknown = "<S>", "</S>", "<UNK>"
    forms = [begin, *(word if cut is None else word[: cut - 2] for word in words), end]
    parts = []
    if "words" in numbers:
        known = numbers["words"]
        table = read(arrays, "embedding")
        parts.append(table[[known.get(form, known[unknown]) for form in forms]])
    if "characters" in numbers:
        rows = [code_point_row(form, numbers["characters"], cut) for form in forms]
        parts.append(convolve(arrays, options, read(arrays, "code_point_embed")[np.array(rows)]))
    return project(arrays, np.concatenate(parts, axis=1))


def code_point_row(word: str, known: Mapping, width: int) -> list[int]:
    """The two markers of a word are swapped, as they were in training."""
    body = [word] if word in ("<bos>", "<eos>") else list(word)
    row = [known["<eow>"], *(known.get(part, known["<oov>"]) for part in body), known["<bow>"]]
    return row + [known["<pad>"]] * (width - len(row))


def convolve(arrays: Mapping, options: Mapping, embedded: np.ndarray) -> np.ndarray:
    """Embedded characters: convolve, maximum over positions, activate, highways."""
    char_cnn = options["char_cnn"]
    pooled = []
    for number, (width, _) in enumerate(char_cnn["filters"]):
        kernel, bias = read(arrays, f"CNN/W_cnn_{number}")[0], read(arrays, f"CNN/b_cnn_{number}")
        convolved = [
            np.tensordot(embedded[:, start : start + width], kernel, 2)
            for start in range(embedded.shape[1] - width + 1)
        ]
        pooled.append(np.max(convolved, axis=0) + bias)
    hidden = np.concatenate(pooled, axis=1)
    hidden = np.tanh(hidden) if char_cnn["activation"] == "tanh" else np.maximum(hidden, 0)
    for number in range(char_cnn.get("n_highway", 0)):
        path = f"CNN_high_{number}"
        gate = sigmoid(hidden @ read(arrays, f"{path}/W_carry") + read(arrays, f"{path}/b_carry"))
        changed = hidden @ read(arrays, f"{path}/W_transform") + read(arrays, f"{path}/b_transform")
        hidden = gate * np.maximum(changed, 0) + (1 - gate) * hidden
    return hidden


def project(arrays: Mapping, hidden: np.ndarray) -> np.ndarray:
    if "CNN_proj/W_proj" in arrays:
        hidden = hidden @ read(arrays, "CNN_proj/W_proj") + read(arrays, "CNN_proj/b_proj")
    return hidden


def lstm(arrays: Mapping, options: Mapping, path: str, inputs: np.ndarray, state):
    """One direction of one layer, (time, width) -> (time, width), and the state after it."""
    kernel, bias = read(arrays, f"{path}/W_0"), read(arrays, f"{path}/B")
    projection = read(arrays, f"{path}/W_P_0") if f"{path}/W_P_0" in arrays else None
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


def run(
    arrays: Mapping,
    options: Mapping,
    words: list[str],
    state: dict | None = None,
    dictionaries: Mapping | None = None,
):
    """
    All layers of one sentence, (layers + 1, words, 2 * projection), and the state after it.

    `state` is what an earlier call returned, to carry on from there.
    """
    if dictionaries is None:
        width = options["char_cnn"]["max_characters_per_token"]
        rows = [character_row(word, width) for word in ("<S>", *words, "</S>")]
        tokens = token_vectors(arrays, options, rows)
    else:
        tokens = dictionary_vectors(arrays, options, words, dictionaries)
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
