import contextlib
import gzip
import json
import random
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from helpers.tiny import random_arrays, tiny_config, tokenize, write_model
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError

from elmo_hf import ElmoForPreTraining, ElmoModel, ElmoTokenizer
from elmo_hf.conversion import building, convert_allennlp_to_hf, tensor_ops
from elmo_hf.conversion.building import load_converted
from elmo_hf.conversion.convert_allennlp_to_hf import convert
from elmo_hf.conversion.export_hf_to_allennlp import export
from elmo_hf.conversion.formats.bilm_hdf5 import Source, open_files
from elmo_hf.conversion.key_map import RULES, _match, rule_for_key, rule_for_name
from elmo_hf.conversion.options_map import config_from_options, options_from_config
from elmo_hf.conversion.verification import TOLERANCE, largest_error, reference_layers
from elmo_hf.conversion.weights_file import open_weights, write_weights

SCRIPTS = Path(__file__).resolve().parents[2] / "conversion"


def read_all(path):
    arrays = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, item: (
                arrays.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None
            )
        )
    return arrays


def converted(tmp_path, config=None, **changes):
    """Convert a random model, and return the folder."""
    options, weights = write_model(tmp_path / "source", config or tiny_config(), **changes)
    convert(options_file=options, weight_file=weights, output_dir=tmp_path / "elmo")
    return tmp_path / "elmo"


def test_gates_are_reordered_and_restored():
    ours = tensor_ops.bias_to_torch(np.array([1, 2, 3, 4], dtype=np.float32))
    assert ours.tolist() == [1, 3 + 1, 4, 2]
    assert tensor_ops.bias_to_tensorflow(ours).tolist() == [1, 2, 3, 4]


def test_kernel_is_split_into_input_and_recurrent_rows():
    kernel = np.arange(16, dtype=np.float32).reshape(4, 4)
    from_input, from_output = tensor_ops.split_kernel(kernel)
    assert from_input.tolist() == [[0, 4], [2, 6], [3, 7], [1, 5]]
    assert from_output.tolist() == [[8, 12], [10, 14], [11, 15], [9, 13]]
    assert np.array_equal(tensor_ops.join_kernel(from_input, from_output), kernel)


def test_convolution_axes_are_reversed():
    kernel = np.arange(6).reshape(1, 3, 2, 1)
    assert tensor_ops.convolution_to_torch(kernel).tolist() == [[[0, 2, 4], [1, 3, 5]]]


@pytest.mark.parametrize("rows", [261, 262])
def test_padding_row_is_added_where_it_lacks(rows):
    table = np.ones((rows, 2), dtype=np.float32)
    assert tensor_ops.add_padding_row(table).shape == (262, 2)


def test_table_is_total_and_two_way():
    config = tiny_config(num_hidden_layers=3, num_highway_layers=2, lm_vocab_size=5)
    names = []
    for key in random_arrays(config) | softmax_arrays(5):
        assert sum(_match(rule.key, key) is not None for rule in RULES) == 1
        rule = rule_for_key(key)
        names += rule.names
        assert all(rule_for_name(name) == rule for name in rule.names)
    assert sorted(names) == sorted(ElmoForPreTraining(config).state_dict())
    for unknown in ("CNN/W_cnn_x", "xchar_embed", "RNN_2/RNN/MultiRNNCell/Cell0/LSTMCell/B"):
        with pytest.raises(ValueError, match=unknown):
            rule_for_key(unknown)
    with pytest.raises(ValueError, match="classifier.weight"):
        rule_for_name("classifier.weight")


sizes = st.fixed_dictionaries(
    {
        "char_embedding_size": st.integers(1, 4),
        "char_filters": st.lists(
            st.tuples(st.integers(1, 4), st.integers(1, 5)).map(list), min_size=1, max_size=3
        ),
        "char_activation": st.sampled_from(["relu", "tanh"]),
        "num_highway_layers": st.integers(0, 2),
        "max_characters_per_token": st.integers(4, 12),
        "cell_size": st.integers(1, 6),
        "projection_size": st.integers(1, 6),
        "num_hidden_layers": st.integers(1, 3),
        "cell_clip": st.none() | st.floats(0.1, 3),
        "projection_clip": st.none() | st.floats(0.1, 3),
        "use_skip_connections": st.booleans(),
    }
)


