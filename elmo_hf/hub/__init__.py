"""Model folders: the bundled model, model cards, and publishing on the Hugging Face Hub."""

from elmo_hf.hub.bundled import (
    BUNDLED,
    bundled_model,
    bundled_tagger,
    bundled_tasks,
    find_model,
    find_tagger,
)
from elmo_hf.hub.cards import tagger_card
from elmo_hf.hub.loading import load_elmo, load_model, make_tokenizer
from elmo_hf.hub.publish import publish
from elmo_hf.hub.published import load_published, published_model
from elmo_hf.hub.registry import PublishedModel, Registry, read_registry

__all__ = [
    "BUNDLED",
    "PublishedModel",
    "Registry",
    "bundled_model",
    "bundled_tagger",
    "bundled_tasks",
    "find_model",
    "find_tagger",
    "load_elmo",
    "load_model",
    "load_published",
    "make_tokenizer",
    "publish",
    "published_model",
    "read_registry",
    "tagger_card",
]
