"""Maps of one layer into a space of several languages."""

import numpy as np
import pytest
import torch
from datasets import Dataset
from helpers.tiny import tiny_config, tokenize, write_model

from elmo_hf import ElmoForTokenClassification, ElmoModel
from elmo_hf.conversion.convert_allennlp_to_hf import convert
from elmo_hf.conversion.export_hf_to_allennlp import export
from elmo_hf.embedding import ElmoEmbedder
from elmo_hf.hub.loading import load_elmo
from elmo_hf.tagging import ModelSettings, new_tagger

SENTENCES = [["Der", "Kurs", "fiel", "."], ["Ja"]]
WIDTH = tiny_config().hidden_size


def matrix(dtype=np.float64) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((WIDTH, WIDTH)).astype(dtype)


@pytest.fixture
def files(tmp_path):
    options, weights = write_model(tmp_path / "source", tiny_config())
    return {"options_file": options, "weight_file": weights, "output_dir": tmp_path / "elmo"}


@torch.no_grad()
@pytest.mark.parametrize(("layer", "kind"), [(1, "float64"), (0, "float32"), (2, "tensor")])
def test_the_output_is_a_matrix_product(tmp_path, files, layer, kind):
    saved = torch.from_numpy(matrix()) if kind == "tensor" else matrix(kind)
    torch.save(saved, tmp_path / "align.pth", _use_new_zipfile_serialization=kind == "tensor")
    convert(**files, alignment=tmp_path / "align.pth", alignment_layer=layer)
    model = load_elmo(str(tmp_path / "elmo"))
    output = model(**tokenize(SENTENCES), output_hidden_states=True)
    expected = output.hidden_states[layer].double() @ torch.from_numpy(matrix()).T
    torch.testing.assert_close(output.last_hidden_state.double(), expected, rtol=1e-5, atol=1e-5)
    # the layers stay those of the biLM
    convert(**files, overwrite=True)
    plain = load_elmo(str(tmp_path / "elmo"))(**tokenize(SENTENCES), output_hidden_states=True)
    for one, other in zip(output.hidden_states, plain.hidden_states, strict=True):
        assert torch.equal(one, other)


@torch.no_grad()
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_the_embedder_maps_the_layer_wherever_it_returns_it(tmp_path, files, layer):
    convert(**files)
    plain = load_elmo(str(tmp_path / "elmo"))(**tokenize(SENTENCES[:1]), output_hidden_states=True)
    own = [states[0].numpy() for states in plain.hidden_states]
    expected = [*own]
    expected[layer] = own[layer] @ matrix().T
    torch.save(matrix(), tmp_path / "align.pth")
    convert(**files, alignment=tmp_path / "align.pth", alignment_layer=layer, overwrite=True)
    embedder = ElmoEmbedder(tmp_path / "elmo")

    def check(layers, wanted):
        [found] = embedder.embed(SENTENCES[:1], layers=layers)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)

    check("all", np.stack(expected))
    check("top", expected[2])
    check("mean", np.mean(own, axis=0))
    for number in range(3):
        check(number, expected[number])


def test_a_tagger_reads_the_mapped_layer_and_leaves_the_map_as_it_is(tmp_path, files):
    torch.save(matrix(), tmp_path / "align.pth")
    convert(**files, alignment=tmp_path / "align.pth", alignment_layer=2)
    train = Dataset.from_dict({"tokens": [["a"]]})
    settings = ModelSettings(model_name_or_path=str(tmp_path / "elmo"))
    with pytest.raises(ValueError, match="pass --layers 2, not --layers mix"):
        new_tagger(settings, ["X"], train)
    for layers in ("2", "top"):
        settings.layers = layers
        tagger = new_tagger(settings, ["X"], train)
        assert tagger.config.output_layer == 2
    trained = [name for name, part in tagger.named_parameters() if part.requires_grad]
    assert trained and not any(name.startswith("elmo.") for name in trained)


def test_it_is_part_of_the_folder_and_of_what_reads_it(tmp_path, files):
    torch.save(matrix(), tmp_path / "align.pth")
    convert(**files, alignment=tmp_path / "align.pth")
    folder = str(tmp_path / "elmo")
    model = ElmoModel.from_pretrained(folder)
    assert (model.config.aligned_layer, model.config.output_layer) == (1, 1)
    assert model.config.provenance["alignment_file"] == "align.pth"
    card = (tmp_path / "elmo" / "README.md").read_text()
    assert "| map of a layer | `align.pth`, SHA-256" in card and "is layer 1, mapped" in card
    assert "last_hidden_state  # (1, 4, 16): layer 1, mapped" in card
    [vectors] = ElmoEmbedder(folder).embed_sentences(SENTENCES[:1])
    assert vectors.shape == (3, 4, WIDTH)
    tagger = ElmoForTokenClassification.from_pretrained(folder, num_labels=3)
    assert torch.equal(tagger.elmo.alignment.weight, model.alignment.weight)
    with pytest.raises(ValueError, match="has an alignment, which has no place in hdf5 files"):
        export(folder, output_dir=tmp_path / "back")
    with pytest.raises(ValueError, match="`aligned_layer` is 1, the only layer that has a map"):
        ElmoModel.from_pretrained(folder, output_layer="mix")


def test_a_folder_without_its_map_is_refused(tmp_path, files):
    convert(**files)
    config = tmp_path / "elmo" / "config.json"
    text = config.read_text().replace('"output_layer": "mix"', '"output_layer": 1')
    config.write_text(text.replace('"aligned_layer": null', '"aligned_layer": 1'))
    with pytest.raises(ValueError, match="lacks the tensor 'alignment.weight'"):
        load_elmo(str(tmp_path / "elmo"))


class Trap:
    def __reduce__(self):
        return eval, ("open('trapped', 'w')",)


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        (Trap(), "holds more than numbers, so it was not"),
        (np.array([Trap()], dtype=object), "holds more than numbers, so it was not"),
        (np.array([None], dtype=object), "holds more than numbers, so it was not"),
        ({"a": 1}, "holds no matrix but dict"),
        (np.zeros((WIDTH, 2)), "but the model's vectors need a matrix of 16 x 16"),
        (torch.zeros(1).expand(1 << 20, 1 << 20), "need a matrix of 16 x 16"),
        (np.zeros((WIDTH, WIDTH), np.int64), "holds more than numbers|not floating-point"),
        (
            torch.zeros(WIDTH, WIDTH, dtype=torch.int32),
            "holds torch.int32, not floating",
        ),
        (np.full((WIDTH, WIDTH), np.nan), "holds NaN, infinity or huge numbers"),
        (np.full((WIDTH, WIDTH), 1e300), "holds NaN, infinity or huge numbers"),
    ],
    ids=range(10),
)
def test_other_files_are_refused(tmp_path, files, monkeypatch, saved, message):
    monkeypatch.chdir(tmp_path)
    torch.save(saved, tmp_path / "align.pth")
    with pytest.raises(ValueError, match=message) as caught:
        convert(**files, alignment=tmp_path / "align.pth")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "elmo").exists() and not (tmp_path / "trapped").exists()


def test_layers_that_are_not_there(tmp_path, files):
    torch.save(matrix(), tmp_path / "align.pth")
    with pytest.raises(ValueError, match="--alignment-layer is 3, but the model has layers 0 to 2"):
        convert(**files, alignment=tmp_path / "align.pth", alignment_layer=3)
    (tmp_path / "align.pth").write_bytes(b"\x80\x02}")
    with pytest.raises(ValueError, match=r"align.pth' is damaged"):
        convert(**files, alignment=tmp_path / "align.pth")