@settings(deadline=None, max_examples=25)
@given(fields=sizes)
def test_round_trip_over_random_sizes(fields, tmp_path_factory):
    """Any size: convert (checked against numpy), export, and every dataset is back."""
    folder = tmp_path_factory.mktemp("round-trip")
    config = tiny_config(**fields)
    elmo = converted(folder, config)
    export(str(elmo), output_dir=folder / "back")
    before, after = random_arrays(config), read_all(folder / "back" / "model.hdf5")
    assert before.keys() == after.keys()
    for key, array in before.items():
        if key.endswith("/B"):
            # TensorFlow's 1 was added and taken away again
            np.testing.assert_allclose(after[key], array, rtol=0, atol=1.2e-7)
        else:
            assert after[key].tobytes() == array.tobytes(), key
    options = json.loads((folder / "back" / "options.json").read_text())
    assert options["char_cnn"]["n_characters"] == 262
    assert config_from_options(options) == config_from_options(options_from_config(config))


def test_a_splitter_is_saved_with_the_tokenizer(tmp_path):
    options, weights = write_model(tmp_path / "source", tiny_config())
    files = {"options_file": options, "weight_file": weights, "output_dir": tmp_path / "elmo"}
    with pytest.raises(ValueError, match="`split` is 'finnish' but must be one of none, white"):
        convert(**files, split="finnish")
    assert not (tmp_path / "elmo").exists()
    for split, saved in (("spacy:fi", "spacy:fi"), ("none", "whitespace")):
        convert(**files, split=split, overwrite=True)
        assert ElmoTokenizer.from_pretrained(tmp_path / "elmo").word_splitter == saved


def test_result_loads_and_carries_its_provenance(tmp_path, capsys):
    folder = converted(tmp_path)
    model = ElmoModel.from_pretrained(folder)
    tokenizer = ElmoTokenizer.from_pretrained(folder)
    assert (tokenizer.max_characters_per_token, tokenizer.word_splitter) == (16, "whitespace")
    assert model.config.provenance["weight_file"] == "weights.hdf5"
    assert len(model.config.provenance["weight_sha256"]) == 64
    assert [mix.gamma.item() for mix in model.mixes] == [1.0]
    card = (folder / "README.md").read_text()
    assert model.config.provenance["weight_sha256"] in card and "tags:\n- elmo" in card
    assert "largest relative error" in capsys.readouterr().out
    names = {path.name for path in folder.iterdir()}
    assert names == {"README.md", "config.json", "model.safetensors", "tokenizer_config.json"}


@pytest.mark.parametrize("rows", [261, 262])
def test_both_numbers_of_characters_are_accepted(tmp_path, rows):
    full = np.random.default_rng(1).standard_normal((262, 4)).astype(np.float32)
    full[0] = 0
    folder = converted(tmp_path, char_embed=full[262 - rows :])
    embeddings = ElmoModel.from_pretrained(folder).get_input_embeddings().weight
    assert torch.equal(embeddings, torch.from_numpy(full))


def test_one_layer_under_the_short_path(tmp_path):
    config = tiny_config(num_hidden_layers=1)
    options, weights = write_model(tmp_path, config)
    arrays = read_all(weights)
    with h5py.File(weights, "w") as file:
        for key, array in arrays.items():
            file[key.replace("MultiRNNCell/Cell0/", "")] = array
    convert(options_file=options, weight_file=weights, output_dir=tmp_path / "elmo")
    assert (tmp_path / "elmo" / "model.safetensors").exists()


def test_projections_may_be_there_although_the_widths_agree(tmp_path):
    config = tiny_config(
        char_filters=[[1, 8]], cell_size=8, use_char_projection=True, use_cell_projection=True
    )
    assert ElmoModel.from_pretrained(converted(tmp_path, config)).config.use_cell_projection


