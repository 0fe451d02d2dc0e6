"""ELMoForManyLangs: pickled tensors of a token embedder and an encoder, and two dictionaries.

The computation is that of bilm-tf, so the arrays are brought into its layout; only the token
encoder differs, which has a vector for each word of a dictionary beside the convolutions.
"""

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from elmo_hf.conversion.formats._format import WeightFormat, Weights
from elmo_hf.conversion.pickled_tensors import read_tensors
from elmo_hf.dictionaries import CHARACTERS_FILE, WORDS_FILE, Dictionaries, Dictionary
from elmo_hf.system.untrusted import read_json
from elmo_hf.word_vocabulary import BEGIN, END, UNKNOWN, WordVocabulary

TOKENS, ENCODER, SOFTMAX = PICKLES = ("token_embedder.pkl", "encoder.pkl", "classifier.pkl")
WORD_TABLE, CHAR_TABLE = "word_emb_layer.embedding.weight", "char_emb_layer.embedding.weight"
# What no tensor says, in the layout that all published models were trained with. The layout itself
# is named by its place on the authors' machine and is not published with the models.
ASSUMED = {"activation": "relu", "max_characters_per_token": 50, "cell_clip": 3, "proj_clip": 3}
WIDTH_SETTING = "max_characters_per_token"


def recognises(names: Sequence[str]) -> bool:
    pickles = [name for name in (TOKENS, ENCODER) if name in names]
    # half a model is named as such, unless it is a stray file beside another one
    return len(pickles) == 2 or bool(pickles and fnmatch.filter(names, "*.dic"))


@contextmanager
def open_folder(folder: Path, named: Mapping[str, Path | None]) -> Iterator[Weights]:
    files = {name: find(folder, name) for name in (TOKENS, ENCODER)}
    tokens = read_tensors(files[TOKENS])
    dictionaries = read_dictionaries(folder, tokens)
    settings, notes = read_settings(folder)
    options = make_options(tokens, settings)
    arrays = token_arrays(tokens, files[TOKENS])
    options["lstm"] |= add_encoder(arrays, read_tensors(files[ENCODER]), files[ENCODER])
    softmax, vocabulary = read_softmax(folder)
    sources = {"weight_file": files[ENCODER], "token_embedder_file": files[TOKENS]}
    names = {"options_file": "config.json", "characters_file": CHARACTERS_FILE}
    for kind, name in (names | {"words_file": WORDS_FILE}).items():
        if found := candidates(folder, name):
            sources[kind] = found[0]
    yield Weights(
        options,
        arrays,
        sources,
        softmax,
        vocabulary=vocabulary,
        notes=tuple(notes),
        dictionaries=dictionaries,
    )


def candidates(folder: Path, name: str) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.name == name and path.is_file())


def find(folder: Path, name: str) -> Path:
    """The only file of a name."""
    found = candidates(folder, name)
    if not found:
        raise FileNotFoundError(
            f"This ELMoForManyLangs model lacks {name!r}; get it again with all its files."
        )
    if len(found) > 1:
        raise ValueError(f"There are several files {name!r}; name the folder of one model.")
    return found[0]


def read_dictionaries(folder: Path, tokens: Mapping[str, np.ndarray]) -> Dictionaries:
    """The dictionaries for which there are tables; those of another download are refused."""
    found: dict[str, Dictionary | None] = {}
    for table, name in ((CHAR_TABLE, CHARACTERS_FILE), (WORD_TABLE, WORDS_FILE)):
        found[table] = None
        if table not in tokens:
            continue
        dictionary = found[table] = Dictionary.load(find(folder, name))
        if len(dictionary) != len(tokens[table]):
            raise ValueError(
                f"{name!r} has {len(dictionary):,} entries but the weights have "
                f"{len(tokens[table]):,}: they are of different models; get both again."
            )
    if not any(found.values()):
        raise ValueError(f"{TOKENS!r} holds neither a table of characters nor one of words.")
    return Dictionaries(found[CHAR_TABLE], found[WORD_TABLE])


