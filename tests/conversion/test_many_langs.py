import json
import pickle
import shutil
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.many_langs import (
    CHARACTERS,
    WORDS,
    expected_layers,
    random_tensors,
    write_dictionary,
    write_many_langs,
)
from helpers.pretraining import start_training
from transformers import AutoModel, AutoTokenizer

from elmo_hf import (
    ElmoConfig,
    ElmoEmbedder,
    ElmoForPreTraining,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoScorer,
    ElmoTokenizer,
)
from elmo_hf.conversion.convert_allennlp_to_hf import convert
from elmo_hf.conversion.export_hf_to_allennlp import export
from elmo_hf.dictionaries import Dictionaries, Dictionary, DictionaryRows
from elmo_hf.export import PaddedElmo
from elmo_hf.hub import make_tokenizer
from elmo_hf.hub.loading import saved_class
from elmo_hf.remote_code import add_code

SENTENCES = [["the", "bank", "xyz", "北京", "."], ["abcdefgabcdefg", "<pad>"], []]


def relative(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """A model as published, with words and characters, and its tensors."""
    folder = tmp_path_factory.mktemp("many_langs")
    tensors = write_many_langs(folder / "source")
    convert(str(folder / "source"), output_dir=folder / "elmo")
    return folder / "elmo", tensors


@pytest.mark.parametrize(
    ("sizes", "layout", "old_form"),
    [
        ({}, None, True),
        ({}, {"token_embedder": {"activation": "tanh", "max_characters_per_token": 8}}, False),
        ({"word_dim": 0}, None, False),
        ({"char_dim": 0}, {"token_embedder": {"max_characters_per_token": 5}}, True),
    ],
    ids=["as published", "tanh, 8 characters", "no words", "no characters"],
)
def test_layers_are_those_of_the_original_computation(tmp_path, sizes, layout, old_form):
    tensors = write_many_langs(tmp_path / "source", layout, old_form=old_form, **sizes)
    convert(str(tmp_path / "source"), output_dir=tmp_path / "elmo")
    settings = (layout or {}).get("token_embedder", {})
    width = settings.get("max_characters_per_token", 50)
    found = ElmoEmbedder(tmp_path / "elmo").embed(SENTENCES)
    model = ElmoModel.from_pretrained(tmp_path / "elmo").eval()
    tokenizer = ElmoTokenizer.from_pretrained(tmp_path / "elmo")
    batch = tokenizer(SENTENCES, is_split_into_words=True, padding=True, return_tensors="pt")
    assert not batch["input_ids"][2].any()
    with torch.no_grad():
        layers = torch.stack(model(**batch, output_hidden_states=True).hidden_states, dim=1)
    for number, words in enumerate(SENTENCES[:2]):
        expected = expected_layers(tensors, words, width, settings.get("activation") == "tanh")
        assert relative(found[number], expected) < 1e-6
        assert relative(layers[number, :, : len(words)].numpy(), expected) < 1e-6
    assert not layers[1, :, 2:].any()


def test_a_zip_with_a_folder_inside_is_converted(tmp_path):
    write_many_langs(tmp_path / "source")
    with zipfile.ZipFile(tmp_path / "162.zip", "w") as archive:
        for file in (tmp_path / "source").iterdir():
            archive.write(file, f"model/{file.name}")
    convert(str(tmp_path / "162.zip"), output_dir=tmp_path / "elmo")
    card = (tmp_path / "elmo" / "README.md").read_text()
    assert "token_embedder.pkl" in card and "char.dic" in card
    assert "clips of 3 and 50 characters per word are assumed" in card


def test_rows_have_swapped_markers_and_cut_words(converted):
    tokenizer = ElmoTokenizer.from_pretrained(converted[0])
    number = {key: place + 1 for place, key in enumerate(CHARACTERS)}
    row = tokenizer([["bank"]], is_split_into_words=True)["input_ids"][0][0]
    characters = [number[c] if c in number else number["<oov>"] for c in "bank"]
    assert row[:7] == [WORDS.index("bank") + 1, number["<eow>"], *characters, number["<bow>"]]
    assert set(row[7:]) == {number["<pad>"]} and len(row) == 51
    assert (
        tokenizer.rows.boundaries["<bos>"]
        == ElmoConfig.from_pretrained(converted[0]).boundary_rows[0]
    )
    small = DictionaryRows(tokenizer.dictionaries, 5)
    # the cut form is looked up
    assert small.encode("theatre")[0] == WORDS.index("the") + 1
    assert small.encode("bank")[0] == 1


def test_words_come_back_from_their_rows(converted):
    tokenizer = ElmoTokenizer.from_pretrained(converted[0])
    ids = tokenizer([["the", "fab", "fxb", "<bos>"]], is_split_into_words=True, padding=True)
    words = tokenizer.convert_ids_to_tokens(ids["input_ids"][0])
    assert words == ["the", "fab", "f\ufffdb", "<bos>"]
    assert tokenizer.decode(ids["input_ids"], skip_special_tokens=True) == ["the fab f\ufffdb"]
    assert tokenizer.bos_token == "<bos>" and tokenizer.pad_token_id == 0
    vocabulary = tokenizer.get_vocab()
    assert sorted(vocabulary.values()) == list(range(tokenizer.vocab_size))
    assert tokenizer.convert_ids_to_tokens(vocabulary["<U+0061>"]) == "<U+0061>"
    assert tokenizer.convert_tokens_to_ids("a") == tokenizer.rows.encode("a")


def test_saved_again_and_loaded_by_auto_classes(tmp_path, converted):
    model = AutoModel.from_pretrained(converted[0])
    AutoTokenizer.from_pretrained(converted[0]).save_pretrained(tmp_path / "again")
    model.save_pretrained(tmp_path / "again")
    for name in ("char.dic", "word.dic"):
        assert (tmp_path / "again" / name).read_bytes() == (converted[0] / name).read_bytes()
    same = ElmoEmbedder(tmp_path / "again").embed(SENTENCES)[0]
    assert np.array_equal(same, ElmoEmbedder(model).embed(SENTENCES)[0])
    add_code(tmp_path / "again")
    assert (tmp_path / "again" / "dictionaries.py").exists()


def test_a_tagger_learns_on_it_and_carries_the_dictionaries(tmp_path, converted):
    tagger = ElmoForTokenClassification.from_pretrained(converted[0], num_labels=2)
    batch = make_tokenizer(tagger)([["the", "bank"]], is_split_into_words=True, return_tensors="pt")
    optimizer = torch.optim.Adam(tagger.parameters(), 0.01)
    labels = torch.tensor([[0, 1]])
    losses = []
    for _ in range(8):
        loss = tagger(**batch, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    # "no word" has no vector, whatever is learnt
    assert not tagger.elmo.token_encoder.word_embeddings.weight[0].any()
    tagger.save_pretrained(tmp_path)
    assert ElmoForTokenClassification.from_pretrained(tmp_path).elmo.dictionaries is not None


def test_the_padded_network_agrees(converted):
    model = ElmoModel.from_pretrained(converted[0]).eval()
    batch = make_tokenizer(model)(
        SENTENCES, is_split_into_words=True, padding=True, return_tensors="pt"
    )
    with torch.no_grad():
        _, layers = PaddedElmo(model)(**batch)
        expected = model(**batch, output_hidden_states=True).hidden_states
    torch.testing.assert_close(layers, torch.stack(expected, dim=1), rtol=0, atol=1e-5)


def test_the_softmax_comes_along_and_scores(tmp_path):
    write_many_langs(tmp_path / "source", with_softmax=True)
    convert(str(tmp_path / "source"), output_dir=tmp_path / "elmo")
    model = ElmoForPreTraining.from_pretrained(tmp_path / "elmo")
    assert model.vocabulary.words[:4] == ["<UNK>", "<S>", "</S>", "<pad>"]
    assert (model.config.lm_begin_id, model.config.lm_end_id) == (1, 2)
    expected = random_tensors()["classifier"]["column_emb.weight"]
    assert torch.equal(model.softmax.weight.detach(), expected)
    scorer = ElmoScorer(model)
    ids, _ = scorer.encode([["the", "xyz"]])
    tokenizer = ElmoTokenizer.from_pretrained(tmp_path / "elmo")
    same = tokenizer([["the", "xyz"]], is_split_into_words=True, return_tensors="pt")
    assert torch.equal(ids, same["input_ids"])
    assert scorer.score([["the", "xyz"]])[0].perplexity > 1


def test_of_other_softmaxes_the_full_one_is_taken(tmp_path):
    tensors = write_many_langs(tmp_path / "source", with_softmax=True)["classifier"]
    weight = tensors["column_emb.weight"].flip(0).contiguous()
    bias = tensors["column_bias.weight"][:, 0].contiguous()
    full = {"hidden2tag.weight": weight, "hidden2tag.bias": bias}
    torch.save(OrderedDict(full), tmp_path / "source" / "classifier.pkl")
    convert(str(tmp_path / "source"), output_dir=tmp_path / "full")
    softmax = ElmoForPreTraining.from_pretrained(tmp_path / "full").softmax
    assert torch.equal(softmax.weight.detach(), weight) and torch.equal(softmax.bias.detach(), bias)
    names = ("M", "corr.weight", "oov_column", "token_embedder.projection.weight")
    of_characters = OrderedDict({name: torch.zeros(6, 6) for name in names})
    torch.save(of_characters, tmp_path / "source" / "classifier.pkl")
    convert(str(tmp_path / "source"), output_dir=tmp_path / "none")
    assert saved_class(str(tmp_path / "none")) == "ElmoModel"
    assert "The softmax was left out: classifier.pkl" in (tmp_path / "none/README.md").read_text()
    del full["hidden2tag.bias"]
    torch.save(OrderedDict(full), tmp_path / "source" / "classifier.pkl")
    with pytest.raises(ValueError, match=r"'classifier.pkl' lacks the tensor 'hidden2tag.bias'"):
        convert(str(tmp_path / "source"), output_dir=tmp_path / "half")


@pytest.mark.parametrize("with_softmax", [True, False])
def test_pretraining_goes_on(tmp_path, with_softmax):
    """With the words of its softmax, or with those of the text."""
    write_many_langs(tmp_path / "source", with_softmax=with_softmax)
    convert(str(tmp_path / "source"), output_dir=tmp_path / "elmo")
    (tmp_path / "text.txt").write_text("the bank Ufer unknown .\n" * 20, encoding="utf-8")
    run = start_training(tmp_path / "run", tmp_path / "elmo", tmp_path / "text.txt")
    before = {name: part.clone() for name, part in run.model.named_parameters()}
    run.resume()
    run.train()
    changed = [name for name, part in run.model.named_parameters() if part.ne(before[name]).any()]
    assert any("word_embeddings" in name for name in changed) and len(changed) > 20
    run.finish()
    again = ElmoForPreTraining.from_pretrained(tmp_path / "run")
    assert again.elmo.dictionaries.words.keys == WORDS
    assert ("Ufer" in again.vocabulary.words) and (len(again.vocabulary) == 10) is with_softmax
    ElmoTokenizer.from_pretrained(tmp_path / "run")


def test_what_it_cannot_be_is_one_sentence(tmp_path, converted):
    with pytest.raises(ValueError, match="no bilm hdf5 file can hold"):
        export(str(converted[0]), output_dir=tmp_path / "hdf5")
    model = ElmoModel.from_pretrained(converted[0])
    with pytest.raises(ValueError, match="give `input_ids`"):
        model(inputs_embeds=torch.zeros(1, 2, 51, 4))
    model.dictionaries = None
    with pytest.raises(ValueError, match="by its dictionaries"):
        ElmoEmbedder(model)
    with pytest.raises(ValueError, match="pass the model itself"):
        make_tokenizer(model.config)


def break_file(folder: Path, what: str) -> None:
    tokens, words = folder / "token_embedder.pkl", folder / "word.dic"
    if what == "another dictionary":
        write_dictionary(words, [*WORDS, "more"])
    elif what == "no dictionary":
        (folder / "char.dic").unlink()
    elif what == "no marker":
        write_dictionary(folder / "char.dic", [*CHARACTERS[:-1], "x"])
    elif what == "a number twice":
        words.write_text("".join(f"{word}\t0\n" for word in WORDS))
    elif what == "a gap":
        words.write_text("".join(f"{word}\t{2 * n}\n" for n, word in enumerate(WORDS)))
    elif what == "a huge number":
        words.write_text(f"the\t{10**30}\n")
    elif what == "no UTF-8":
        words.write_bytes(b"\xff\t0\n")
    elif what == "a truncated pickle":
        tokens.write_bytes(tokens.read_bytes()[:200])
    elif what == "a pickle of code":
        tokens.write_bytes(pickle.dumps(Path))
    elif what == "another object":
        torch.save([1, 2], tokens)
    elif what == "a tensor of nothing":
        torch.save({"projection.weight": torch.zeros(1).expand(10**6, 10**6)}, tokens)
    elif what == "an unknown tensor":
        torch.save(random_tensors()["token_embedder"] | {"surprise": torch.ones(2)}, tokens)
    elif what == "a missing tensor":
        part = random_tensors()["token_embedder"]
        del part["highways._layers.1.bias"]
        torch.save(part, tokens)
    elif what == "NaN":
        part = random_tensors()["token_embedder"]
        part["projection.bias"][0] = float("nan")
        torch.save(part, tokens)
    elif what == "another encoder":
        layout = {"token_embedder": {"name": "lstm"}, "encoder": {"name": "elmo"}}
        (folder / "cnn_50_100_512_4096_sample.json").write_text(json.dumps(layout))
    elif what == "half a model":
        (folder / "encoder.pkl").unlink()


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("another dictionary", "11 entries but the weights have 10"),
        ("no dictionary", "lacks 'char.dic'"),
        ("no marker", "no entry <eow>"),
        ("a number twice", "line 2"),
        ("a gap", "does not number its 10 entries"),
        ("a huge number", "line 1"),
        ("no UTF-8", "not UTF-8"),
        ("a truncated pickle", "is damaged"),
        ("a pickle of code", "holds more than numbers"),
        ("another object", "does not hold the tensors of a model"),
        ("a tensor of nothing", "more numbers than it has bytes"),
        ("an unknown tensor", "'surprise'"),
        ("a missing tensor", "lacks the tensor 'highways._layers.1.bias'"),
        ("NaN", "NaN or infinity"),
        ("another encoder", "only a 'cnn' under 'elmo'"),
        ("half a model", "lacks 'encoder.pkl'"),
    ],
)
def test_damaged_and_hostile_files_are_one_sentence(tmp_path, what, message):
    write_many_langs(tmp_path / "source", old_form=False)
    break_file(tmp_path / "source", what)
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        convert(str(tmp_path / "source"), output_dir=tmp_path / "elmo")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "elmo").exists()


