"""Vectors of sentences are the model's own, whatever is batched, cached or short of memory."""

import copy
import pickle
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from helpers.tiny import tiny_config

from elmo_hf import (
    ElmoEmbedder,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoTokenizer,
    batch_to_ids,
)
from elmo_hf.characters import encode_word
from elmo_hf.conversion.export_hf_to_allennlp import export
from elmo_hf.embedding import sentence_embedder

SENTENCES = [
    ["Dogs", "bark", "."],
    [],
    ["A", "dog", "that", "barks", "does", "n't", "bite", "."],
    ["Dogs"],
    ["Ça", "va", "?"],
]


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = ElmoModel(tiny_config()).eval()
    with torch.no_grad():
        model.mixes[0].scalars.copy_(torch.tensor([0.3, -1.0, 0.5]))
        model.mixes[0].gamma.fill_(1.7)
    return model


def alone(model, words):
    """All layers, and the mix, of one sentence that the model reads by itself."""
    tokenizer = ElmoTokenizer(max_characters_per_token=model.config.max_characters_per_token)
    batch = tokenizer([words], is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        output = model(**batch, output_hidden_states=True)
    return torch.stack(output.hidden_states)[:, 0].numpy(), output.last_hidden_state[0].numpy()


@pytest.mark.parametrize("layers", ["all", "mix", "top", "mean", 0, "1", 2])
def test_vectors_are_the_models_own(model, layers, monkeypatch):
    monkeypatch.setattr(sentence_embedder, "WINDOW", 3)
    monkeypatch.setattr(sentence_embedder, "WORDS_AT_ONCE", 8)
    found = ElmoEmbedder(model).embed(SENTENCES, layers=layers)
    size = model.config.hidden_size
    for words, array in zip(SENTENCES, found, strict=True):
        assert array.dtype == np.float32
        if not words:
            assert array.shape == ((3, 0, size) if layers == "all" else (0, size))
            continue
        every, mix = alone(model, words)
        expected = {"all": every, "mix": mix, "top": every[-1], "mean": every.mean(0)}
        wanted = expected[layers] if layers in expected else every[int(layers)]
        np.testing.assert_allclose(array, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("layers", ["all", "top"])
def test_pooled_and_padded(model, layers):
    maker = ElmoEmbedder(model)
    plain = maker.embed(SENTENCES, layers)
    for pooling, combine in (("mean", np.mean), ("max", np.max)):
        pooled = maker.embed(SENTENCES, layers, pooling, padded=True)
        for words, array, some in zip(SENTENCES, plain, pooled, strict=True):
            wanted = combine(array, axis=-2) if words else np.zeros(some.shape)
            np.testing.assert_allclose(some, wanted, rtol=1e-5, atol=1e-6)
    padded = maker.embed(SENTENCES, layers, padded=True)
    for words, array, some in zip(SENTENCES, plain, padded, strict=True):
        np.testing.assert_array_equal(some[..., : len(words), :], array)
        assert not some[..., len(words) :, :].any()
    assert maker.embed(SENTENCES, layers, dtype="float16")[0].dtype == np.float16


def test_cache_is_bounded_and_knows_when_weights_change(model):
    maker = ElmoEmbedder(model)
    encoded = []
    encode = maker.word_cache.encode
    maker.word_cache.encode = lambda rows: encoded.append(len(rows)) or encode(rows)
    maker.embed(SENTENCES)
    assert encoded == [len({word for words in SENTENCES for word in words})]
    maker.embed(SENTENCES)
    assert len(encoded) == 1
    with torch.no_grad():
        model.token_encoder.char_embeddings.weight.mul_(1.5)
    found = maker.embed(SENTENCES[:1])[0]
    np.testing.assert_allclose(found, alone(model, SENTENCES[0])[0], rtol=1e-4, atol=1e-6)
    maker.word_cache.capacity = 6
    for words in SENTENCES * 2:
        if words:
            found = maker.embed([words])[0]
            np.testing.assert_allclose(found, alone(model, words)[0], rtol=1e-4, atol=1e-6)
            assert len(maker.word_cache.numbers) <= max(6, len(words))


@pytest.mark.parametrize(
    "message",
    [
        "[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried",
        "could not create a primitive",
        "std::bad_alloc",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    ],
)
def test_batch_that_does_not_fit_is_split(model, monkeypatch, message):
    maker = ElmoEmbedder(model)
    whole = maker._embed_at_once
    sizes = []

    def small(sentences, *rest):
        sizes.append(len(sentences))
        if len(sentences) > 2:
            raise RuntimeError(message)
        return whole(sentences, *rest)

    monkeypatch.setattr(maker, "_embed_at_once", small)
    found = maker.embed(SENTENCES)
    assert sizes[0] == 5 and max(sizes[1:]) == 3
    for words, array in zip(SENTENCES, found, strict=True):
        assert array.shape[1] == len(words)

    def never(sentences, *rest):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(maker, "_embed_at_once", never)
    with pytest.raises(MemoryError, match="A sentence of 8 words does not fit into memory"):
        maker.embed(SENTENCES)

    def broken(sentences, *rest):
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(maker, "_embed_at_once", broken)
    with pytest.raises(RuntimeError, match="shapes"):
        maker.embed(SENTENCES)


def test_words_that_did_not_fit_are_encoded_again(model):
    maker = ElmoEmbedder(model)
    encode, calls = maker.word_cache.encode, []

    def once_too_many(rows):
        calls.append(len(rows))
        if len(calls) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return encode(rows)

    maker.word_cache.encode = once_too_many
    for words, array in zip(SENTENCES, maker.embed(SENTENCES), strict=True):
        if words:
            np.testing.assert_allclose(array, alone(model, words)[0], rtol=1e-4, atol=1e-6)
    assert len(calls) == 3


def test_a_model_in_training_gives_the_same_vectors_and_goes_on():
    model = ElmoModel(tiny_config(hidden_dropout=0.5))
    maker = ElmoEmbedder(model)
    before = maker.embed_sentence(SENTENCES[0])
    model.train()
    np.testing.assert_allclose(maker.embed_sentence(SENTENCES[0]), before, rtol=1e-4, atol=1e-6)
    assert model.training


def test_a_mix_may_be_normalised_with_the_boundaries():
    model = ElmoModel(tiny_config(mix_layer_norm=True)).eval()
    # its values depend on the batch, so there is one sentence
    [found] = ElmoEmbedder(model).embed(SENTENCES[2:3], layers="mix")
    np.testing.assert_allclose(found, alone(model, SENTENCES[2])[1], rtol=1e-5, atol=1e-6)


def test_no_sentences_are_no_vectors(model):
    maker, size = ElmoEmbedder(model), model.config.hidden_size
    assert maker.embed([]) == []
    assert maker.embed([], padded=True).shape == (0, 3, 0, size)
    assert maker.embed([], "top", "mean", padded=True).shape == (0, size)


def test_names_and_shapes_of_allennlp(model):
    maker = ElmoEmbedder(model)
    size = model.config.hidden_size
    assert maker.embed_sentence(["I", "ate"]).shape == (3, 2, size)
    assert [array.shape for array in maker.embed_batch(SENTENCES[:2])] == [
        (3, 3, size),
        (3, 0, size),
    ]
    stream = maker.embed_sentences(iter(SENTENCES), batch_size=2)
    assert next(stream).shape == (3, 3, size) and len(list(stream)) == 4
    assert batch_to_ids([]).shape == (0, 0, 50)
    with pytest.raises(ValueError, match="not a string; split 'The river bank .' first"):
        batch_to_ids(["The river bank .", "Banks lend"])
    ids = batch_to_ids([["A", "dog"], ["Dogs"]])
    assert ids.shape == (2, 2, 50) and ids.dtype == torch.long
    assert ids[0, 1].tolist() == encode_word("dog") and not ids[1, 1].any()


def test_allennlps_files_by_their_names(model, tmp_path):
    model.save_pretrained(tmp_path / "elmo")
    export(str(tmp_path / "elmo"), output_dir=tmp_path / "hdf5")
    files = {"options_file": "options.json", "weight_file": "model.hdf5"}
    old = ElmoEmbedder(**{key: str(tmp_path / "hdf5" / name) for key, name in files.items()})
    for one, other in zip(old.embed(SENTENCES), ElmoEmbedder(model).embed(SENTENCES), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"layers": "3"}, "`layers` is '3' but must be one of all, mix, top, mean, 0, 1, 2."),
        ({"pooling": "sum"}, "`pooling` is 'sum' but must be one of none, mean, max."),
        ({"dtype": "int8"}, "`dtype` is 'int8' but must be one of float32, float16."),
    ],
)
def test_what_cannot_be_had_is_told(model, arguments, sentence):
    with pytest.raises(ValueError, match=sentence.replace(".", r"\.")):
        ElmoEmbedder(model).embed(SENTENCES, **arguments)


