"""ELMo as a Hugging Face model. Importing it registers it with transformers' Auto classes."""

from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForPreTraining,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
)

from ._version import __version__
from .configuration_elmo import ElmoConfig
from .embedder import ElmoEmbedder, batch_to_ids
from .modeling_elmo import (
    ElmoForPreTraining,
    ElmoForSequenceClassification,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoPreTrainedModel,
    ElmoState,
)
from .tagger import ElmoTagger
from .tokenization_elmo import ElmoTokenizer
from .word_vocabulary import WordVocabulary

AutoConfig.register("elmo", ElmoConfig, exist_ok=True)
AutoTokenizer.register(ElmoConfig, tokenizer_class=ElmoTokenizer, exist_ok=True)
AutoModel.register(ElmoConfig, ElmoModel, exist_ok=True)
AutoModelForPreTraining.register(ElmoConfig, ElmoForPreTraining, exist_ok=True)
AutoModelForTokenClassification.register(ElmoConfig, ElmoForTokenClassification, exist_ok=True)
AutoModelForSequenceClassification.register(
    ElmoConfig, ElmoForSequenceClassification, exist_ok=True
)

__all__ = [
    "ElmoConfig",
    "ElmoEmbedder",
    "ElmoForPreTraining",
    "ElmoForSequenceClassification",
    "ElmoForTokenClassification",
    "ElmoModel",
    "ElmoPreTrainedModel",
    "ElmoState",
    "ElmoTagger",
    "ElmoTokenizer",
    "WordVocabulary",
    "__version__",
    "batch_to_ids",
]
