"""options.json of bilm-tf / AllenNLP <-> `ElmoConfig` keywords, and what the weights say of them.

Names and numbers only: no torch, no h5py, no arrays.
"""

from collections.abc import Mapping
from typing import Any

# options.json path -> ElmoConfig field, and the value of an absent key (... where it must be there)
FIELDS: dict[str, tuple[str, Any]] = {
    "char_cnn.embedding.dim": ("char_embedding_size", ...),
    "char_cnn.filters": ("char_filters", ...),
    "char_cnn.activation": ("char_activation", ...),
    "char_cnn.max_characters_per_token": ("max_characters_per_token", ...),
    "char_cnn.n_highway": ("num_highway_layers", 0),
    "lstm.dim": ("cell_size", ...),
    "lstm.projection_dim": ("projection_size", ...),
    "lstm.n_layers": ("num_hidden_layers", 1),
    "lstm.cell_clip": ("cell_clip", None),
    "lstm.proj_clip": ("projection_clip", None),
    "lstm.use_skip_connections": ("use_skip_connections", False),
}
# with the row of the padding word
NUM_CHARACTERS = 262
# what no shape says, as the published models have it, and the same in words
ASSUMED = {
    "char_activation": "relu",
    "max_characters_per_token": 50,
    "cell_clip": 3.0,
    "projection_clip": 3.0,
    "use_skip_connections": True,
}
ASSUMPTION = (
    "The files do not hold all hyper-parameters of the biLM. Sizes were read from its arrays; the "
    "relu activation, clipping of cells and projections at 3, skip connections and 50 characters "
    "per word are assumed, as in the original ELMo."
)


def _read(options: Mapping, path: str) -> Any:
    value: Any = options
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return ...
        value = value[part]
    return value


def config_from_options(options: Mapping) -> dict[str, Any]:
    """`ElmoConfig` keywords of an options.json; keys that only training reads are left out."""
    if options.get("bidirectional") is False:
        raise ValueError("The options say `bidirectional: false`; ELMo needs both directions.")
    missing = sorted(
        path
        for path, (_, default) in FIELDS.items()
        if default is ... and _read(options, path) is ... and not _is_unused(options, path)
    )
    if missing:
        raise ValueError(f"The options lack {', '.join(missing)}.")
    config = {}
    for path, (field, default) in FIELDS.items():
        value = _read(options, path)
        if value is not ... or not _is_unused(options, path):
            config[field] = default if value is ... else value
    if "char_cnn" not in options and "max_characters_per_token" in options:
        # ELMoForManyLangs cuts words even where it does not read their characters
        config["max_characters_per_token"] = options["max_characters_per_token"]
    return config


def _is_unused(options: Mapping, path: str) -> bool:
    """A word-level model has no characters."""
    return path.startswith("char_cnn.") and "char_cnn" not in options


def options_from_config(config: Any) -> dict[str, Any]:
    """An options.json that AllenNLP, simple_elmo and bilm-tf read; a word-level one bilm-tf's."""
    if config.char_ids == "dictionary" or (config.word_vocab_size and config.use_char_projection):
        raise ValueError(
            "This model knows code points or words by dictionaries, as in ELMoForManyLangs, which "
            "no bilm hdf5 file can hold; use its folder with elmo_hf or transformers."
        )
    fields = {field: getattr(config, field) for field, _ in FIELDS.values()}
    if config.char_ids == "none":
        return {"n_tokens_vocab": config.word_vocab_size - 1, **options_from_fields(fields, False)}
    options = options_from_fields(fields)
    options["char_cnn"]["n_characters"] = NUM_CHARACTERS
    return options


def options_from_fields(
    fields: Mapping[str, Any], with_characters: bool = True
) -> dict[str, dict[str, Any]]:
    """The options that the keywords of an `ElmoConfig` say."""
    options: dict[str, dict[str, Any]] = {"char_cnn": {}} if with_characters else {}
    for path, (field, _) in FIELDS.items():
        # an absent clip means none, and AllenNLP cannot read a null
        if _is_unused(options, path) or fields.get(field) is None:
            continue
        *parents, leaf = path.split(".")
        target: dict[str, Any] = options
        for parent in parents:
            target = target.setdefault(parent, {})
        target[leaf] = fields[field]
    return options


def config_from_shapes(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """The `ElmoConfig` keywords that the shapes of the datasets fix."""
    cell = "RNN_0/RNN/MultiRNNCell/Cell{}/LSTMCell"

    def count(template: str) -> int:
        number = 0
        while template.format(number) in shapes:
            number += 1
        return number

    sizes: dict[str, Any] = {}
    for table in ("char_embed", "code_point_embed"):
        if table in shapes:
            sizes["char_embedding_size"] = shapes[table][-1]
    has_characters = "embedding" not in shapes or any(name.startswith("CNN/") for name in shapes)
    # a shape with too few axes is refused later, by name
    if has_characters:
        sizes["char_filters"] = [
            [*shapes[f"CNN/W_cnn_{number}"][1:2], *shapes[f"CNN/W_cnn_{number}"][-1:]]
            for number in range(count("CNN/W_cnn_{}"))
        ]
        sizes["num_highway_layers"] = count("CNN_high_{}/W_carry")
    sizes["num_hidden_layers"] = count(cell + "/W_0")
    kernel = shapes.get(cell.format(0) + "/W_0")
    if kernel is not None:
        sizes["cell_size"], sizes["projection_size"] = kernel[-1] // 4, kernel[0] // 2
    return sizes


def assumed_options(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """The options of weights that come without any: what shapes say, and assumptions."""
    return options_from_fields(config_from_shapes(shapes) | ASSUMED)


def check_options(config: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse options that disagree with the weights, with both values."""
    in_weights = config_from_shapes(shapes)
    paths = {field: path for path, (field, _) in FIELDS.items()}
    wrong = [
        f"`{paths[field]}` {_plain(config.get(field))!r} where the weights have {_plain(size)}"
        for field, size in in_weights.items()
        if _plain(config.get(field)) != _plain(size)
    ]
    if wrong:
        raise ValueError(f"The options say {'; '.join(wrong)}.")


def _plain(value: Any) -> Any:
    return [_plain(part) for part in value] if isinstance(value, (list, tuple)) else value
