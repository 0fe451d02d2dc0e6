"""A plugin of pytest: the parts of AllenNLP that its tests of ELMo need and that are not ELMo.

The stand-in does not have them. They are put beside it, for these tests only.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from unittest import TestCase

import torch
from helpers.references import allennlp_fixtures

from elmo_hf.standin.data import Batch, Instance
from elmo_hf.standin.utilities import lazy_groups_of

FIXTURES = allennlp_fixtures().parent


class AllenNlpTestCase(TestCase):
    FIXTURES_ROOT = FIXTURES

    def setUp(self):
        self.TEST_DIR = Path(tempfile.mkdtemp())

    def tearDown(self):
        shutil.rmtree(self.TEST_DIR)


class SingleIdTokenIndexer:
    """A number for each word."""

    def count_vocab_items(self, token, counter) -> None:
        counter["tokens"][token.text] += 1

    def tokens_to_indices(self, tokens, vocabulary, index_name) -> dict[str, list[int]]:
        return {index_name: [vocabulary.get_token_index(token.text) for token in tokens]}

    def get_token_min_padding_length(self) -> int:
        return 0

    def as_padded_tensor(self, tokens, desired_num_tokens, padding_lengths):
        padded = {}
        for name, numbers in tokens.items():
            missing = desired_num_tokens[name] - len(numbers)
            padded[name] = torch.tensor(numbers + [0] * missing)
        return padded


class BasicIterator:
    """Batches in the given order."""

    def __init__(self, batch_size: int):
        self.batch_size = batch_size

    def index_with(self, vocab) -> None:
        self.vocab = vocab

    def __call__(
        self, instances: Iterable[Instance], num_epochs: int, shuffle: bool
    ) -> Iterator[dict]:
        assert num_epochs == 1 and not shuffle
        for group in lazy_groups_of(instances, self.batch_size):
            batch = Batch(group)
            batch.index_instances(self.vocab)
            yield batch.as_tensor_dict()


def add_module(name: str, **members: object) -> None:
    module = ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module


def pytest_configure() -> None:
    add_module("allennlp.common.testing", AllenNlpTestCase=AllenNlpTestCase)
    name = "allennlp.data.token_indexers.single_id_token_indexer"
    add_module(name, SingleIdTokenIndexer=SingleIdTokenIndexer)
    add_module("allennlp.data.iterators", BasicIterator=BasicIterator)
    # the second of their files imports the first
    add_module("allennlp.tests", __path__=[str(FIXTURES.parent)])
