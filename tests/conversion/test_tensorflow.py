"""Checkpoints of bilm-tf and modules of TF-Hub become what their hdf5 file does."""

import json
import shutil
import tarfile
import zipfile

import numpy as np
import pytest
import torch
from helpers.pretraining import start_training
from helpers.tensor_bundle import (
    checkpoint_variables,
    module_variables,
    training_variables,
    write_bundle,
)
from helpers.tiny import random_arrays, tiny_config, write_model
from safetensors import safe_open
from safetensors.torch import load_file

from elmo_hf import ElmoForPreTraining, ElmoModel
from elmo_hf.conversion.convert_allennlp_to_hf import convert
from elmo_hf.conversion.options_map import options_from_config
from elmo_hf.conversion.weights_file import write_weights

WORDS = ["<S>", "</S>", "<UNK>", "the", "bank", "."]


def softmax_arrays(seed=0):
    draw = np.random.default_rng(seed)
    return {
        "softmax/W": draw.standard_normal((len(WORDS), 8), np.float32),
        "softmax/b": draw.standard_normal(len(WORDS), np.float32),
    }


def write_checkpoint(folder, config=None, arrays=None, step=7, rows=261, **options):
    """A checkpoint as bilm-tf leaves it; returns its arrays in the hdf5 layout."""
    config = config or tiny_config()
    arrays = arrays or random_arrays(config) | softmax_arrays()
    write_bundle(folder, f"model.ckpt-{step}", checkpoint_variables(arrays, step))
    settings = options_from_config(config) | {"bidirectional": True, "n_epochs": 3, **options}
    settings["char_cnn"]["n_characters"] = rows
    (folder / "options.json").write_text(json.dumps(settings))
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    return arrays


def tensors(folder):
    return load_file(folder / "model.safetensors")


def same_tensors(one, other):
    one, other = tensors(one), tensors(other)
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize(("layers", "rows"), [(1, 261), (2, 262), (3, 261)])
def test_a_checkpoint_is_its_hdf5_file_bit_for_bit(tmp_path, layers, rows):
    config = tiny_config(num_hidden_layers=layers)
    arrays = write_checkpoint(tmp_path / "checkpoint", config, rows=rows)
    options, weights = write_model(tmp_path / "hdf5", config, **arrays)
    convert(str(tmp_path / "checkpoint"), output_dir=tmp_path / "one")
    convert(
        options_file=options,
        weight_file=weights,
        vocab_file=tmp_path / "checkpoint" / "vocab.txt",
        output_dir=tmp_path / "other",
    )
    assert same_tensors(tmp_path / "one", tmp_path / "other")
    model = ElmoForPreTraining.from_pretrained(tmp_path / "one")
    assert model.vocabulary.words == WORDS
    assert model.config.provenance["weight_file"] == "model.ckpt-7.data-00000-of-00001"
    card = (tmp_path / "one" / "README.md").read_text()
    assert model.config.provenance["index_sha256"] in card
    assert "accumulators of Adagrad after 7 steps" in card


def test_the_newest_step_wins_whatever_the_text_file_says(tmp_path):
    config = tiny_config()
    write_checkpoint(tmp_path / "in", config, random_arrays(config, 1), step=99)
    newest = write_checkpoint(tmp_path / "in", config, random_arrays(config, 2), step=100)
    (tmp_path / "in" / "checkpoint").write_text('model_checkpoint_path: "/home/me/model.ckpt-9"\n')
    options, weights = write_model(tmp_path / "hdf5", config, **newest)
    convert(options_file=options, weight_file=weights, output_dir=tmp_path / "other")
    (tmp_path / "in" / "vocab.txt").unlink()
    convert(str(tmp_path / "in"), output_dir=tmp_path / "one")
    assert same_tensors(tmp_path / "one", tmp_path / "other")
    # an older one is named
    for number, files in enumerate(
        (
            {"source": str(tmp_path / "in" / "model.ckpt-99.index")},
            {
                "weight_file": tmp_path / "in" / "model.ckpt-99.index",
                "options_file": tmp_path / "in" / "options.json",
            },
        )
    ):
        convert(**files, output_dir=tmp_path / f"older-{number}")
        provenance = ElmoModel.from_pretrained(tmp_path / f"older-{number}").config.provenance
        assert provenance["index_file"] == "model.ckpt-99.index"


