"""Archives of AllenNLP: the biLM by its names, trained mixes, and taggers whose head is ours."""

import json
import tarfile
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from helpers.archives import (
    GAMMA,
    LABELS,
    PREFIX,
    SCALARS,
    allennlp_tensors,
    tagger_tensors,
    write_archive,
)
from helpers.tiny import random_arrays, tiny_config, tokenize

from elmo_hf import ElmoForTokenClassification, ElmoModel, ElmoTagger
from elmo_hf.conversion import torch_file
from elmo_hf.conversion.convert_allennlp_to_hf import convert
from elmo_hf.conversion.source import open_source
from elmo_hf.hub.loading import load_elmo

CONFIG = tiny_config()
ARRAYS = random_arrays(CONFIG)
SENTENCES = [["Stocks", "fell", "."], ["Up"]]


@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("packed", [True, False])
def test_arrays_and_mixes_come_back(tmp_path, legacy, packed):
    archive = write_archive(tmp_path / "model", CONFIG, ARRAYS, legacy=legacy)
    with open_source(str(archive if packed else tmp_path / "model")) as weights:
        assert weights.arrays.keys() == ARRAYS.keys()
        for key, array in ARRAYS.items():
            tolerance = 1.2e-7 if key.endswith("/B") else 0
            np.testing.assert_allclose(weights.arrays[key], array, rtol=0, atol=tolerance)
        assert weights.mixes == ((GAMMA, SCALARS),) and not weights.notes


def test_a_bilm_with_its_mix_and_what_was_left_out(tmp_path, capsys):
    head = {"encoder._module.weight_ih_l0": np.zeros((75, 16), np.float32)}
    head["text_field_embedder.token_embedder_tokens.weight"] = np.zeros((5, 2), np.float32)
    archive = write_archive(tmp_path / "model", CONFIG, ARRAYS, head, do_layer_norm=True)
    convert(str(archive), output_dir=tmp_path / "elmo")
    note = "left out: encoder, text_field_embedder.token_embedder_tokens."
    assert note in capsys.readouterr().err
    card = (tmp_path / "elmo" / "README.md").read_text()
    assert note.replace("_", "\\_") in card and "original task has learned" in card
    model = load_elmo(str(tmp_path / "elmo"))
    assert model.mixes[0].gamma.item() == GAMMA and model.config.mix_layer_norm
    assert model.mixes[0].scalars.tolist() == [*SCALARS]
    assert model.config.provenance["weight_file"] == "weights.th"


def test_options_may_be_missing_or_named(tmp_path, capsys):
    config = tiny_config(max_characters_per_token=50)
    write_archive(tmp_path / "model", config, ARRAYS)
    [options] = (tmp_path / "model" / "fta").iterdir()
    options = options.rename(tmp_path / "options.json")
    convert(str(tmp_path / "model"), output_dir=tmp_path / "elmo")
    note = capsys.readouterr().err
    assert "skip connections and 50 characters" in note and "are assumed" in note
    assert ElmoModel.from_pretrained(tmp_path / "elmo").config.max_characters_per_token == 50
    options.write_text(options.read_text().replace('"cell_clip": 3.0', '"cell_clip": 0.5'))
    named = {"options_file": options, "overwrite": True}
    convert(str(tmp_path / "model"), output_dir=tmp_path / "elmo", **named)
    assert ElmoModel.from_pretrained(tmp_path / "elmo").config.cell_clip == 0.5
    assert "are assumed" not in capsys.readouterr().err


def expected_logits(head: dict[str, np.ndarray], bilm: ElmoModel) -> torch.Tensor:
    """ELMo, torch's LSTM sentence by sentence, and a linear layer, as AllenNLP's taggers do it."""
    size = head["encoder._module.weight_hh_l0"].shape[1]
    lstm = torch.nn.LSTM(bilm.config.hidden_size, size, batch_first=True, bidirectional=True)
    state = {name.rpartition(".")[2]: torch.from_numpy(part) for name, part in head.items()}
    lstm.load_state_dict({name: state[name] for name in lstm.state_dict()})
    weight, bias = (
        torch.from_numpy(head[f"tag_projection_layer._module.{name}"])
        for name in ("weight", "bias")
    )
    layers = bilm(**tokenize(SENTENCES[:1]), output_hidden_states=True).hidden_states
    shares = torch.tensor(SCALARS).softmax(dim=0)
    mixed = GAMMA * sum(share * layer for share, layer in zip(shares, layers, strict=True))
    return torch.nn.functional.linear(lstm(mixed)[0], weight, bias)


