"""Model folders: the bundled model, model cards, and publishing on the Hugging Face Hub."""

from elmo_hf.hub.bundled import BUNDLED, bundled_model, bundled_tagger, find_model, find_tagger
from elmo_hf.hub.publish import publish

__all__ = ["BUNDLED", "bundled_model", "bundled_tagger", "find_model", "find_tagger", "publish"]
