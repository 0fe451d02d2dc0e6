"""Archives of AllenNLP: model.tar.gz, or the folder of a training, with ELMo inside a task's model.

The biLM is found in the weights by its names. Of the taggers, those are taken whole whose head is
one of ours; of every other model, the biLM and its mixes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from elmo_hf.conversion.allennlp_names import (
    Tensors,
    TokenEncoderNames,
    lstm_arrays,
    token_encoder_arrays,
)
from elmo_hf.conversion.formats._format import Mix, WeightFormat, Weights
from elmo_hf.conversion.formats.allennlp_taggers import (
    LABEL_FILES,
    UnknownConstraintsError,
    tagger_head,
)
from elmo_hf.conversion.options_map import ASSUMPTION, NUM_CHARACTERS, assumed_options
from elmo_hf.conversion.torch_file import read_state_dict
from elmo_hf.system.untrusted import read_json

CONFIG = "config.json"
# of an archive, and of a training that was not archived
WEIGHTS = ("weights.th", "best.th")
# archives of AllenNLP before 1.0 may hold the options of the biLM, named by a path of config.json
OPTIONS = "*.options_file"
# what ELMo's names in any model end with
CHARACTERS = "_elmo_lstm._token_embedder._char_embedding_weights"
ENCODER, LSTM = "_elmo_lstm._token_embedder.", "_elmo_lstm._elmo_lstm."
NAMES = TokenEncoderNames("char_conv_{}", "_highways._layers.{}", "_projection")
# before the names of an ELMo that is a part of the model itself, as in
# biattentive_classification_network
OWN = "_elmo."
CACHED = "_elmo_lstm._word_embedding.weight"
MIX = re.compile(r"scalar_mix_(\d+)\.(gamma|scalar_parameters\.(\d+))")


def recognises(names: Sequence[str]) -> bool:
    return CONFIG in names and any(name in names for name in WEIGHTS)


@contextmanager
def open_folder(folder: Path, named: Mapping[str, Path | None]) -> Iterator[Weights]:
    config_file = find_one(folder, CONFIG)
    weight_file = find_one(folder, *WEIGHTS)
    config, tensors = read_json(config_file), read_state_dict(weight_file)
    prefix = find_elmo(weight_file, tensors)
    own = {n.removeprefix(prefix): part for n, part in tensors.items() if n.startswith(prefix)}
    others = {name: part for name, part in tensors.items() if not name.startswith(prefix)}
    arrays, mixes = bilm_arrays(own, weight_file), task_mixes(own)
    options_file = named.get("options_file") or next(iter(sorted(folder.rglob(OPTIONS))), None)
    if options_file is None:
        options = assumed_options({key: array.shape for key, array in arrays.items()})
    else:
        options = read_json(options_file)
    notes = [ASSUMPTION] if options_file is None else []
    embedder = embedder_settings(config, prefix)
    head = None
    # a tagger has one mix; our head would read several
    if len(mixes) == 1:
        try:
            head = tagger_head(config, embedder, others, folder)
        except UnknownConstraintsError as error:
            notes.append(str(error))
    if head is None and others:
        notes.append(left_out(config, others))
    yield Weights(
        options,
        arrays,
        {"options_file": config_file, "weight_file": weight_file},
        mixes=mixes,
        notes=tuple(notes),
        settings={"mix_layer_norm": embedder.get("do_layer_norm") is True},
        head=head,
    )


def find_one(folder: Path, *names: str) -> Path:
    """The file of the first of these names; if there are several, the one nearest to the top."""
    for name in names:
        found = sorted(folder.rglob(name), key=lambda path: (len(path.parts), path))
        if found:
            return found[0]
    raise FileNotFoundError(f"The archive holds no {' and no '.join(names)}.")


def find_elmo(file: Path, tensors: Mapping[str, Any]) -> str:
    """What comes before ELMo's own names."""
    prefixes = [name.removesuffix(CHARACTERS) for name in tensors if name.endswith(CHARACTERS)]
    if not prefixes:
        if any("_contextualizer." in name for name in tensors):
            raise ValueError(
                f"{file.name!r} holds a transformer ELMo, which is not made of LSTMs and cannot be "
                "converted."
            )
        raise ValueError(f"{file.name!r} holds no ELMo.")
    if len(prefixes) > 1:
        raise ValueError(
            f"{file.name!r} holds {len(prefixes)} ELMos; convert the files that each of them was "
            "made from, with --alignment if there is one."
        )
    return prefixes[0]


