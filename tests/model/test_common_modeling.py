"""transformers' own model, configuration and training suites, on all our model classes.

They come out of the sdist of the installed transformers (`references.py`). What is skipped or
overridden has its reason beside it; everything else runs as transformers runs it.
"""

import sys
import unittest

import torch
from helpers.references import transformers_suites
from helpers.tiny import tiny_config

sys.path.insert(0, str(transformers_suites()))

import tests.test_modeling_common as suite
from tests.test_configuration_common import ConfigTester
from tests.test_modeling_common import (
    ModelTesterMixin,
    ids_tensor,
    random_attention_mask,
)
from tests.test_training_mixin import TrainingTesterMixin

from elmo_hf import (
    ElmoConfig,
    ElmoForPreTraining,
    ElmoForSequenceClassification,
    ElmoForTokenClassification,
    ElmoModel,
)

# The suites know a model's heads by name, from tables of the models inside transformers.
suite.MODEL_MAPPING_NAMES = {**suite.MODEL_MAPPING_NAMES, "elmo": "ElmoModel"}
# by this table the biLM gets a label for each word
suite.MODEL_FOR_MASKED_LM_MAPPING_NAMES = {
    **suite.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    "elmo": "ElmoForPreTraining",
}
suite.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES = {
    **suite.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES,
    "elmo": "ElmoForTokenClassification",
}
suite.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES = {
    **suite.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
    "elmo": "ElmoForSequenceClassification",
}


class ElmoModelTester:
    """A tiny model and random input, in the form the suites ask for."""

    batch_size, seq_length, is_training = 5, 7, True
    hidden_size, num_hidden_layers = 16, 2

    def __init__(self, parent):
        self.parent = parent

    def get_config(self):
        # dropout would keep the training test from overfitting
        return tiny_config(classifier_dropout=0.0, lm_vocab_size=30)

    def prepare_config_and_inputs_for_common(self):
        config = self.get_config()
        shape = [self.batch_size, self.seq_length, config.max_characters_per_token]
        # ids from 1: a row of zeros would be no word
        input_ids = ids_tensor(shape, config.vocab_size - 1) + 1
        mask = random_attention_mask([self.batch_size, self.seq_length])
        return config, {"input_ids": input_ids, "attention_mask": mask}


class ElmoModelTest(ModelTesterMixin, TrainingTesterMixin, unittest.TestCase):
    all_model_classes = (
        ElmoModel,
        ElmoForTokenClassification,
        ElmoForSequenceClassification,
        ElmoForPreTraining,
    )
    # no attention anywhere in ELMo
    has_attentions = False
    # 262 character ids are part of the file format
    test_resize_embeddings = False
    # that test feeds two-dimensional ids
    test_mismatched_shapes = False
    model_tester = None

    def setUp(self):
        self.model_tester = ElmoModelTester(self)
        self.config_tester = ConfigTester(
            self,
            config_class=ElmoConfig,
            has_text_modality=False,
            common_properties=["hidden_size", "num_hidden_layers"],
            projection_size=8,
        )

    def test_config(self):
        self.config_tester.run_common_tests()

    def _get_trainable_model_class(self):
        """The suite would take the first class, which has no loss."""
        return ElmoForTokenClassification

    def _create_text_training_batch(self, batch_size, seq_length, vocab_size):
        """Rows of characters with a class for each word, instead of rows of token ids."""
        words = torch.arange(seq_length) % 19 + 1
        input_ids = words.repeat(batch_size, 1).unsqueeze(-1).repeat(1, 1, 16)
        return {"input_ids": input_ids, "labels": (words % 2).repeat(batch_size, 1)}
