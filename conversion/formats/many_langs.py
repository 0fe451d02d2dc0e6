"""ELMoForManyLangs: pickled tensors of a token embedder and an encoder, and two dictionaries.

The computation is that of bilm-tf, so the arrays are brought into its layout; only the token
encoder differs, which has a vector for each word of a dictionary beside the convolutions.
"""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from elmo_hf.conversion.allennlp_names import (
    Tensors,
    TokenEncoderNames,
    lstm_arrays,
    token_encoder_arrays,
)
from elmo_hf.conversion.formats._format import WeightFormat, Weights
from elmo_hf.conversion.options_map import config_from_shapes, options_from_fields
from elmo_hf.conversion.torch_file import read_state_dict
from elmo_hf.dictionaries import CHARACTERS_FILE, WORDS_FILE, Dictionaries, Dictionary
from elmo_hf.system.untrusted import read_json
from elmo_hf.word_vocabulary import BEGIN, END, UNKNOWN, WordVocabulary

TOKENS, ENCODER, SOFTMAX = PICKLES = ("token_embedder.pkl", "encoder.pkl", "classifier.pkl")
WORD_TABLE, CHAR_TABLE = "word_emb_layer.embedding.weight", "char_emb_layer.embedding.weight"
# The sampled softmax has a vector and a bias per word, and the full one is a linear layer. The
# third kind, whose vectors are those of the token embedder, has neither.
SAMPLED, SAMPLED_BIAS = "column_emb.weight", "column_bias.weight"
FULL, FULL_BIAS = "hidden2tag.weight", "hidden2tag.bias"
OTHER_SOFTMAX = (
    f"The softmax was left out: {SOFTMAX} has no table of a vector per word, so that it is neither "
    "the full softmax of ELMoForManyLangs nor the sampled one."
)
NAMES = TokenEncoderNames("convolutions.{}", "highways._layers.{}", "projection")
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
    tokens = read_state_dict(files[TOKENS])
    dictionaries = read_dictionaries(folder, tokens)
    settings, notes = read_settings(folder)
    encoder = read_state_dict(files[ENCODER])
    arrays = bilm_arrays(Tensors(tokens, TOKENS), Tensors(encoder, ENCODER))
    options = make_options(arrays, settings)
    softmax, vocabulary, left_out = read_softmax(folder)
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
        notes=(*notes, *left_out),
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
        rows = tokens[table].shape[0] if tokens[table].ndim else 0
        if len(dictionary) != rows:
            raise ValueError(
                f"{name!r} has {len(dictionary):,} entries but the weights have {rows:,}: they are "
                "of different models; get both again."
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


def make_options(arrays: Mapping[str, np.ndarray], settings: dict[str, Any]) -> dict[str, Any]:
    """The options; everything with a size is that of an array."""
    sizes = config_from_shapes({key: array.shape for key, array in arrays.items()})
    if "cell_size" not in sizes:
        raise ValueError(f"{ENCODER!r} holds no LSTM layers.")
    fields = sizes | {
        "char_activation": settings["activation"],
        WIDTH_SETTING: settings[WIDTH_SETTING],
        "cell_clip": settings["cell_clip"],
        "projection_clip": settings["proj_clip"],
        "use_skip_connections": True,
    }
    if "code_point_embed" in arrays:
        return options_from_fields(fields)
    return {WIDTH_SETTING: settings[WIDTH_SETTING], **options_from_fields(fields, False)}


def bilm_arrays(tokens: Tensors, encoder: Tensors) -> dict[str, np.ndarray]:
    """All tensors in bilm-tf's layout."""
    arrays = {}
    for table, key in ((WORD_TABLE, "embedding"), (CHAR_TABLE, "code_point_embed")):
        if table in tokens:
            arrays[key] = tokens.take(table, 2)
    arrays |= token_encoder_arrays(tokens, NAMES) | lstm_arrays(encoder)
    tokens.refuse_others()
    encoder.refuse_others()
    return arrays


def read_softmax(
    folder: Path,
) -> tuple[dict[str, np.ndarray], WordVocabulary | None, list[str]]:
    """The softmax and its words, which few models come with, and what was left out of it."""
    if not candidates(folder, SOFTMAX):
        return {}, None, []
    given = Tensors(read_state_dict(find(folder, SOFTMAX)), SOFTMAX)
    if SAMPLED in given:
        weight, bias = given.take(SAMPLED, 2), given.take(SAMPLED_BIAS, 2)
        if bias.shape[1] != 1:
            given.refuse(SAMPLED_BIAS, bias)
        bias = bias[:, 0]
        # part of every such file, and of no probability
        given.left.pop("oov_column", None)
    elif FULL in given:
        weight, bias = given.take(FULL, 2), given.take(FULL_BIAS, 1)
    else:
        return {}, None, [OTHER_SOFTMAX]
    given.refuse_others()
    words = Dictionary.load(find(folder, WORDS_FILE))
    known = dict(zip(("<bos>", "<eos>", "<oov>"), (BEGIN, END, UNKNOWN), strict=True))
    vocabulary = WordVocabulary([known.get(key, key) for key in words.keys])
    return {"softmax/W": weight, "softmax/b": bias}, vocabulary, []


FORMAT = WeightFormat(
    "ELMoForManyLangs", ("*.json", "*.dic", *PICKLES), PICKLES, recognises, open_folder
)