@pytest.mark.parametrize("form", ["folder", "nested folder", "zip"])
def test_other_places_of_the_two_files(tmp_path, form):
    options, weights = write_model(tmp_path / "in", tiny_config())
    options.rename(tmp_path / "in" / "elmo_2x12_options.json")
    write_weights(tmp_path / "in" / "elmo_softmax_weights.hdf5", softmax_arrays(4).items())
    (tmp_path / "in" / "vocab.txt").write_text("</S>\n<S>\n<UNK>\ndog\n")
    source = tmp_path / "in"
    if form == "nested folder":
        source = tmp_path
    if form == "zip":
        source = tmp_path / "218.zip"
        with zipfile.ZipFile(source, "w") as archive:
            for path in (tmp_path / "in").iterdir():
                archive.write(path, f"218/{path.name}")
    convert(str(source), output_dir=tmp_path / "out")
    model = ElmoForPreTraining.from_pretrained(tmp_path / "out")
    assert model.vocabulary.words == ["</S>", "<S>", "<UNK>", "dog"]
    assert (model.config.lm_begin_id, model.config.lm_end_id) == (1, 0)


def softmax_arrays(words, width=8):
    draw = np.random.default_rng(1)
    return {
        "softmax/W": draw.standard_normal((words, width)).astype(np.float32),
        "softmax/b": draw.standard_normal(words).astype(np.float32),
    }


def test_softmax_inside_the_main_file_comes_along_and_goes_back(tmp_path):
    arrays = softmax_arrays(5)
    options, weights = write_model(tmp_path / "in", tiny_config(), **arrays)
    convert(options_file=options, weight_file=weights, output_dir=tmp_path / "out")
    model = ElmoForPreTraining.from_pretrained(tmp_path / "out")
    assert model.vocabulary is None and model.config.lm_vocab_size == 5
    np.testing.assert_array_equal(model.softmax.weight.detach(), arrays["softmax/W"])
    plain = converted(tmp_path / "plain", tiny_config())
    batch = tokenize([["Dogs", "bark"]])
    found, expected = (
        ElmoModel.from_pretrained(folder)(**batch).last_hidden_state
        for folder in (tmp_path / "out", plain)
    )
    assert torch.equal(found, expected)
    np.testing.assert_array_equal(model.softmax.bias.detach(), arrays["softmax/b"])
    export(str(tmp_path / "out"), output_dir=tmp_path / "back")
    with open_weights(tmp_path / "back" / "softmax_weights.hdf5") as datasets:
        assert datasets.keys() == arrays.keys()
        for key, array in arrays.items():
            np.testing.assert_array_equal(datasets[key][...], array)
    assert not arrays.keys() & read_all(tmp_path / "back" / "model.hdf5").keys()


@pytest.mark.parametrize(
    ("arrays", "words", "message"),
    [
        ({}, None, "holds no softmax datasets"),
        (softmax_arrays(0), None, "'softmax/W' holds no array of numbers"),
        ({"softmax/W": np.float32(1), "softmax/b": np.float32(1)}, None, "holds no array of num"),
        ({"softmax/W": np.ones(8, np.float32)}, None, "'softmax/W' has shape"),
        (softmax_arrays(5, width=7), None, r"'softmax/W' has shape \(5, 7\) .* \(5, 8\)"),
        (softmax_arrays(5) | {"softmax/b": np.zeros(4, np.float32)}, None, r"\(4,\) .* \(5,\)"),
        ({"softmax/W": np.zeros((5, 8), np.float32)}, None, "lack the datasets softmax/b"),
        (softmax_arrays(5), "<S>\n</S>\n<UNK>\n", "3 words but the softmax has 5"),
    ],
)
def test_a_softmax_that_does_not_fit_is_refused(tmp_path, arrays, words, message):
    options, weights = write_model(tmp_path / "in", tiny_config())
    write_weights(tmp_path / "softmax.hdf5", arrays.items())
    vocab = None
    if words is not None:
        vocab = tmp_path / "vocab.txt"
        vocab.write_text(words)
    with pytest.raises(ValueError, match=message):
        convert(
            options_file=options,
            weight_file=weights,
            softmax_weight_file=tmp_path / "softmax.hdf5",
            vocab_file=vocab,
            output_dir=tmp_path / "out",
        )
    assert not (tmp_path / "out").exists()


def test_hub_repository_is_downloaded_and_converted(tmp_path, monkeypatch):
    write_model(tmp_path / "snapshot", tiny_config())

    def download(repository, allow_patterns, local_files_only):
        assert repository == "someone/elmo" and "*.hdf5" in allow_patterns and not local_files_only
        return str(tmp_path / "snapshot")

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    convert("someone/elmo", output_dir=tmp_path / "out")
    assert (tmp_path / "out" / "config.json").exists()