def read_settings(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """What the tensors do not say, and a sentence about it if it had to be assumed."""
    name = ""
    if configs := candidates(folder, "config.json"):
        place = read_json(configs[0]).get("config_path")
        name = PurePosixPath(place.replace("\\", "/")).name if isinstance(place, str) else ""
    layouts = candidates(folder, name) if name and name != "config.json" else []
    if not layouts:
        note = (
            "The file with the model's layout was not published with it: relu, clips of 3 and 50 "
            "characters per word are assumed, as in the layout that ELMoForManyLangs comes with."
        )
        return dict(ASSUMED), [note]
    layout = read_json(layouts[0])
    parts = [layout.get("token_embedder"), layout.get("encoder")]
    if not all(isinstance(part, dict) for part in parts):
        raise ValueError(f"{layouts[0].name!r} has no `token_embedder` or no `encoder`.")
    kinds = [part.get("name") for part in parts if isinstance(part, dict)]
    if kinds != ["cnn", "elmo"]:
        raise ValueError(
            f"{layouts[0].name!r} asks for {kinds[0]!r} under {kinds[1]!r}, but only a 'cnn' under "
            "'elmo' can be converted."
        )
    known = {**parts[0], **parts[1]}  # type: ignore[dict-item]
    return {setting: known.get(setting, value) for setting, value in ASSUMED.items()}, []


def make_options(tokens: Mapping[str, np.ndarray], settings: dict[str, Any]) -> dict[str, Any]:
    """The options without the sizes of the LSTMs; everything with a size is that of a tensor."""
    clips = {name: settings[name] for name in ("cell_clip", "proj_clip")}
    options: dict[str, Any] = {"lstm": {**clips, "use_skip_connections": True}}
    if CHAR_TABLE not in tokens:
        return options | {WIDTH_SETTING: settings[WIDTH_SETTING]}
    kernels = numbered(tokens, r"convolutions\.(\d+)\.weight")
    options["char_cnn"] = {
        "embedding": {"dim": tokens[CHAR_TABLE].shape[-1]},
        "filters": [[kernel.shape[-1], kernel.shape[0]] for kernel in kernels],
        "activation": settings["activation"],
        WIDTH_SETTING: settings[WIDTH_SETTING],
        "n_highway": len(numbered(tokens, r"highways\._layers\.(\d+)\.weight")),
    }
    return options


def numbered(tensors: Mapping[str, np.ndarray], pattern: str) -> list[np.ndarray]:
    """The tensors whose names match, in the order of their numbers."""
    found = {
        int(match[1]): tensor
        for name, tensor in tensors.items()
        if (match := re.fullmatch(pattern, name))
    }
    return [found[number] for number in sorted(found)]


class Tensors:
    """The tensors of a file, each taken once and with its number of axes checked."""

    def __init__(self, tensors: dict[str, np.ndarray], path: Path):
        self.left, self.file = tensors, path.name

    def take(self, name: str, axes: int, parts: int = 1) -> np.ndarray:
        """`parts`: into how many equal pieces the first axis will be cut."""
        if name not in self.left:
            raise ValueError(f"{self.file!r} lacks the tensor {name!r}.")
        tensor = self.left.pop(name)
        if tensor.ndim != axes or len(tensor) % parts:
            raise ValueError(f"{self.file!r}: {name!r} has the unusable shape {tensor.shape}.")
        return tensor

    def refuse_others(self) -> None:
        for name in self.left:
            raise ValueError(
                f"{self.file!r} holds a tensor {name!r:.80} that is not part of such a model."
            )


def token_arrays(tensors: dict[str, np.ndarray], path: Path) -> dict[str, np.ndarray]:
    """The token embedder in bilm-tf's layout."""
    convolutions = len(numbered(tensors, r"convolutions\.(\d+)\.weight"))
    highways = len(numbered(tensors, r"highways\._layers\.(\d+)\.weight"))
    given = Tensors(tensors, path)
    arrays = {}
    for table, key in ((WORD_TABLE, "embedding"), (CHAR_TABLE, "code_point_embed")):
        if table in tensors:
            arrays[key] = given.take(table, 2)
    for i in range(convolutions):
        kernel = given.take(f"convolutions.{i}.weight", 3)
        arrays[f"CNN/W_cnn_{i}"] = kernel.transpose(2, 1, 0)[np.newaxis]
        arrays[f"CNN/b_cnn_{i}"] = given.take(f"convolutions.{i}.bias", 1)
    for i in range(highways):
        # its gate is how much of the input passes, bilm-tf's how much is changed
        weights = np.split(given.take(f"highways._layers.{i}.weight", 2, parts=2), 2)
        biases = np.split(given.take(f"highways._layers.{i}.bias", 1, parts=2), 2)
        arrays[f"CNN_high_{i}/W_transform"], arrays[f"CNN_high_{i}/b_transform"] = (
            weights[0].T,
            biases[0],
        )
        arrays[f"CNN_high_{i}/W_carry"], arrays[f"CNN_high_{i}/b_carry"] = -weights[1].T, -biases[1]
    arrays["CNN_proj/W_proj"] = given.take("projection.weight", 2).T
    arrays["CNN_proj/b_proj"] = given.take("projection.bias", 1)
    given.refuse_others()
    return arrays


def add_encoder(
    arrays: dict[str, np.ndarray], tensors: dict[str, np.ndarray], path: Path
) -> dict[str, int]:
    """Adds the LSTMs in bilm-tf's layout; returns their sizes."""
    layers = len(numbered(tensors, r"forward_layer_(\d+)\.input_linearity\.weight"))
    given = Tensors(tensors, path)
    sizes = {"n_layers": layers}
    for number, direction in enumerate(("forward", "backward")):
        for layer in range(layers):
            source = f"{direction}_layer_{layer}"
            key = f"RNN_{number}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            halves = [
                reorder_gates(given.take(f"{source}.{kind}_linearity.weight", 2, parts=4)).T
                for kind in ("input", "state")
            ]
            if halves[0].shape != halves[1].shape:
                raise ValueError(f"{path.name!r}: the linear layers of {source!r} do not fit.")
            arrays[f"{key}/W_0"] = np.concatenate(halves)
            bias = reorder_gates(given.take(f"{source}.state_linearity.bias", 1, parts=4))
            quarter = len(bias) // 4
            # bilm-tf adds this 1 at run time, here it is part of the bias
            bias[2 * quarter : 3 * quarter] -= np.float32(1)
            arrays[f"{key}/B"] = bias
            projection = given.take(f"{source}.state_projection.weight", 2).T
            arrays[f"{key}/W_P_0"] = projection
            sizes["dim"], sizes["projection_dim"] = projection.shape
    given.refuse_others()
    if not layers:
        raise ValueError(f"{path.name!r} holds no LSTM layers.")
    return sizes