def best_path(logits: torch.Tensor, transitions: np.ndarray, rules: np.ndarray) -> tuple:
    """The path of the highest score among all that the rules allow, each of which is tried."""
    scores = {}
    for path in product(range(len(LABELS)), repeat=len(logits)):
        steps = [*pairwise([len(LABELS), *path])]
        if all(rules[step] for step in steps):
            scores[path] = sum(transitions[step] for step in steps[1:])
            scores[path] += sum(logits[place, tag].item() for place, tag in enumerate(path))
    return max(scores, key=scores.__getitem__)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["simple_tagger", "crf_tagger"])
def test_taggers_of_our_shape_are_taken_whole(tmp_path, kind):
    has_crf = kind == "crf_tagger"
    head = tagger_tensors(CONFIG.hidden_size, 5, has_crf)
    if has_crf:
        # so that it is the rules that keep a sentence from beginning with I-X
        head["tag_projection_layer._module.bias"] += np.float32([0, 0, 20])
    archive = write_archive(tmp_path / "model", CONFIG, ARRAYS, head, kind, dropout=0.25)
    convert(str(archive), output_dir=tmp_path / "tagger")
    model = ElmoForTokenClassification.from_pretrained(tmp_path / "tagger").eval()
    assert list(model.config.id2label.values()) == LABELS
    assert (model.config.output_dropout, model.config.classifier_dropout) == (0.25, 0)
    found = model(**tokenize(SENTENCES)).logits
    expected = expected_logits(head, load_elmo(str(tmp_path / "tagger")))
    torch.testing.assert_close(found[:1], expected, rtol=1e-4, atol=1e-5)
    [first, _] = ElmoTagger(str(tmp_path / "tagger")).tag(SENTENCES)
    assert len(first.tags) == 3
    assert "token-classification" in (tmp_path / "tagger" / "README.md").read_text()
    assert model.config.crf_constraints == ("BIO" if has_crf else None)
    if has_crf:
        np.testing.assert_array_equal(model.crf.transitions, head["crf.transitions"])
        assert not model.crf.start_transitions.any()
        transitions = head["crf.transitions"]
        best = best_path(expected[0], transitions, np.ones((5, 5)))
        assert LABELS[best[0]] == "I-X"
        rules = head["crf._constraint_mask"]
        best = best_path(expected[0], transitions, rules)
        assert first.tags == [LABELS[number] for number in best]
    else:
        assert [LABELS.index(tag) for tag in first.tags] == expected[0].argmax(dim=-1).tolist()