def test_offline_the_hub_is_not_asked(tmp_path, monkeypatch):
    """Only what is in its cache is used."""
    asked = []
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("socket.socket.connect", lambda *address: asked.append(address))
    monkeypatch.setattr("socket.getaddrinfo", lambda *address, **more: asked.append(address))
    with pytest.raises(FileNotFoundError, match="There is no local file 'some/elmo'"):
        convert("some/elmo", output_dir=tmp_path / "out", offline=True)
    assert not asked


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "holds no options.json and"),
        (["options.json"], r"holds no \*.hdf5 weights"),
        (["weights.hdf5"], "holds no options.json"),
        (["options.json", "a.hdf5", "b.hdf5"], r"\(a.hdf5, b.hdf5\); .* --weight-file"),
        (["encoder.pkl", "char.dic"], "ELMoForManyLangs model lacks 'token_embedder.pkl'"),
        (["saved_model.pb"], "TF-Hub"),
        (["tfhub_module.pb"], "TF-Hub"),
        (["options.json", "model.ckpt-12.index"], "TensorFlow checkpoint that can be read"),
        (["model.ckpt-12.index"], "no options.json beside the TensorFlow checkpoint"),
        (["config.json", "model.safetensors"], "Hugging Face"),
        (["meta.json", "model.bin", "model.txt"], "word2vec or fastText"),
        (["elmo_2x1024.magnitude"], "Magnitude"),
        (["elmo_2x4096.params"], "GluonNLP"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_converted_is_named(tmp_path, files, message):
    for name in files:
        (tmp_path / name).touch()
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        convert(str(tmp_path), output_dir=tmp_path / "out")


@pytest.mark.parametrize(
    "name",
    [
        "encoder.pkl",
        "model.ckpt-12.index",
        "model.ckpt-12.data-00000-of-00001",
        "saved_model.pb",
        "weights.th",
        "model.bin",
    ],
)
def test_single_files_of_other_formats_are_named(tmp_path, name):
    options, _ = write_model(tmp_path, tiny_config())
    (tmp_path / name).touch()
    formats = "ELMoForManyLangs|TensorFlow checkpoint|TF-Hub|AllenNLP archive|word2vec"
    with pytest.raises(ValueError, match=formats):
        convert(str(tmp_path / name), output_dir=tmp_path / "out")
    with pytest.raises(ValueError, match=formats):
        convert(options_file=options, weight_file=tmp_path / name, output_dir=tmp_path / "out")


def change_options(change):
    options = options_from_config(tiny_config())
    change(options)
    return options


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda o: o["lstm"].update(projection_dim=9), "`lstm.projection_dim` 9 .* have 8"),
        (lambda o: o["lstm"].update(dim=13), "`lstm.dim` 13 .* have 12"),
        (lambda o: o["lstm"].update(n_layers=3), "`lstm.n_layers` 3 .* have 2"),
        (lambda o: o["char_cnn"].update(n_highway=2), "`char_cnn.n_highway` 2 .* have 1"),
        (lambda o: o["char_cnn"].update(filters=[[1, 4]]), r"\[\[1, 4\]\] .* have \[\[1, 4\], \[2"),
        (lambda o: o["char_cnn"].update(activation="gelu"), "gelu"),
        (lambda o: o["char_cnn"].pop("filters"), "lack char_cnn.filters"),
        (lambda o: o["lstm"].clear(), "lack lstm.dim, lstm.projection_dim"),
        (lambda o: o.pop("char_cnn"), "the options describe one of words"),
        (lambda o: o.update(bidirectional=False), "both directions"),
        (lambda o: o["char_cnn"].update(filters=[1, 2]), r"`char_cnn.filters` \[1, 2\] where"),
        (lambda o: o["char_cnn"].update(filters="ab"), "`char_cnn.filters` 'ab' where"),
        (lambda o: o["lstm"].update(dim="12"), "`lstm.dim` '12' where"),
        (lambda o: o["lstm"].update(cell_clip=1e308), "`cell_clip` is 1e.308 but must be"),
        (lambda o: o["lstm"].update(proj_clip=10**30), "`projection_clip` is 1000.* but must be"),
        (lambda o: o["lstm"].update(cell_clip=float("nan")), "NaN is not a number in JSON"),
        (lambda o: o["lstm"].update(cell_clip=True), "cell_clip"),
        (lambda o: o["lstm"].update(use_skip_connections="yes"), "use_skip_connections"),
        (lambda o: o["char_cnn"].update(n_highway=True), "num_highway_layers"),
        (lambda o: o["char_cnn"].update(max_characters_per_token=10**9), "must be at most 4096"),
    ],
    ids=lambda value: "" if callable(value) else re.sub(r"\W+", "-", value[:30]),
)
def test_options_that_cannot_be_right_are_refused(tmp_path, change, message):
    options, weights = write_model(tmp_path, tiny_config())
    options.write_text(json.dumps(change_options(change)))
    with pytest.raises(ValueError, match=message):
        convert(options_file=options, weight_file=weights, output_dir=tmp_path / "out")
    assert not (tmp_path / "out").exists()