def test_a_packed_pickle_is_refused(tmp_path):
    write_many_langs(tmp_path / "source", old_form=False)
    path = tmp_path / "source" / "encoder.pkl"
    with zipfile.ZipFile(path) as stored, zipfile.ZipFile(tmp_path / "packed", "w", 8) as packed:
        for name in stored.namelist():
            packed.writestr(name, stored.read(name))
    shutil.move(tmp_path / "packed", path)
    with pytest.raises(ValueError, match="is a packed zip"):
        convert(str(tmp_path / "source"), output_dir=tmp_path / "elmo")


@pytest.mark.parametrize("what", ["missing", "other words", "fewer words"])
def test_dictionaries_of_another_model_are_noticed(tmp_path, converted, what):
    shutil.copytree(converted[0], tmp_path / "elmo")
    words = tmp_path / "elmo" / "word.dic"
    if what == "missing":
        words.unlink()
    else:
        write_dictionary(words, WORDS[::-1] if what == "other words" else WORDS[:-1])
    with pytest.raises((ValueError, OSError), match="dictionar"):
        ElmoEmbedder(tmp_path / "elmo")


def test_keys_that_are_blanks_survive(tmp_path):
    keys = ["<oov>", "<bos>", "<eos>", "\u3000", "\u00a0", "tab\tinside"]
    write_dictionary(tmp_path / "word.dic", keys)
    dictionary = Dictionary.load(tmp_path / "word.dic")
    assert dictionary.keys == keys
    (tmp_path / "word.dic").write_text("\t0\n<oov>\t1\n", encoding="utf-8")
    assert Dictionary.load(tmp_path / "word.dic").keys == ["\u3000", "<oov>"]


def test_configurations_that_cannot_be_are_refused():
    fields = Dictionaries(Dictionary(CHARACTERS), Dictionary(WORDS)).config_fields()
    fields |= {"word_embedding_size": 5, "char_filters": [[1, 4]], "projection_size": 8}
    assert ElmoConfig.from_dict(fields).row_width == 51
    for change, message in (
        ({"char_ids": "bytes"}, "vocab_size"),
        ({"char_ids": "letters"}, "must be one of"),
        ({"char_markers": [1, 2]}, "must be 5 ids"),
        ({"word_markers": [1, 99]}, "must be 2 ids from 1 to 10"),
        ({"word_embedding_size": 0}, "word_embedding_size"),
    ):
        with pytest.raises(ValueError, match=message):
            ElmoConfig.from_dict(fields | change)