def test_a_mix_that_is_not_there_is_told():
    maker = ElmoEmbedder(ElmoModel(tiny_config(output_layer="top")))
    with pytest.raises(ValueError, match="This model has no mix, only 'top'"):
        maker.check("mix", "none", "float32")


def test_a_device_may_be_a_number(model, monkeypatch):
    """The third argument of AllenNLP's class is the number of a GPU, or -1 for the CPU."""
    with pytest.raises(ValueError, match="`device` is -1; pass device='cpu' or 'cuda:0'."):
        ElmoEmbedder(model, None, -1)
    asked = []
    monkeypatch.setattr(ElmoModel, "to", lambda self, device: asked.append(device))
    ElmoEmbedder(model, None, 0)
    assert asked == [0]


def test_a_folder_without_a_model_is_one_sentence(tmp_path):
    with pytest.raises(OSError, match="' is not a model folder: it has no config.json"):
        ElmoEmbedder(tmp_path)


def test_the_model_inside_a_tagger_serves():
    tagger = ElmoForTokenClassification(tiny_config(num_labels=3))
    [found] = ElmoEmbedder(tagger).embed(SENTENCES[:1])
    np.testing.assert_allclose(found, alone(tagger.elmo.eval(), SENTENCES[0])[0], atol=1e-6)