ONE = "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell"


@pytest.mark.parametrize(
    ("key", "array", "message"),
    [
        ("CNN_proj/b_proj", np.full(8, np.nan, np.float32), "'CNN_proj/b_proj' holds NaN"),
        (
            "CNN_proj/b_proj",
            np.zeros(7, np.float32),
            r"'CNN_proj/b_proj' has shape \(7,\) .* \(8,\)",
        ),
        ("CNN_proj/b_proj", np.zeros(8, np.int32), "'CNN_proj/b_proj' holds int32"),
        ("CNN_proj/b_proj", None, "lack the datasets CNN_proj/b_proj"),
        (f"{ONE}/W_P_0", None, f"lack the datasets {ONE}/W_P_0"),
        ("CNN/W_cnn_0", np.zeros(4, np.float32), "char_cnn.filters"),
        ("CNN/W_cnn_0", np.zeros((4, 4), np.float32), "'CNN/W_cnn_0'|char_cnn.filters"),
        ("global/extra", np.zeros(1, np.float32), "'global/extra' that is not part"),
        ("CNN/b_cnn_9", np.zeros(1, np.float32), "'CNN/b_cnn_9' is not part of a model with these"),
    ],
    ids=[
        "nan",
        "shape",
        "integers",
        "missing",
        "missing-cell",
        "axes",
        "dimensions",
        "unknown",
        "extra",
    ],
)
def test_datasets_that_cannot_be_right_are_named(tmp_path, key, array, message):
    options, weights = write_model(tmp_path, tiny_config())
    with h5py.File(weights, "a") as file:
        if key in file:
            del file[key]
        if array is not None:
            file[key] = array
    with pytest.raises(ValueError, match=message):
        convert(options_file=options, weight_file=weights, output_dir=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("key", "message"), [("embedding", "token cache"), ("softmax/W", "--softmax-weight-file")]
)
def test_side_files_are_named(tmp_path, key, message):
    options, weights = write_model(tmp_path, tiny_config())
    write_weights(weights, [(key, np.zeros((10, 8), np.float32))])
    with pytest.raises(ValueError, match=message):
        convert(options_file=options, weight_file=weights, output_dir=tmp_path / "out")


def test_files_that_are_not_what_they_should_be(tmp_path):
    options, weights = write_model(tmp_path, tiny_config())
    text = tmp_path / "text"
    text.write_text("no")
    out = tmp_path / "out"
    with pytest.raises(ValueError, match="not a readable hdf5 file"):
        convert(options_file=options, weight_file=text, output_dir=out)
    with pytest.raises(ValueError, match="not valid JSON"):
        convert(options_file=text, weight_file=weights, output_dir=out)
    with pytest.raises(FileNotFoundError, match="no file"):
        convert(options_file=options, weight_file=tmp_path / "absent", output_dir=out)
    with pytest.raises(ValueError, match="neither a folder nor a zip"):
        convert(str(text), output_dir=out)
    with pytest.raises(FileNotFoundError, match="no folder, archive or Hub repository"):
        convert("absent", output_dir=out)
    with pytest.raises(ValueError, match="both --options-file and --weight-file"):
        convert(options_file=options, output_dir=out)