def test_the_last_epoch_wins_where_epochs_are_folders(tmp_path):
    write_checkpoint(tmp_path)
    for epoch in (9, 10):
        arrays = checkpoint_variables(random_arrays(tiny_config(), epoch))
        write_bundle(tmp_path / "saves" / "epochs" / str(epoch), "model.ckpt", arrays)
    for file in tmp_path.glob("model.ckpt*"):
        file.unlink()
    (tmp_path / "vocab.txt").unlink()
    convert(str(tmp_path), output_dir=tmp_path / "out")
    found = ElmoModel.from_pretrained(tmp_path / "out").get_input_embeddings().weight.detach()
    assert np.array_equal(found[1:], random_arrays(tiny_config(), 10)["char_embed"])


def zip_of(folder, archive):
    with zipfile.ZipFile(archive, "w") as zipped:
        for file in sorted(folder.iterdir()):
            zipped.write(file, file.name)
    return archive


@pytest.mark.parametrize("packed", [False, True])
def test_the_last_epoch_is_taken_of_a_folder_and_of_its_tar(tmp_path, packed):
    """DeepPavlov's layout: checkpoints of the same name in folders of epochs."""
    source = tmp_path / "model"
    for epoch in (9, 10):
        place = source / "saves" / "epochs" / str(epoch)
        place.mkdir(parents=True)
        write_checkpoint(place, arrays=random_arrays(tiny_config(), seed=epoch))
        for name in ("options.json", "vocab.txt"):
            (place / name).replace(source / name)
    if packed:
        with tarfile.open(tmp_path / "model.tar.gz", "w:gz") as tar:
            tar.add(source, "model")
        source = tmp_path / "model.tar.gz"
    convert(str(source), output_dir=tmp_path / "elmo")
    options, weights = write_model(tmp_path / "hdf5", tiny_config())
    write_weights(weights, random_arrays(tiny_config(), seed=10).items())
    convert(options_file=options, weight_file=weights, output_dir=tmp_path / "other")
    assert same_tensors(tmp_path / "elmo", tmp_path / "other")


@pytest.mark.parametrize("form", ["folder", "zip"])
def test_beside_its_hdf5_file_a_checkpoint_gives_the_softmax(tmp_path, form):
    arrays = write_checkpoint(tmp_path / "in")
    bilm = {key: array for key, array in arrays.items() if not key.startswith("softmax")}
    write_weights(tmp_path / "in" / "model.hdf5", bilm.items())
    source = tmp_path / "in"
    if form == "zip":
        source = zip_of(source, tmp_path / "225.zip")
    convert(str(source), output_dir=tmp_path / "out")
    assert np.array_equal(tensors(tmp_path / "out")["softmax.weight"], arrays["softmax/W"])
    # the hdf5 file is preferred if it is named, and if it has a softmax of its own
    hdf5 = tmp_path / "in" / "model.hdf5"
    convert(str(source), weight_file=hdf5, output_dir=tmp_path / "named")
    assert "softmax.weight" not in tensors(tmp_path / "named")
    if form == "folder":
        other = softmax_arrays(1)
        write_weights(tmp_path / "in" / "softmax_weights.hdf5", other.items())
        convert(str(source), output_dir=tmp_path / "own")
        assert np.array_equal(tensors(tmp_path / "own")["softmax.weight"], other["softmax/W"])


