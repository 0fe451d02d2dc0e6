import json

import pytest
from helpers.tiny import tiny_config
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig

from elmo_hf import ElmoConfig


def test_defaults_are_the_original_model():
    config = ElmoConfig()
    assert (config.hidden_size, config.num_filters, config.vocab_size) == (1024, 2048, 262)
    assert config.use_char_projection and config.use_cell_projection


def test_round_trip_keeps_every_field(tmp_path):
    config = tiny_config(char_filters=[(1, 4), (2, 4)], projection_size=8, cell_clip=None)
    config.save_pretrained(tmp_path)
    assert (
        AutoConfig.from_pretrained(tmp_path).to_dict() | {"_name_or_path": ""} == config.to_dict()
    )
    assert "hidden_size" not in json.loads((tmp_path / "config.json").read_text())


def test_projections_are_left_out_where_the_widths_agree():
    config = tiny_config(char_filters=[[1, 8]], projection_size=8, cell_size=8)
    assert not config.use_char_projection and not config.use_cell_projection


@pytest.mark.parametrize(
    ("overrides", "value"),
    [
        ({"char_filters": []}, "empty"),
        ({"char_filters": [[1, 2, 3]]}, r"\[1, 2, 3\]"),
        ({"char_filters": [[17, 4]]}, "17"),
        ({"char_activation": "gelu"}, "'gelu'"),
        ({"cell_clip": 0}, "`cell_clip` is 0"),
        ({"projection_clip": -1.0}, "-1.0"),
        ({"num_hidden_layers": 0}, "`num_hidden_layers` is 0"),
        ({"num_highway_layers": -1}, "-1"),
        (
            {"max_characters_per_token": 2, "char_filters": [[1, 4]]},
            "`max_characters_per_token` is 2",
        ),
        ({"vocab_size": 261}, "261"),
        ({"lm_vocab_size": 0}, "`lm_vocab_size` is 0"),
        ({"output_layer": 3}, "`output_layer` is 3"),
        ({"output_layer": "sum"}, "'sum'"),
        ({"output_layer": "top", "num_output_representations": 2}, "is 2"),
        ({"use_char_projection": False}, "18 filters"),
        ({"use_cell_projection": False}, "`cell_size` 12"),
        ({"classifier_dropout": 1.0}, "1.0"),
        ({"classifier_pooling": "first"}, "'first'"),
        ({"mix_after_task_lstm": True}, "are 0, 1 and False"),
    ],
    ids=str,
)
def test_bad_values_are_refused_by_name(overrides, value):
    with pytest.raises(StrictDataclassError, match=value):
        tiny_config(**overrides)


@pytest.mark.parametrize("overrides", [{"cell_size": 2.0}, {"output_dropout": "0.1"}], ids=str)
def test_wrong_types_are_refused(overrides):
    with pytest.raises(StrictDataclassError):
        tiny_config(**overrides)


@pytest.mark.parametrize(
    ("overrides", "value"),
    [
        ({"projection_clip": -1}, "`projection_clip` is -1"),
        ({"cell_clip": 0}, "`cell_clip` is 0"),
        ({"output_layer": 9}, "`output_layer` is 9"),
        ({"output_layer": -1}, "`output_layer` is -1"),
        ({"num_output_representations": 2, "output_layer": "top"}, "is 2"),
        ({"classifier_dropout": 1}, "`classifier_dropout` is 1"),
        ({"cell_size": 2.5}, "cell_size"),
    ],
    ids=str,
)
def test_overrides_of_a_loaded_configuration_are_checked(overrides, value, tmp_path):
    tiny_config().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=value):
        ElmoConfig.from_pretrained(tmp_path, **overrides)
    with pytest.raises(ValueError, match=value):
        AutoConfig.from_pretrained(tmp_path, **overrides)


def test_folders_without_a_format_version_load_and_newer_ones_are_refused(tmp_path):
    tiny_config().save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    fields = json.loads(file.read_text())
    assert fields.pop("format_version") == 1
    # a field of earlier folders
    file.write_text(json.dumps(fields | {"lm_unknown_id": 2}))
    assert ElmoConfig.from_pretrained(tmp_path).format_version == 1
    file.write_text(json.dumps(fields | {"format_version": 2}))
    with pytest.raises(ValueError, match="format version 2.*upgrade elmo_hf"):
        ElmoConfig.from_pretrained(tmp_path)