def test_zip_that_points_outside_is_refused(tmp_path):
    options, weights = write_model(tmp_path / "in", tiny_config())
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.write(options, "options.json")
        archive.write(weights, "../../weights.hdf5")
    with pytest.raises(ValueError, match="points outside"):
        convert(str(tmp_path / "bad.zip"), output_dir=tmp_path / "out")


def test_a_wrong_model_is_never_written(tmp_path, monkeypatch):
    """A mistake in the table: nothing must be saved."""
    options, weights = write_model(tmp_path, tiny_config())
    monkeypatch.setattr(building, "largest_error", lambda *_: float("inf"))
    with pytest.raises(ValueError, match="differs from the reference by inf"):
        convert(options_file=options, weight_file=weights, output_dir=tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["options.json", "weights.hdf5"]


def test_reference_notices_one_wrong_weight(tmp_path):
    model, _ = load(tmp_path)
    with torch.no_grad():
        model.layers[1].backward_cell.recurrent_linear.weight[0, 0] += 0.5
    with h5py.File(tmp_path / "weights.hdf5") as file:
        datasets = {key: file[key] for key in random_arrays(tiny_config())}
        options = options_from_config(tiny_config())
        expected = reference_layers(options, datasets)
    assert largest_error(model, expected) > 10 * TOLERANCE


def load(folder):
    with open_files(Source(*write_model(folder, tiny_config()))) as weights:
        return load_converted(weights)


def test_crash_leaves_no_folder_and_keeps_the_old_one(tmp_path, monkeypatch):
    options, weights = write_model(tmp_path / "in", tiny_config())
    out = tmp_path / "out"
    arguments = {"options_file": options, "weight_file": weights, "output_dir": out}
    convert(**arguments)
    with pytest.raises(FileExistsError, match="pass --overwrite"):
        convert(**arguments)
    (out / "mine.txt").write_text("keep")

    def crash(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(convert_allennlp_to_hf, "converted_card", crash)
    with pytest.raises(OSError, match="No space left"):
        convert(**arguments, overwrite=True)
    assert (out / "mine.txt").read_text() == "keep"
    monkeypatch.undo()
    convert(**arguments, overwrite=True)
    assert not (out / "mine.txt").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_vectors_of_an_exported_model_are_the_same(tmp_path):
    folder = converted(tmp_path)
    export(str(folder), output_dir=tmp_path / "back")
    convert(str(tmp_path / "back"), output_dir=tmp_path / "again")
    batch = tokenize([["Dogs", "bark"], ["."]])
    first, second = (
        ElmoModel.from_pretrained(path)(**batch)[0] for path in (folder, tmp_path / "again")
    )
    torch.testing.assert_close(first, second, rtol=0, atol=1e-6)


def run_script(name, *arguments, code=0):
    command = [sys.executable, SCRIPTS / name, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.mark.program
@pytest.mark.parametrize("dash", ["-", "_"])
def test_scripts_take_options_with_dashes_and_underscores(tmp_path, dash):
    options, weights = write_model(tmp_path / "in_put", tiny_config())
    write_weights(tmp_path / "soft_max.hdf5", softmax_arrays(4).items())
    (tmp_path / "vocab_4.txt").write_text("</S>\n<S>\n<UNK>\ndog\n")
    arguments = {
        "options-file": options,
        "weight-file": weights,
        "softmax-weight-file": tmp_path / "soft_max.hdf5",
        "vocab-file": tmp_path / "vocab_4.txt",
        "output-dir": tmp_path / "el_mo",
    }
    spelled = [f"--{name.replace('-', dash)}={value}" for name, value in arguments.items()]
    run_script("convert_allennlp_to_hf.py", *spelled)
    back = [f"--output{dash}dir", tmp_path / "back_again"]
    printed = run_script("export_hf_to_allennlp.py", "--model", tmp_path / "el_mo", *back)
    assert "largest relative error" in printed
    names = {path.name for path in (tmp_path / "back_again").iterdir()}
    assert names == {"model.hdf5", "options.json", "softmax_weights.hdf5", "vocab.txt"}
    complained = run_script("export_hf_to_allennlp.py", *back, code=1)
    assert complained.startswith("Error: ") and "pass --overwrite" in complained
    run_script("export_hf_to_allennlp.py", *back, "--overwrite")
    # the default is the bundled model, which has no softmax
    names = {path.name for path in (tmp_path / "back_again").iterdir()}
    assert names == {"model.hdf5", "options.json"}


@pytest.mark.program
def test_scripts_list_their_options_with_dashes():
    printed = run_script("convert_allennlp_to_hf.py", "--help")
    for option in ("--options-file", "--weight-file", "--softmax-weight-file", "--vocab-file"):
        assert option in printed
    assert "_file" not in printed and "--overwrite" in printed
    printed = run_script("export_hf_to_allennlp.py", "--help")
    assert all(option in printed for option in ("--model", "--output-dir", "--overwrite"))


def test_missing_h5py_is_reported_with_the_extra(tmp_path, monkeypatch):
    options, weights = write_model(tmp_path, tiny_config())
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"requires h5py: pip install 'elmo_hf\[conversion\]'"):
        convert(options_file=options, weight_file=weights, output_dir=tmp_path / "elmo")


def write_odd(path, kind: str) -> None:
    """Replaces one dataset of a weights file by one that no honest file has."""
    with h5py.File(path, "r+") as file:
        array = file["CNN_proj/b_proj"][()]
        del file["CNN_proj/b_proj"]
        if kind == "external":
            secret = path.parent / "secret"
            secret.write_bytes(array.tobytes())
            storage = [(str(secret), 0, h5py.h5f.UNLIMITED)]
            file.create_dataset("CNN_proj/b_proj", array.shape, array.dtype, external=storage)
        elif kind == "virtual":
            layout = h5py.VirtualLayout(array.shape, array.dtype)
            layout[:] = h5py.VirtualSource(path.parent / "missing.hdf5", "x", array.shape)
            file.create_virtual_dataset("CNN_proj/b_proj", layout)
        elif kind == "external-link":
            elsewhere = path.parents[1] / "other.hdf5"
            with h5py.File(elsewhere, "w") as other:
                other["x"] = array
            file["CNN_proj/b_proj"] = h5py.ExternalLink(str(elsewhere), "x")
        elif kind == "scalar":
            file["CNN_proj/b_proj"] = np.float32(1)
        elif kind == "empty":
            file["CNN_proj/b_proj"] = h5py.Empty("f4")
        elif kind == "strings":
            file["CNN_proj/b_proj"] = ["text"]
        elif kind == "compressed":
            file.create_dataset("CNN_proj/b_proj", data=array, compression="gzip")
        elif kind == "never-written":
            file.create_dataset("CNN_proj/b_proj", array.shape, array.dtype)
        elif kind == "many-links":
            group = file.create_group("loop")
            for number in range(20):
                group[str(number)] = group
        elif kind == "huge":
            file.create_dataset("CNN_proj/b_proj", (1 << 40,), "f4", chunks=(1 << 20,))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("external", "takes its values from other files"),
        ("virtual", "takes its values from other files"),
        ("external-link", "lack the datasets CNN_proj/b_proj"),
        ("scalar", "holds no array of numbers"),
        ("empty", "holds no array of numbers"),
        ("strings", "holds object, not floating-point numbers"),
        ("compressed", "'CNN_proj/b_proj' is compressed; unpack the file with `h5repack -f NONE"),
        ("never-written", "'CNN_proj/b_proj' claims 32 bytes, but the file has only 0 of them"),
        ("many-links", "has more parts than any ELMo model"),
        ("huge", "claims 4,398,046,511,104 bytes, but the file has only"),
    ],
)
def test_a_file_gives_its_own_numbers_only(tmp_path, kind, message):
    """Neither another file's content nor zeros in the place of a missing one become weights."""
    options, weights = write_model(tmp_path / "source", tiny_config())
    write_odd(weights, kind)
    with pytest.raises(ValueError, match=message):
        convert(str(tmp_path / "source"), output_dir=tmp_path / "elmo")
    assert not (tmp_path / "elmo").exists()


