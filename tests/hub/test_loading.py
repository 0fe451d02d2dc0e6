"""Model folders that are damaged or hostile end in one sentence, in every command."""

import importlib
import json
import random
import shutil

import pytest
import torch
from helpers.tiny import WIDTH, tiny_config
from safetensors.torch import load_file, save_file

from elmo_hf import (
    ElmoEmbedder,
    ElmoForPreTraining,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoTagger,
    ElmoTokenizer,
)
from elmo_hf.cli.info import info
from elmo_hf.conversion.export_hf_to_allennlp import export
from elmo_hf.export.onnx import write_model
from elmo_hf.hub import load_elmo, publish
from elmo_hf.hub.loading import load_model, load_tokenizer

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("whole") / "tagger"
    ElmoForTokenClassification(tiny_config(num_labels=3)).save_pretrained(folder)
    ElmoTokenizer(max_characters_per_token=WIDTH).save_pretrained(folder)
    return folder


@pytest.fixture
def folder(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "model")


@pytest.fixture
def uploads(monkeypatch):
    """What would be uploaded, by name."""
    found = {}

    def upload(staging, repo, private):
        found.update({path.name: path.read_bytes() for path in staging.iterdir()})
        return repo

    # the package has a function of the module's name
    module = importlib.import_module("elmo_hf.hub.publish")
    monkeypatch.setattr(module, "upload", upload)
    return found


def commands(folder) -> list:
    return [
        lambda: info(str(folder)),
        lambda: load_elmo(str(folder)),
        lambda: ElmoEmbedder(folder),
        lambda: ElmoTagger(str(folder)),
        lambda: export(str(folder), output_dir=folder.parent / "hdf5"),
    ]


def assert_refused(folder, message: str, also=()) -> None:
    for command in [*commands(folder), *also]:
        with pytest.raises((ValueError, OSError), match=message) as caught:
            command()
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 500
    assert not (folder.parent / "hdf5").exists()


def change_config(folder, **changes) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def test_a_whole_folder_loads(folder, uploads, capsys):
    for command in commands(folder):
        command()
    assert publish(folder, "me/elmo") == "me/elmo" and "model.safetensors" in uploads


@pytest.mark.parametrize("content", [b"", POINTER, b"half", bytes(100)], ids=lambda c: str(c)[:9])
def test_weights_that_are_not_there_are_reported(folder, uploads, content):
    half = (folder / "model.safetensors").read_bytes()[:-1000]
    (folder / "model.safetensors").write_bytes(half if content == b"half" else content)
    message = "git lfs pull" if content == POINTER else "model.safetensors'.*(damaged|not valid)"
    assert_refused(folder, message, [lambda: publish(folder, "me/elmo")])
    assert not uploads


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "config.json' is not valid JSON"),
        ("[]", "config.json' holds no JSON object"),
        ('{"a":' * 99_999, "config.json' is nested too deeply"),
        (POINTER.decode(), "git lfs pull"),
        (None, "has no config.json"),
    ],
    ids=["empty", "list", "deep", "pointer", "missing"],
)
def test_a_configuration_that_is_none_is_reported(folder, uploads, text, message):
    if text is None:
        (folder / "config.json").unlink()
    else:
        (folder / "config.json").write_text(text)
    assert_refused(folder, message, [lambda: publish(folder, "me/elmo")])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell_size": "12"}, "cell_size"),
        ({"cell_size": 13}, "shape .* do not belong together"),
        ({"cell_size": 10**30}, "`cell_size` is 1000.* but must be at most"),
        ({"cell_size": 1 << 24}, "shape .* do not belong together"),
        ({"num_hidden_layers": 1}, "has a tensor 'layers.1.* that is not part of such a model"),
        ({"num_hidden_layers": 3}, "lacks the tensor 'layers.2"),
        ({"num_hidden_layers": 10**9}, "`num_hidden_layers` is 1000000000 but must be at most"),
        ({"num_highway_layers": True}, "num_highway_layers"),
        ({"char_filters": [1, 2]}, "`char_filters` holds 1, which is not a pair"),
        ({"char_filters": [[1, 4]]}, "token_encoder"),
        ({"max_characters_per_token": 10**9}, "`max_characters_per_token` is 1000000000"),
        ({"num_labels": 10**9}, "`num_labels` is 1000000000"),
        ({"id2label": {"0": "a\x1b[31m"}}, "a tag is text without control characters"),
        ({"id2label": {"0": 5}}, "id2label"),
        ({"architectures": {"0": 5}}, "architectures"),
        ({"dtype": [[1, 2]]}, "cannot be loaded"),
        ({"provenance": ["x"]}, "provenance"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_configuration_that_cannot_be_right_is_reported(folder, changes, message):
    change_config(folder, **changes)
    assert_refused(folder, message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda parts: parts.popitem(), "lacks the tensor"),
        (lambda parts: parts.update(extra=torch.zeros(2)), "has a tensor 'extra' that is not part"),
    ],
)
def test_a_tagger_has_all_its_tensors_and_no_other(folder, change, message):
    parts = dict(sorted(load_file(folder / "model.safetensors").items(), reverse=True))
    change(parts)
    save_file(parts, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=message):
        ElmoTagger(str(folder))


def test_a_bilm_comes_out_of_any_model(tmp_path):
    """With a softmax, a head or mixes that it does not use, or without mixes."""
    config = tiny_config(lm_vocab_size=5, num_labels=2)
    for kind in (ElmoForPreTraining, ElmoForTokenClassification, ElmoModel):
        kind(config).save_pretrained(tmp_path / kind.__name__)
        assert isinstance(load_elmo(str(tmp_path / kind.__name__)), ElmoModel)
    change_config(tmp_path / "ElmoModel", output_layer="top")
    assert not load_elmo(str(tmp_path / "ElmoModel")).mixes


