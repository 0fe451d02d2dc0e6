"""The data classes, the indexer, and the embedder with its command."""

import json

import h5py
import numpy as np
import pytest
import torch

from elmo_hf.standin.command import main
from elmo_hf.standin.data import Batch, Instance, TextField, Token, WhitespaceTokenizer
from elmo_hf.standin.elmo import batch_to_ids
from elmo_hf.standin.embedder import ElmoEmbedder
from elmo_hf.standin.errors import ConfigurationError
from elmo_hf.standin.indexer import ELMoCharacterMapper, ELMoTokenCharactersIndexer
from elmo_hf.standin.utilities import Tqdm, lazy_groups_of
from elmo_hf.standin.vocabulary import Vocabulary

SENTENCES = [["The", "bank"], ["lends"]]


class Labels:
    """A field that counts, as those of a program would."""

    def __init__(self, *labels: str):
        self.labels = labels

    def count_vocab_items(self, counter):
        for label in self.labels:
            counter["labels"][label] += 1
            counter["tokens"][label] += 1


def make_batch(sentences):
    indexer = ELMoTokenCharactersIndexer()
    fields = [TextField(list(map(Token, words)), {"elmo": indexer}) for words in sentences]
    return Batch([Instance({"text": field}) for field in fields])


def test_a_batch_becomes_the_ids_of_batch_to_ids():
    batch = make_batch(SENTENCES)
    with pytest.raises(ConfigurationError, match="index"):
        batch.as_tensor_dict()
    batch.index_instances(Vocabulary())
    assert torch.equal(batch.as_tensor_dict()["text"]["elmo"], batch_to_ids(SENTENCES))
    longer = batch.as_tensor_dict({"text": {"elmo_length": 4}})["text"]["elmo"]
    assert longer.shape == (2, 4, 50) and not longer[:, 2:].any()


def test_the_same_in_version_2(monkeypatch):
    monkeypatch.setenv("ELMO_HF_STANDIN_VERSION", "2.10")
    batch = make_batch(SENTENCES)
    batch.index_instances(Vocabulary())
    found = batch.as_tensor_dict()["text"]["elmo"]
    assert found.keys() == {"elmo_tokens"}
    assert torch.equal(found["elmo_tokens"], batch_to_ids(SENTENCES))


def test_fields_must_be_alike_and_of_tokens():
    with pytest.raises(ConfigurationError, match="same fields"):
        Batch([Instance({"text": TextField([])}), Instance({"other": TextField([])})])
    with pytest.raises(ConfigurationError, match="made of tokens"):
        TextField(["a word"])
    with pytest.raises(ConfigurationError, match="have their text"):
        ELMoTokenCharactersIndexer().tokens_to_indices([Token()], None, "x")
    assert [str(token) for token in WhitespaceTokenizer().tokenize("a  b")] == ["a", "b"]


def test_the_mapper_is_called_on_an_instance_or_on_the_class():
    row = ELMoCharacterMapper.convert_word_to_char_ids("a")
    assert row == ELMoCharacterMapper().convert_word_to_char_ids("a") and len(row) == 50
    added = ELMoCharacterMapper({"<first>": 1})
    assert added.convert_word_to_char_ids("<first>")[:3] == [259, 2, 260]
    assert ELMoCharacterMapper() != added and added == ELMoCharacterMapper({"<first>": 1})
    assert ELMoCharacterMapper.beginning_of_sentence_characters[:4] == [258, 256, 259, 260]


def test_a_vocabulary_counts_cuts_and_is_saved(tmp_path):
    instances = [Instance({"labels": Labels(*"bbbaac")})]
    known = Vocabulary.from_instances(instances, min_count={"tokens": 2})
    assert known.get_index_to_token_vocabulary("labels") == {0: "b", 1: "a", 2: "c"}
    assert list(known.get_token_to_index_vocabulary()) == ["@@PADDING@@", "@@UNKNOWN@@", "b", "a"]
    assert known.get_token_index("c") == 1 and known.get_token_from_index(2) == "b"
    with pytest.raises(KeyError):
        known.get_token_index("unknown", "labels")
    assert known.add_token_to_namespace("line\nend") == 4 == known.get_vocab_size() - 1
    known.save_to_files(tmp_path)
    assert Vocabulary.from_files(tmp_path) == known
    assert Vocabulary.from_instances(instances, max_vocab_size=1).get_vocab_size("labels") == 1