def bilm_arrays(own: Mapping[str, np.ndarray], file: Path) -> dict[str, np.ndarray]:
    """ELMo's tensors in the layout of bilm-tf's hdf5 files."""
    parts: dict[str, dict[str, np.ndarray]] = {CHARACTERS: {}, ENCODER: {}, LSTM: {}, "": {}}
    for name, tensor in own.items():
        if not MIX.fullmatch(name) and name != CACHED:
            part = next(part for part in parts if name.startswith(part))
            parts[part][name.removeprefix(part)] = tensor
    table, encoder, lstm, others = (Tensors(part, file.name) for part in parts.values())
    characters = table.take("", 2)
    # its first row is that of padding
    arrays = {"char_embed": characters[1:] if len(characters) == NUM_CHARACTERS else characters}
    arrays |= token_encoder_arrays(encoder, NAMES) | lstm_arrays(lstm)
    for part in (table, encoder, lstm, others):
        part.refuse_others()
    return arrays


def task_mixes(own: Mapping[str, np.ndarray]) -> tuple[Mix, ...]:
    """The mixes, in their order; the shapes of their numbers are (1,) each."""
    found: dict[int, dict[int, float]] = {}
    for name, tensor in own.items():
        if match := MIX.fullmatch(name):
            if tensor.size != 1:
                raise ValueError(f"The archive's {name!r} holds {tensor.size} numbers, not 1.")
            layer = -1 if match[3] is None else int(match[3])
            found.setdefault(int(match[1]), {})[layer] = float(tensor.item())
    mixes: list[Mix] = []
    for number, mix in sorted(found.items()):
        gamma, *scalars = [mix[layer] for layer in sorted(mix)]
        if sorted(mix) != list(range(-1, len(scalars))) or number != len(mixes):
            raise ValueError(f"The archive's mix {number} of the layers lacks some of its numbers.")
        mixes.append(Mix(gamma, tuple(scalars)))
    return tuple(mixes)


def embedder_settings(config: Mapping[str, Any], prefix: str) -> Mapping[str, Any]:
    """
    What the configuration says of ELMo: under a key that is a part of the prefix, or under `elmo`
    if the model holds it beside its embedder of text.
    """
    part: Any = config.get("model")
    key = "elmo" if prefix == OWN else None
    if match := re.search(r"token_embedder_(.+?)\._elmo\.$", prefix):
        key = match[1]
        for outer in ("text_field_embedder", "token_embedders"):
            part = part.get(outer, part) if isinstance(part, Mapping) else {}
    part = part.get(key) if isinstance(part, Mapping) else None
    return part if isinstance(part, Mapping) else {}


def left_out(config: Mapping[str, Any], others: Mapping[str, Any]) -> str:
    """What was not taken of a model, in one sentence."""
    model = config.get("model")
    kind = model.get("type") if isinstance(model, Mapping) else None
    parts: dict[str, None] = {}
    for name in others:
        words = name.split(".")
        parts[".".join(words[:2] if "embedder" in words[0] else words[:1])[:60]] = None
    named = ", ".join([*parts][:8]) + (", ..." if len(parts) > 8 else "")
    return (
        f"Only the biLM and its mixes were taken out of the archive ({str(kind)[:60]}); left out: "
        f"{named}."
    )


FORMAT = WeightFormat(
    "AllenNLP archive", (CONFIG, *WEIGHTS, OPTIONS, *LABEL_FILES), WEIGHTS, recognises, open_folder
)
