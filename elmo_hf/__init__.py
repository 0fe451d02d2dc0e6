"""ELMo as a Hugging Face model. Importing it registers it with transformers' Auto classes."""

from pathlib import Path

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
from .embedding import ElmoEmbedder, batch_to_ids
from .hub.bundled import bundled_model, bundled_tagger
from .hub.published import load_published, published_model
from .modeling_elmo import (
    ElmoForPreTraining,
    ElmoForSequenceClassification,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoPreTrainedModel,
    ElmoState,
)
from .pipeline_elmo import ElmoTokenClassificationPipeline, TokenClassification
from .pretraining.scoring import ElmoScorer
from .private_interfaces import ignore_custom_pipelines, register_pipeline
from .tagging.tagger import ElmoTagger
from .tokenization_elmo import ElmoTokenizer
from .word_vocabulary import WordVocabulary

_here = Path(__file__).resolve().parent
if not (_here / "conversion").exists():
    # In a clone the folder is beside this one; only a wheel has it inside. The other folders of the
    # clone become importable below this package as well, which nothing makes use of.
    __path__.append(str(_here.parent))

AutoConfig.register("elmo", ElmoConfig, exist_ok=True)
AutoTokenizer.register(ElmoConfig, tokenizer_class=ElmoTokenizer, exist_ok=True)
AutoModel.register(ElmoConfig, ElmoModel, exist_ok=True)
AutoModelForPreTraining.register(ElmoConfig, ElmoForPreTraining, exist_ok=True)
AutoModelForTokenClassification.register(ElmoConfig, ElmoForTokenClassification, exist_ok=True)
AutoModelForSequenceClassification.register(
    ElmoConfig, ElmoForSequenceClassification, exist_ok=True
)
register_pipeline(TokenClassification)
ignore_custom_pipelines(ElmoConfig)

__all__ = [
    "ElmoConfig",
    "ElmoEmbedder",
    "ElmoForPreTraining",
    "ElmoForSequenceClassification",
    "ElmoForTokenClassification",
    "ElmoModel",
    "ElmoPreTrainedModel",
    "ElmoScorer",
    "ElmoState",
    "ElmoTagger",
    "ElmoTokenClassificationPipeline",
    "ElmoTokenizer",
    "WordVocabulary",
    "__version__",
    "batch_to_ids",
    "bundled_model",
    "bundled_tagger",
    "load_published",
    "published_model",
]