def test_words_keep_the_numbers_of_their_lines(tmp_path):
    known = Vocabulary(tokens_to_add={"tokens": ["a", "", "b", "c\r", "d"]})
    known.save_to_files(tmp_path / "saved")
    assert Vocabulary.from_files(tmp_path / "saved") == known
    (tmp_path / "saved" / "tokens.txt").write_text("b\n@@UNKNOWN@@\nb\na\n")
    again = Vocabulary.from_files(tmp_path / "saved")
    assert again.get_token_index("a") == 4 and again.get_token_index("b") == 3
    assert again.get_token_index("unknown") == 2


def test_tokens_are_tuples():
    assert len({Token("a"), Token("a"), Token("b")}) == 2
    assert Token("a")._replace(idx=1) == Token("a", 1) and str(Token("a")) == "a"


def test_a_sentence_may_be_an_array(fixture_files):
    embedder = ElmoEmbedder(*fixture_files)
    [array] = embedder.embed_batch([np.array(["a", "b"])])
    assert array.shape[1] == 2 and embedder.embed_sentence(np.array(["a"])).shape[1] == 1


def test_groups_and_progress():
    assert list(lazy_groups_of(range(5), 2)) == [[0, 1], [2, 3], [4]]
    assert list(Tqdm.tqdm([1, 2], disable=True)) == [1, 2]


def test_subclasses_of_the_embedder_may_replace_a_step(fixture_files):
    class Doubled(ElmoEmbedder):
        def batch_to_embeddings(self, batch):
            embeddings, mask = super().batch_to_embeddings(batch)
            return 2 * embeddings, mask

    plain, doubled = ElmoEmbedder(*fixture_files), Doubled(*fixture_files)
    first, second = (list(each.embed_sentences(SENTENCES, 1)) for each in (plain, doubled))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(2 * one, other)
        assert one.dtype == np.float32
    assert plain.embed_sentence([]).shape == (3, 0, 1024)
    assert plain.embed_batch([["a"], []])[1].dtype == np.float64
    # as in AllenNLP, a string is a sentence of letters
    assert plain.embed_sentence("abc").shape == (3, 3, 32)


@pytest.mark.parametrize("chosen, shape", [("--all", (3, 2, 32)), ("--top", (2, 32))])
def test_the_command_writes_what_allennlps_wrote(tmp_path, fixture_files, chosen, shape):
    text, output = tmp_path / "text.txt", tmp_path / "new" / "out.hdf5"
    text.write_text("The bank\nlends\n")
    options, weights = fixture_files
    files = ["--options-file", options, "--weight-file", weights]
    main(arguments=["elmo", str(text), str(output), chosen, "--batch-size", "1", *files])
    with h5py.File(output) as found:
        assert found["0"].shape == shape and found["0"].dtype == np.float32
        assert json.loads(found["sentence_to_index"][0]) == {"The bank": "0", "lends": "1"}


def test_sentences_as_keys_must_differ(tmp_path, fixture_files):
    (tmp_path / "text.txt").write_text("a\na\n")
    embedder = ElmoEmbedder(*fixture_files)
    with pytest.raises(ConfigurationError, match="the same sentence twice"):
        embedder.embed_file(
            (tmp_path / "text.txt").open(), str(tmp_path / "x.hdf5"), use_sentence_keys=True
        )


@pytest.mark.parametrize(
    "arguments, message", [([], "required: COMMAND"), (["train"], "COMMAND: inv")]
)
def test_the_program_names_what_is_missing(capsys, arguments, message):
    with pytest.raises(SystemExit):
        main(arguments=arguments)
    assert message in capsys.readouterr().err
