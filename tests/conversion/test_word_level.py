import json
import shutil

import h5py
import numpy as np
import pytest
import torch
from helpers.tensor_bundle import checkpoint_variables, write_bundle
from helpers.word_level import OPTIONS, WORDS, write_word_level
from safetensors.torch import load_file

from elmo_hf import ElmoEmbedder, ElmoForPreTraining, ElmoModel, ElmoTokenizer
from elmo_hf.conversion import reference_elmo
from elmo_hf.conversion.convert_allennlp_to_hf import convert
from elmo_hf.conversion.export_hf_to_allennlp import export
from elmo_hf.conversion.weights_file import write_weights
from elmo_hf.pretraining.model import continued_model
from elmo_hf.word_vocabulary import WordVocabulary


def test_words_are_looked_up_and_the_file_goes_back(tmp_path):
    arrays = write_word_level(tmp_path / "source")
    convert(str(tmp_path / "source"), output_dir=tmp_path / "elmo")
    words = ["the", "unknown", "bank", "x" * 60, "\u00a0", "."]
    numbers = {"words": {word: number for number, word in enumerate(WORDS)}}
    expected, _ = reference_elmo.run(arrays, OPTIONS, words, dictionaries=numbers)
    found = ElmoEmbedder(tmp_path / "elmo").embed([words])[0]
    assert np.abs(found - expected).max() / np.abs(expected).max() < 1e-6
    # the token layer is the table itself
    assert np.array_equal(found[0, 1, :8], arrays["embedding"][WORDS.index("<UNK>")])
    assert ElmoModel.from_pretrained(tmp_path / "elmo").token_encoder.projection is None

    export(str(tmp_path / "elmo"), output_dir=tmp_path / "back")
    with h5py.File(tmp_path / "back" / "model.hdf5") as file:
        for key, array in arrays.items():
            np.testing.assert_allclose(file[key][()], array, atol=1e-6 if key[-1] == "B" else 0)
        assert "char_embed" not in file
    options = json.loads((tmp_path / "back" / "options.json").read_text())
    assert options == OPTIONS
    vocabulary = (tmp_path / "back" / "vocab.txt").read_text(encoding="utf-8")
    assert vocabulary == "\n".join(WORDS) + "\n"


@pytest.mark.parametrize("words", [WORDS, ["<S>", "</S>", "<UNK>", "other"]])
def test_a_softmax_over_its_own_words_comes_back(tmp_path, words):
    """As after further pretraining, with the words of the model or with others."""
    write_word_level(tmp_path / "source")
    convert(str(tmp_path / "source"), output_dir=tmp_path / "elmo")
    model = continued_model(str(tmp_path / "elmo"), WordVocabulary(words))
    model.save_pretrained(tmp_path / "continued")
    export(str(tmp_path / "continued"), output_dir=tmp_path / "hdf5")
    assert (tmp_path / "hdf5" / "softmax_vocab.txt").exists() is (words != WORDS)
    convert(str(tmp_path / "hdf5"), output_dir=tmp_path / "again")
    again = ElmoForPreTraining.from_pretrained(tmp_path / "again")
    assert again.vocabulary.words == words and again.elmo.dictionaries.words.keys == WORDS
    assert torch.equal(again.softmax.weight, model.softmax.weight)


def test_tokens_are_words(tmp_path):
    write_word_level(tmp_path / "source")
    convert(str(tmp_path / "source"), output_dir=tmp_path / "elmo")
    tokenizer = ElmoTokenizer.from_pretrained(tmp_path / "elmo")
    ids = tokenizer([["the", "nothing", "<S>"], ["."]], is_split_into_words=True, padding=True)
    assert ids["input_ids"] == [[[4], [3], [1]], [[8], [0], [0]]]
    assert tokenizer.convert_ids_to_tokens(ids["input_ids"][0]) == ["the", "<UNK>", "<S>"]
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.vocab_size) == (1, 2, 9)
    assert tokenizer.get_vocab()["bank"] == 5
    assert tokenizer.convert_tokens_to_ids(["bank"]) == [[5]]


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        (None, OPTIONS, "give --vocab-file"),
        (WORDS[:-1], OPTIONS, "7 words but the weights have 8"),
        (WORDS[3:], OPTIONS, "no line <S>"),
        (WORDS, {**OPTIONS, "char_cnn": {}}, "model of words, but the options describe"),
        (WORDS, {"lstm": {"dim": 12}}, "lstm.projection_dim"),
    ],
)
def test_what_does_not_fit_is_one_sentence(tmp_path, words, options, message):
    write_word_level(tmp_path / "source", words, options)
    with pytest.raises(ValueError, match=message):
        convert(str(tmp_path / "source"), output_dir=tmp_path / "elmo")
    assert not (tmp_path / "elmo").exists()


def softmax_of(table):
    return {"softmax/W": table, "softmax/b": np.linspace(-1, 1, len(WORDS), dtype=np.float32)}


@pytest.mark.parametrize("shared", [False, True])
def test_a_checkpoint_is_its_hdf5_file(tmp_path, shared):
    """With `share_embedding_softmax`, a checkpoint has the table of words once."""
    arrays = write_word_level(tmp_path / "hdf5")
    softmax = softmax_of(arrays["embedding"] if shared else arrays["embedding"][::-1])
    write_weights(tmp_path / "hdf5" / "softmax.hdf5", softmax.items())
    (tmp_path / "checkpoint").mkdir()
    if shared:
        del softmax["softmax/W"]
    write_bundle(tmp_path / "checkpoint", "model.ckpt-7", checkpoint_variables(arrays | softmax))
    for name in ("options.json", "vocab.txt"):
        shutil.copy(tmp_path / "hdf5" / name, tmp_path / "checkpoint" / name)
    for kind in ("hdf5", "checkpoint"):
        convert(str(tmp_path / kind), output_dir=tmp_path / f"out-{kind}")
    one, other = (
        load_file(tmp_path / f"out-{kind}" / "model.safetensors") for kind in ("hdf5", "checkpoint")
    )
    assert one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)
    sums = tmp_path / "out-checkpoint" / "optimizer.safetensors"
    assert sums.exists() is not shared
    if not shared:
        kept = load_file(sums)["elmo.token_encoder.word_embeddings.weight"].numpy()
        # the row of "no word" is ours
        np.testing.assert_array_equal(kept[1:], 1 + arrays["embedding"] ** 2)
        assert (kept[0] == 1).all()