def reorder_gates(stacked: np.ndarray) -> np.ndarray:
    """From input, forget, candidate, output to bilm-tf's input, candidate, forget, output."""
    input_gate, forget, candidate, output = np.split(stacked, 4)
    return np.concatenate([input_gate, candidate, forget, output])


def read_softmax(folder: Path) -> tuple[dict[str, np.ndarray], WordVocabulary | None]:
    """The softmax and its words, which few models come with."""
    if not candidates(folder, SOFTMAX):
        return {}, None
    path = find(folder, SOFTMAX)
    given = Tensors(read_tensors(path), path)
    weight = given.take("column_emb.weight", 2)
    bias = given.take("column_bias.weight", 2)
    # part of every such file, and of no probability
    given.left.pop("oov_column", None)
    given.refuse_others()
    words = Dictionary.load(find(folder, WORDS_FILE))
    known = dict(zip(("<bos>", "<eos>", "<oov>"), (BEGIN, END, UNKNOWN), strict=True))
    vocabulary = WordVocabulary([known.get(key, key) for key in words.keys])
    return {"softmax/W": weight, "softmax/b": bias[:, 0]}, vocabulary


FORMAT = WeightFormat("ELMoForManyLangs", ("*.json", "*.dic", *PICKLES), recognises, open_folder)