def test_a_model_made_in_inference_mode_serves():
    with torch.inference_mode():
        model = ElmoModel(tiny_config()).eval()
    [found] = ElmoEmbedder(model).embed(SENTENCES[:1])
    np.testing.assert_allclose(found, alone(model, SENTENCES[0])[0], atol=1e-6)


def test_threads_may_share_an_embedder(embedder):
    """Each call's own words, some of them common to all, in sixteen threads at once."""
    draw = random.Random(0)
    words = [f"word{number}" for number in range(200)]
    batches = [[draw.choices(words, k=draw.randint(1, 9)) for _ in range(3)] for _ in range(240)]
    expected = [embedder.embed(batch) for batch in batches]
    embedder.forget_words()
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(embedder.embed, batches))
    for one, other in zip(found, expected, strict=True):
        for array, truth in zip(one, other, strict=True):
            np.testing.assert_allclose(array, truth, rtol=0, atol=1e-6 * np.abs(truth).max())


def test_a_copied_embedder_works(embedder):
    sentence = ["Dogs", "bark", "."]
    expected = embedder.embed_sentence(sentence)
    for again in (copy.deepcopy(embedder), pickle.loads(pickle.dumps(embedder))):
        np.testing.assert_allclose(again.embed_sentence(sentence), expected, rtol=1e-5, atol=1e-6)