def test_weights_in_several_files(tmp_path):
    model = ElmoModel(tiny_config())
    model.save_pretrained(tmp_path, max_shard_size="5KB")
    shards = sorted(tmp_path.glob("model-*.safetensors"))
    assert len(shards) > 1
    found = load_elmo(str(tmp_path)).state_dict()
    assert all(torch.equal(found[key], part) for key, part in model.state_dict().items())
    content = shards[-1].read_bytes()
    shards[-1].write_bytes(content[:-1])
    with pytest.raises(ValueError, match="is damaged or truncated"):
        load_elmo(str(tmp_path))
    shards[-1].unlink()
    with pytest.raises(ValueError, match="its part 'model-.*' is missing"):
        load_elmo(str(tmp_path))
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": [1]}')
    with pytest.raises(ValueError, match="holds no `weight_map`"):
        load_elmo(str(tmp_path))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_none_are_reported_with_their_tensor(folder, number):
    weights = load_file(folder / "model.safetensors")
    weights["elmo.layers.1.forward_cell.projection.weight"][3, 2] = number
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    name = "layers.1.forward_cell.projection.weight"
    assert_refused(folder, f"holds NaN, infinity or huge numbers in the tensor '(elmo.)?{name}'")


def test_onnx_is_made_of_checked_models_only(folder, monkeypatch):
    monkeypatch.setattr("elmo_hf.export.onnx.require", lambda *_: None)
    weights = load_file(folder / "model.safetensors")
    weights["classifier.bias"][0] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match="huge numbers in the tensor 'classifier.bias'"):
        write_model(str(folder), folder.parent / "tagger.onnx")
    (folder / "model.safetensors").write_bytes(b"")
    with pytest.raises(ValueError, match="damaged or truncated"):
        write_model(str(folder), folder.parent / "tagger.onnx")
    assert not (folder.parent / "tagger.onnx").exists()


@pytest.mark.parametrize("value", [1000.0, 3e38])
def test_huge_numbers_are_refused(tmp_path, value):
    """They are finite, but results would not be."""
    model = ElmoModel(tiny_config())
    model.layers[0].forward_cell.projection.weight.data.fill_(value)
    model.save_pretrained(tmp_path)
    if value == 1000.0:
        load_elmo(str(tmp_path))
        return
    with pytest.raises(ValueError, match="holds NaN, infinity or huge numbers in the tensor"):
        load_elmo(str(tmp_path))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_characters_per_token": 10**9}, "characters per word beside a model of 16"),
        ({"added_tokens_decoder": [1]}, "cannot be loaded"),
        ({"pad_token": ""}, "cannot be loaded"),
        ({"eos_token": {"a": 1}}, "cannot be loaded"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_tokenizer_that_cannot_be_right_is_reported(folder, changes, message):
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    with pytest.raises(ValueError, match=message) as caught:
        ElmoTagger(str(folder))
    assert "\n" not in str(caught.value)
    file.write_text("{")
    assert_refused(folder, "tokenizer_config.json' is not valid JSON")


def test_the_tokenizer_of_a_folder_fits(folder):
    model = load_model(ElmoForTokenClassification, str(folder))
    assert load_tokenizer(str(folder), model.config).max_characters_per_token == WIDTH


def test_a_file_is_no_folder(folder):
    for file in ("config.json", "model.safetensors"):
        with pytest.raises(ValueError, match="is a file; name the folder of a model, or pass"):
            ElmoEmbedder(str(folder / file))


def test_what_may_not_be_read_is_not_called_missing(folder, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    assert_refused(folder, "may not be read; check its permissions")


def test_random_damage_is_one_sentence(folder):
    """Of any file, by changed, lost and added bytes."""
    draw = random.Random(0)
    contents = {path: path.read_bytes() for path in folder.iterdir()}
    for _ in range(60):
        path = draw.choice(sorted(contents))
        damaged = bytearray(contents[path])
        for _ in range(draw.choice([1, 10])):
            damaged[draw.randrange(min(len(damaged), 4000))] = draw.randrange(256)
        path.write_bytes(damaged[: draw.choice([len(damaged), draw.randrange(len(damaged))])])
        try:
            list(ElmoTagger(str(folder)).tag([["Dogs", "bark"]]))
        except (ValueError, OSError) as error:
            assert "\n" not in str(error)
        path.write_bytes(contents[path])


def test_info_prints_no_commands_for_a_terminal(folder, capsys):
    change_config(folder, provenance={"a\x1b]0;title\x07": "b\x1b[2J\u202e"})
    info(str(folder))
    printed = capsys.readouterr().out
    assert r"a\x1b]0;title\x07" in printed and r"b\x1b[2J\u202e" in printed
    assert "\x1b" not in printed


@pytest.mark.parametrize("name", ["README.md", "model.safetensors", "lm_vocabulary.txt"])
def test_push_takes_no_file_from_elsewhere(folder, tmp_path, uploads, name):
    secret = tmp_path / "secret"
    shutil.copy(folder / "model.safetensors", secret)
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(secret)
    with pytest.raises(ValueError, match=f"{name}' is a link to a file outside the folder"):
        publish(folder, "me/elmo")
    assert not uploads
    # a link within the folder, and to the folder, is no danger
    (folder / name).unlink()
    shutil.move(secret, folder / "real")
    (folder / name).symlink_to("real")
    (tmp_path / "link").symlink_to(folder)
    publish(tmp_path / "link", "me/elmo")
    assert name in uploads