@pytest.mark.parametrize("change", ["gru", "labels", "more", "one way"])
def test_of_other_taggers_the_bilm_is_taken(tmp_path, change):
    head = tagger_tensors(CONFIG.hidden_size, 5, False)
    if change == "gru":
        head = {n: part[: 3 * len(part) // 4] if "_l0" in n else part for n, part in head.items()}
    elif change == "labels":
        head["tag_projection_layer._module.bias"] = np.zeros(4, np.float32)
    elif change == "more":
        head["encoder._module.weight_ih_l1"] = np.zeros((20, 10), np.float32)
    else:
        head = {name: part for name, part in head.items() if "reverse" not in name}
    write_archive(tmp_path / "model", CONFIG, ARRAYS, head)
    with open_source(str(tmp_path / "model")) as weights:
        assert weights.head is None and "simple_tagger" in weights.notes[-1]


@pytest.mark.parametrize("change", ["free", "other rules", "another shape"])
def test_only_constraints_that_we_know_are_taken(tmp_path, change):
    head = tagger_tensors(CONFIG.hidden_size, 5, True)
    mask = head["crf._constraint_mask"]
    if change == "free":
        mask[:] = 1
    elif change == "other rules":
        mask[0, 2] = 1  # from O to I-X
    else:
        head["crf._constraint_mask"] = mask[1:, 1:]
    write_archive(tmp_path / "model", CONFIG, ARRAYS, head, "crf_tagger")
    with open_source(str(tmp_path / "model")) as weights:
        notes = " ".join(weights.notes)
        assert (weights.head is None) is (change != "free")
        assert ("not those of BIO, IOB1, BIOUL" in notes) is (change != "free")
        if weights.head is None:
            assert "left out: encoder, tag_projection_layer, crf" in notes
        else:
            assert weights.head.settings["crf_constraints"] is None and not notes


def test_the_settings_of_an_elmo_beside_the_embedder(tmp_path, monkeypatch):
    """As in biattentive_classification_network."""
    monkeypatch.setattr("helpers.archives.PREFIX", "_elmo.")
    write_archive(tmp_path / "model", CONFIG, ARRAYS)
    model = {"type": "biattentive_classification_network", "elmo": {"do_layer_norm": True}}
    (tmp_path / "model" / "config.json").write_text(json.dumps({"model": model}))
    with open_source(str(tmp_path / "model")) as weights:
        assert weights.settings == {"mix_layer_norm": True}


def test_a_fixed_mix_keeps_its_meaning(tmp_path):
    write_archive(tmp_path / "model", CONFIG, ARRAYS)
    state = torch.load(tmp_path / "model" / "weights.th")
    for number, value in enumerate([-9e10, 1.0, -9e10]):
        state[f"{PREFIX}scalar_mix_0.scalar_parameters.{number}"] = torch.tensor([value])
    torch.save(state, tmp_path / "model" / "weights.th")
    convert(str(tmp_path / "model"), output_dir=tmp_path / "elmo")
    [mix] = load_elmo(str(tmp_path / "elmo")).mixes
    assert mix.scalars.softmax(dim=0).tolist() == [0, 1, 0]


def change_weights(folder, change: str) -> None:
    state = torch.load(folder / "weights.th")
    name = PREFIX + "_elmo_lstm._token_embedder._char_embedding_weights"
    lstm = PREFIX + "_elmo_lstm._elmo_lstm.forward_layer_0"
    if change == "none":
        state = {"encoder.weight": torch.zeros(2)}
    elif change == "transformer":
        state = {"_contextualizer.forward_transformer.weight": torch.zeros(2)}
    elif change == "two":
        state["other." + name] = state[name]
    elif change == "nan":
        state[name][5, 0] = torch.nan
    elif change == "shape":
        state[f"{lstm}.state_linearity.bias"] = torch.zeros(7)
    elif change == "unknown":
        state[PREFIX + "_elmo_lstm.more"] = torch.zeros(2)
    elif change == "missing":
        del state[f"{lstm}.state_linearity.weight"]
    elif change == "mix":
        del state[PREFIX + "scalar_mix_0.scalar_parameters.1"]
    elif change == "claims":
        state[name] = torch.zeros(1).expand(1 << 30, 4)
    elif change == "object":
        state = [1, 2]
    elif change == "number":
        state[name] = 5
    torch.save(state, folder / "weights.th")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("none", "'weights.th' holds no ELMo"),
        ("transformer", "holds a transformer ELMo, which is not made of LSTMs"),
        ("two", "holds 2 ELMos; convert the files"),
        ("nan", "'char_embed' holds NaN"),
        (
            "shape",
            "state_linearity.bias' of shape .7,. and type float32, which is not part of an ELMo",
        ),
        ("unknown", "_elmo_lstm.more' of shape"),
        ("missing", "lacks the tensor 'forward_layer_0.state_linearity.weight'"),
        ("mix", "mix 0 of the layers lacks some of its numbers"),
        ("claims", "claims more numbers than it has bytes"),
        ("object", "does not hold the tensors of a model"),
        ("number", "is not a plain tensor"),
    ],
)
def test_odd_archives_are_one_sentence(tmp_path, change, message):
    write_archive(tmp_path / "model", CONFIG, ARRAYS)
    change_weights(tmp_path / "model", change)
    with pytest.raises(ValueError, match=message) as caught:
        convert(str(tmp_path / "model"), output_dir=tmp_path / "out")
    assert "\n" not in str(caught.value) and not (tmp_path / "out").exists()


class Trap:
    def __reduce__(self):
        return eval, ("open('trapped', 'w')",)


def test_nothing_in_an_archive_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_archive(tmp_path / "model", CONFIG, ARRAYS)
    for legacy in (True, False):
        torch.save(
            {"a": Trap()},
            tmp_path / "model" / "weights.th",
            _use_new_zipfile_serialization=not legacy,
        )
        with pytest.raises(ValueError, match="holds more than numbers, so it was not"):
            convert(str(tmp_path / "model"), output_dir=tmp_path / "out")
    assert not (tmp_path / "trapped").exists()


def test_a_packed_zip_of_tensors_is_refused(tmp_path):
    import zipfile

    torch.save({"a": torch.zeros(1000)}, tmp_path / "stored.th")
    with zipfile.ZipFile(tmp_path / "stored.th") as stored:
        members = {name: stored.read(name) for name in stored.namelist()}
    with zipfile.ZipFile(tmp_path / "packed.th", "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    assert torch_file.read_state_dict(tmp_path / "stored.th")["a"].shape == (1000,)
    with pytest.raises(ValueError, match="is a packed zip"):
        torch_file.read_state_dict(tmp_path / "packed.th")


def test_hdf5_in_a_tar(tmp_path):
    from helpers.tiny import write_model

    write_model(tmp_path / "language", CONFIG)
    with tarfile.open(tmp_path / "elmo.tar.bz2", "w:bz2") as tar:
        tar.add(tmp_path / "language", "language")
    convert(str(tmp_path / "elmo.tar.bz2"), output_dir=tmp_path / "elmo")
    assert json.loads((tmp_path / "elmo" / "config.json").read_text())["cell_size"] == 12
    assert allennlp_tensors(ARRAYS).keys()