def test_a_checkpoint_beside_other_weights_is_refused(tmp_path):
    write_checkpoint(tmp_path)
    write_weights(tmp_path / "model.hdf5", random_arrays(tiny_config(), 5).items())
    with pytest.raises(ValueError, match=r"ckpt-7.index and in model.hdf5 differ; .*--weight-file"):
        convert(str(tmp_path), output_dir=tmp_path / "out")
    (tmp_path / "model.hdf5").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="differ; choose"):
        convert(str(tmp_path), output_dir=tmp_path / "out")
    index = tmp_path / "model.ckpt-7.index"
    convert(str(tmp_path), weight_file=index, output_dir=tmp_path / "out")


def replaced(**changes):
    """The variables of a checkpoint with some of them changed or added; None removes one."""
    variables = checkpoint_variables(random_arrays(tiny_config()) | softmax_arrays())
    variables |= {name.replace("__", "/"): array for name, array in changes.items()}
    return {name: array for name, array in variables.items() if array is not None}


WORD_LEVEL = {
    key: array for key, array in random_arrays(tiny_config()).items() if key.startswith("RNN")
} | {"embedding": np.ones((6, 8), np.float32)}
ONE_DIRECTION = {"lm/rnn/lstm_cell/kernel": np.ones((4, 4), np.float32)}


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (training_variables(WORD_LEVEL), "those of a model of words, but the options"),
        (ONE_DIRECTION, "one direction only; ELMo needs both"),
        ({"global_step": np.zeros(())}, "holds no weights"),
        (replaced(lm__char_embed=None), "lack the datasets char_embed"),
        (replaced(lm__more=np.ones(3, np.float32)), "'more' that is not part"),
        (replaced(char_embed=np.ones((261, 4), np.float32)), "the same as 'char_embed'; there"),
        (replaced(lm__char_embed=np.ones((261, 4), np.int32)), "int32, not floating-point"),
        (replaced(lm__char_embed=np.ones((261, 4), np.float16)), "holds float16, which cannot"),
        (replaced(lm__char_embed=np.ones((), np.float32)), "'lm/char_embed' holds no array"),
        (replaced(lm__char_embed=np.full((261, 4), np.nan, np.float32)), "NaN or infinity"),
        (replaced(lm__softmax__b__Adagrad=None), "accumulators of Adagrad .* do not fit"),
        (replaced(lm__softmax__b__Adagrad=np.full(6, -1, np.float32)), "negative numbers"),
        (replaced(global_step=np.asarray(-1.5)), "-1.5, which is no number of steps"),
        (replaced(global_step=np.zeros(3)), "'global_step' must be one number"),
    ],
)
def test_checkpoints_that_cannot_be_right_are_refused(tmp_path, variables, message):
    write_checkpoint(tmp_path)
    write_bundle(tmp_path, "model.ckpt-8", variables)
    with pytest.raises(ValueError, match=message) as caught:
        convert(str(tmp_path), output_dir=tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_parts_that_are_missing_are_named(tmp_path):
    write_checkpoint(tmp_path)
    data = tmp_path / "model.ckpt-7.data-00000-of-00001"
    data.rename(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError, match="needs the file 'model.ckpt-7.data"):
        convert(str(tmp_path), output_dir=tmp_path / "out")
    (tmp_path / "options.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"no options.json beside .*ckpt-7.index'"):
        convert(str(tmp_path), output_dir=tmp_path / "out")


def test_accumulators_have_the_places_of_their_weights(tmp_path):
    """A model whose weights are the accumulators of another has them in the same places."""
    arrays = write_checkpoint(tmp_path / "in")
    squares = {key: 1 + array * array for key, array in arrays.items()}
    write_checkpoint(tmp_path / "squares", arrays=squares)
    for name in ("in", "squares"):
        convert(str(tmp_path / name), output_dir=tmp_path / f"out-{name}")
    kept = load_file(tmp_path / "out-in" / "optimizer.safetensors")
    weights = tensors(tmp_path / "out-squares")
    assert kept.keys() == weights.keys()
    for name, sums in kept.items():
        expected = weights[name].clone()
        if name.endswith("input_linear.bias"):
            quarter = len(expected) // 4
            # the 1 that TensorFlow adds at run time is no part of a gradient
            expected[quarter : 2 * quarter] -= 1
        if name.endswith("char_embeddings.weight"):
            expected[0] = 1
        torch.testing.assert_close(sums, expected, rtol=0, atol=1e-6)
    with safe_open(tmp_path / "out-in" / "optimizer.safetensors", "pt") as file:
        assert file.metadata() == {"optimizer": "adagrad", "steps": "7"}


def sums_of(run):
    names = dict(run.model.named_parameters())
    return {name: run.optimizer.state[weight]["sum"].clone() for name, weight in names.items()}


def test_training_continues_with_the_accumulators(tmp_path, capsys):
    write_checkpoint(tmp_path / "in")
    convert(str(tmp_path / "in"), output_dir=tmp_path / "elmo")
    text = tmp_path / "text.txt"
    text.write_text("the bank .\n" * 20)
    run = start_training(tmp_path / "run", tmp_path / "elmo", text, recipe="bilm")
    assert "Adagrad continues after 7 steps with" in capsys.readouterr().err
    kept = load_file(tmp_path / "elmo" / "optimizer.safetensors")
    before = sums_of(run)
    assert before.keys() == kept.keys() and all(torch.equal(before[key], kept[key]) for key in kept)
    assert "optimizer to start from" in run.identify()["contents"]
    run.resume()
    run.train()
    assert all((after >= before[name]).all() for name, after in sums_of(run).items())
    # other recipes and vocabularies, and a model without them, begin afresh
    vocabulary = tmp_path / "other.txt"
    vocabulary.write_text("<S>\n</S>\n<UNK>\nthe\n")
    run = start_training(
        tmp_path / "b", tmp_path / "elmo", text, recipe="bilm", vocab_file=vocabulary
    )
    assert "is not used, because the softmax has a new vocabulary" in capsys.readouterr().err
    assert all((sums == 1).all() for sums in sums_of(run).values())
    run = start_training(tmp_path / "c", tmp_path / "elmo", text)
    assert "optimizer to start from" not in run.identify()["contents"]
    (tmp_path / "elmo" / "optimizer.safetensors").unlink()
    run = start_training(tmp_path / "d", tmp_path / "elmo", text, recipe="bilm")
    assert all((sums == 1).all() for sums in sums_of(run).values())
    assert "Adagrad" not in capsys.readouterr().err


def test_accumulators_of_another_model_are_refused(tmp_path):
    write_checkpoint(tmp_path / "in")
    convert(str(tmp_path / "in"), output_dir=tmp_path / "elmo")
    text = tmp_path / "text.txt"
    text.write_text("the bank .\n" * 20)
    path = tmp_path / "elmo" / "optimizer.safetensors"
    shutil.copy(tmp_path / "elmo" / "model.safetensors", path)
    with pytest.raises(ValueError, match=r"holds numbers in .* that are no sums of squares"):
        start_training(tmp_path / "run", tmp_path / "elmo", text, recipe="bilm")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="is damaged or truncated"):
        start_training(tmp_path / "run", tmp_path / "elmo", text, recipe="bilm")


GOOGLE = ("aggregation/weights", "aggregation/scaling")
DEEPPAVLOV = ("aggregation/elmo_output_ELMo_W", "aggregation/elmo_output_ELMo_gamma")
# what a module does not say, as in the original model
ORIGINAL = {"max_characters_per_token": 50, "cell_clip": 3.0, "projection_clip": 3.0}


def write_module(folder, changes=None, config=None):
    config = config or tiny_config(**ORIGINAL)
    variables = module_variables(random_arrays(config)) | (changes or {})
    write_bundle(folder / "variables", "variables", variables)
    (folder / "saved_model.pb").touch()
    return config


@pytest.mark.parametrize(("names", "shape"), [(GOOGLE, ()), (DEEPPAVLOV, (1,))])
def test_a_module_becomes_a_model_with_its_mix(tmp_path, names, shape):
    scalars = np.array([0.5, -1.0, 0.25], np.float32)
    mix = dict(zip(names, (scalars, np.full(shape, 2.5, np.float32)), strict=True))
    config = write_module(tmp_path / "module", mix | {"global_step": np.zeros(1)})
    # as it is published
    with tarfile.open(tmp_path / "module.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "module", ".")
    convert(str(tmp_path / "module.tar.gz"), output_dir=tmp_path / "one")
    options, weights = write_model(tmp_path / "hdf5", config)
    convert(options_file=options, weight_file=weights, output_dir=tmp_path / "other")
    found, expected = tensors(tmp_path / "one"), tensors(tmp_path / "other")
    assert found.keys() == expected.keys()
    for name in found:
        assert torch.equal(found[name], expected[name]) or name.startswith("mixes.")
    model = ElmoModel.from_pretrained(tmp_path / "one")
    assert model.mixes[0].gamma.item() == 2.5
    assert torch.equal(model.mixes[0].scalars.detach(), torch.from_numpy(scalars))
    card = (tmp_path / "one" / "README.md").read_text()
    assert "do not hold all hyper-parameters" in card and "global\\_step" in card
    assert "(`mixes`) are those of the module" in card.replace("\\", "")
    assert "options_file" not in model.config.provenance


def test_a_module_with_named_options(tmp_path):
    config = write_module(tmp_path / "module", config=tiny_config(cell_clip=None))
    options = tmp_path / "options.json"
    options.write_text(json.dumps(options_from_config(config)))
    convert(str(tmp_path / "module"), options_file=options, output_dir=tmp_path / "out")
    model = ElmoModel.from_pretrained(tmp_path / "out")
    assert model.config.cell_clip is None and model.config.max_characters_per_token == 16
    card = (tmp_path / "out" / "README.md").read_text()
    assert "hyper-parameters" not in card and "has no weights of the layers" in card


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"aggregation/weights": np.ones(2, np.float32)}, "for 2 layers, but the model has 3"),
        ({"aggregation/weights": np.full(3, np.nan, np.float32)}, "layers holds NaN"),
        ({"aggregation/weights": np.ones(1000, np.float32)}, "is no list of weights of layers"),
        (dict(zip(GOOGLE, np.ones((2, 3), np.float32), strict=True)), "must be one number"),
        ({"bilm/more": np.ones(3, np.float32)}, "'more' that is not part"),
        ({"v/0/.ATTRIBUTES/VARIABLE_VALUE": np.ones(3)}, "saved anew by TensorFlow 2"),
    ],
)
def test_modules_that_cannot_be_right_are_refused(tmp_path, changes, message):
    write_module(tmp_path, changes)
    with pytest.raises(ValueError, match=message):
        convert(str(tmp_path), output_dir=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_parts_of_a_module_are_named(tmp_path):
    write_bundle(tmp_path / "variables", "variables", {"bilm/Variable": np.ones(2, np.float32)})
    with pytest.raises(ValueError, match="lacks the weights bilm/char_embed"):
        convert(str(tmp_path), output_dir=tmp_path / "out")
    shutil.rmtree(tmp_path / "variables")
    (tmp_path / "tfhub_module.pb").touch()
    with pytest.raises(FileNotFoundError, match="has no variables.index"):
        convert(str(tmp_path), output_dir=tmp_path / "out")


def test_an_alignment_leaves_the_accumulators_out(tmp_path, capsys):
    write_checkpoint(tmp_path / "in")
    torch.save(torch.eye(2 * tiny_config().projection_size), tmp_path / "align.pth")
    convert(str(tmp_path / "in"), alignment=tmp_path / "align.pth", output_dir=tmp_path / "out")
    assert "accumulators of Adagrad were left out" in capsys.readouterr().err
    assert not (tmp_path / "out" / "optimizer.safetensors").exists()
    assert ElmoForPreTraining.from_pretrained(tmp_path / "out").config.aligned_layer == 1