def test_damaged_weights_are_one_sentence(tmp_path):
    """Whatever h5py raises. A file in which only numbers have changed may still be converted."""
    options, weights = write_model(tmp_path / "source", tiny_config())
    content = weights.read_bytes()
    draw = random.Random(0)
    for number in range(60):
        damaged = bytearray(content)
        for _ in range(draw.choice([1, 8, 64])):
            damaged[draw.randrange(len(damaged) // 3)] = draw.randrange(256)
        weights.write_bytes(damaged[: draw.choice([len(damaged), len(damaged) // 2])])
        folder = tmp_path / f"elmo-{number}"
        with contextlib.suppress(ValueError, OSError):
            convert(str(tmp_path / "source"), output_dir=folder)


def test_deep_options_are_one_sentence(tmp_path):
    options, weights = write_model(tmp_path, tiny_config())
    options.write_text('{"char_cnn": ' + "[" * 99_999)
    with pytest.raises(ValueError, match="options.json' is nested too deeply"):
        convert(options_file=options, weight_file=weights, output_dir=tmp_path / "elmo")


def test_random_options_are_one_sentence(tmp_path):
    """Any value in the place of any other."""
    options, weights = write_model(tmp_path, tiny_config())
    odd = [None, True, 0, -1, 3.5, 1e308, 10**30, "", "8", [], [1, 2], [[1, "2"]], {}, {"a": 1}]
    draw, whole = random.Random(0), options_from_config(tiny_config())
    for _ in range(100):
        changed = json.loads(json.dumps(whole))
        for _ in range(draw.choice([1, 2])):
            part = draw.choice([changed, changed.get("lstm"), changed.get("char_cnn")])
            if isinstance(part, dict) and part:
                part[draw.choice(sorted(part))] = draw.choice(odd)
        options.write_text(json.dumps(changed))
        try:
            with open_files(Source(options, weights)) as opened:
                load_converted(opened)
        except ValueError as error:
            assert "\n" not in str(error)


def test_a_small_file_takes_little_memory(tmp_path):
    """Arrays that share their bytes, or have none, claim more than the file has."""
    options, weights = write_model(tmp_path / "source", tiny_config())
    with h5py.File(weights, "r+") as file:
        file["shared"] = np.zeros(20_000, np.float32)
        for number in range(50):
            file[f"more/{number}"] = file["shared"]
    with pytest.raises(ValueError, match="claims more numbers than it has bytes"):
        convert(str(tmp_path / "source"), output_dir=tmp_path / "elmo")


def test_a_truncated_vocabulary_is_one_sentence(tmp_path):
    options, weights = write_model(tmp_path / "in", tiny_config(), **softmax_arrays(3))
    vocab = tmp_path / "vocab.txt.gz"
    vocab.write_bytes(gzip.compress(b"<S>\n</S>\n<UNK>\n")[:-6])
    with pytest.raises(ValueError, match="vocab.txt.gz' is damaged or truncated"):
        convert(str(tmp_path / "in"), vocab_file=vocab, output_dir=tmp_path / "out")


def test_what_may_not_be_read_is_not_called_missing(tmp_path, monkeypatch):
    options, weights = write_model(tmp_path / "in", tiny_config())
    monkeypatch.setattr("os.access", lambda *_: False)
    for source in ({"source": str(tmp_path / "in")}, {"options_file": options}):
        with pytest.raises(PermissionError, match="may not be read; check its permissions"):
            convert(**source, weight_file=weights, output_dir=tmp_path / "out")


@pytest.mark.parametrize("kind", ["options", "weights", "zip"])
def test_pointers_of_git_lfs_are_named(tmp_path, kind):
    options, weights = write_model(tmp_path / "in", tiny_config())
    pointer = {"options": options, "weights": weights, "zip": tmp_path / "in.zip"}[kind]
    pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")
    source = tmp_path / ("in.zip" if kind == "zip" else "in")
    with pytest.raises(ValueError, match="only a pointer .* `git lfs pull`"):
        convert(str(source), output_dir=tmp_path / "out")


def test_other_formats_are_named_in_a_zip_as_well(tmp_path):
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("some/saved_model.pb", "")
    with pytest.raises(FileNotFoundError, match="This TF-Hub module has no variables.index"):
        convert(str(tmp_path / "other.zip"), output_dir=tmp_path / "out")


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    """safetensors reports it in its own way; nothing is left behind."""
    usage = shutil.disk_usage(tmp_path)._replace(free=0)

    def full(self, folder):
        (folder / "model.safetensors").write_bytes(b"half")
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
        raise SafetensorError("Error while serializing: I/O error")

    monkeypatch.setattr(ElmoModel, "save_pretrained", full)
    with pytest.raises(OSError, match="elmo' could not be written: the disk is full"):
        converted(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
