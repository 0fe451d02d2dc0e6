# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The table: which modules of AllenNLP and simple_elmo are stood in for, and what is in them.

A module that is not here is not imitated, and importing it says so.
"""

HERE = "elmo_hf.standin"

# the module of theirs -> its names, and the modules of ours that they are in
SURFACE: dict[str, dict[str, str]] = {
    "allennlp": {},
    "allennlp.run": {"main": "command"},
    "allennlp.commands": {"main": "command"},
    "allennlp.commands.elmo": {
        "DEFAULT_BATCH_SIZE": "embedder",
        "DEFAULT_OPTIONS_FILE": "embedder",
        "DEFAULT_WEIGHT_FILE": "embedder",
        "ElmoEmbedder": "embedder",
        "batch_to_ids": "elmo",
        "empty_embedding": "embedder",
        # what it imports itself, which old code takes from here
        "ConfigurationError": "errors",
        "ELMoTokenCharactersIndexer": "indexer",
        "_ElmoBiLm": "bilm",
        "lazy_groups_of": "utilities",
        "remove_sentence_boundaries": "boundaries",
    },
    "allennlp.common": {},
    "allennlp.common.checks": {"ConfigurationError": "errors"},
    "allennlp.common.file_utils": {"cached_path": "files"},
    "allennlp.common.tqdm": {"Tqdm": "utilities"},
    "allennlp.common.util": {"lazy_groups_of": "utilities"},
    "allennlp.data": {
        "Batch": "data",
        "Instance": "data",
        "Token": "data",
        "Vocabulary": "vocabulary",
    },
    "allennlp.data.batch": {"Batch": "data"},
    "allennlp.data.dataset": {"Batch": "data"},
    "allennlp.data.fields": {"TextField": "data"},
    "allennlp.data.fields.text_field": {"TextField": "data"},
    "allennlp.data.instance": {"Instance": "data"},
    "allennlp.data.token_indexers": {"ELMoTokenCharactersIndexer": "indexer"},
    "allennlp.data.token_indexers.elmo_indexer": {
        "ELMoCharacterMapper": "indexer",
        "ELMoTokenCharactersIndexer": "indexer",
    },
    "allennlp.data.tokenizers": {"Token": "data", "WhitespaceTokenizer": "data"},
    "allennlp.data.tokenizers.token": {"Token": "data"},
    "allennlp.data.tokenizers.token_class": {"Token": "data"},
    "allennlp.data.tokenizers.whitespace_tokenizer": {"WhitespaceTokenizer": "data"},
    "allennlp.data.vocabulary": {
        "DEFAULT_OOV_TOKEN": "vocabulary",
        "DEFAULT_PADDING_TOKEN": "vocabulary",
        "Vocabulary": "vocabulary",
    },
    "allennlp.modules": {"Elmo": "elmo", "ScalarMix": "scalar_mix"},
    "allennlp.modules.elmo": {
        "ELMoCharacterMapper": "indexer",
        "ELMoTokenCharactersIndexer": "indexer",
        "Elmo": "elmo",
        "ScalarMix": "scalar_mix",
        "_ElmoBiLm": "bilm",
        "_ElmoCharacterEncoder": "character_encoder",
        "batch_to_ids": "elmo",
        # what it imports itself
        "Batch": "data",
        "ConfigurationError": "errors",
        "Instance": "data",
        "TextField": "data",
        "Token": "data",
        "Vocabulary": "vocabulary",
        "add_sentence_boundary_token_ids": "boundaries",
        "cached_path": "files",
        "lazy_groups_of": "utilities",
        "remove_sentence_boundaries": "boundaries",
    },
    "allennlp.modules.scalar_mix": {"ScalarMix": "scalar_mix"},
    "allennlp.modules.token_embedders": {"ElmoTokenEmbedder": "elmo"},
    "allennlp.modules.token_embedders.elmo_token_embedder": {"ElmoTokenEmbedder": "elmo"},
    "allennlp.nn": {},
    "allennlp.nn.util": {
        "add_sentence_boundary_token_ids": "boundaries",
        "remove_sentence_boundaries": "boundaries",
    },
    "simple_elmo": {"ElmoModel": "simple_elmo", "divide_chunks": "simple_elmo"},
    "simple_elmo.elmo_helpers": {"ElmoModel": "simple_elmo", "divide_chunks": "simple_elmo"},
}
ROOTS = ("allennlp", "simple_elmo")


def is_package(module: str) -> bool:
    return any(name.startswith(f"{module}.") for name in SURFACE)


def missing_module(module: str) -> str:
    """What importing a module that is not covered says."""
    root = module.partition(".")[0]
    known = ", ".join(name for name in SURFACE if name.startswith(root) and SURFACE[name])
    return (
        f"No module named {module!r}: the stand-in of elmo_hf for {root} covers only what is about "
        f"ELMo, which is in {known}."
    )


def missing_name(module: str, name: str) -> str:
    """What importing a name that is not covered says."""
    names = ", ".join(sorted(SURFACE[module])) or "no names of its own"
    return (
        f"cannot import name {name!r} from {module!r}: the stand-in of elmo_hf covers there only "
        f"{names}."
    )
