"""AllenNLP's modules: values, gradients, names, and the state that is carried.

What AllenNLP's and TensorFlow's own numbers can say is in `test_allennlps_own_tests`.
"""

import copy
import io
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from helpers.tiny import random_arrays, tiny_config, write_model

from elmo_hf.conversion.options_map import options_from_config
from elmo_hf.conversion.reference_elmo import run
from elmo_hf.standin.bilm import _ElmoBiLm
from elmo_hf.standin.boundaries import add_sentence_boundary_token_ids, remove_sentence_boundaries
from elmo_hf.standin.character_encoder import _ElmoCharacterEncoder
from elmo_hf.standin.elmo import Elmo, ElmoTokenEmbedder, batch_to_ids
from elmo_hf.standin.errors import ConfigurationError
from elmo_hf.standin.scalar_mix import ScalarMix

SENTENCES = [["The", "bank", "of", "the", "river"], ["Banks", "lend"], ["x"]]


def test_gradients_are_those_of_finite_differences(tiny_files):
    """In AllenNLP's own layout: of every kind of parameter."""
    elmo = Elmo(*tiny_files, 1, requires_grad=True, dropout=0).double()
    lstm = elmo._elmo_lstm._elmo_lstm
    ids = batch_to_ids(SENTENCES)
    elmo(ids)
    state = lstm._states
    weights = torch.randn(3, 5, elmo.get_output_dim(), dtype=torch.float64)

    def loss() -> torch.Tensor:
        lstm._states = state
        return (elmo(ids)["elmo_representations"][0] * weights).sum()

    loss().backward()
    generator = torch.Generator().manual_seed(1)
    for name, parameter in elmo.named_parameters():
        place = int(torch.randint(parameter.numel(), (1,), generator=generator))
        flat, step, values = parameter.data.view(-1), 1e-6, []
        start = float(flat[place])
        for sign in (1, -1):
            flat[place] = start + sign * step
            with torch.no_grad():
                values.append(float(loss()))
        flat[place] = start
        expected = (values[0] - values[1]) / (2 * step)
        found = float(parameter.grad.view(-1)[place])
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-7), name


def test_trained_and_frozen_modules_agree(tiny_files):
    frozen, trained = Elmo(*tiny_files, 2, dropout=0), Elmo(*tiny_files, 2, True, dropout=0)
    for sentences in (SENTENCES, SENTENCES[:1], SENTENCES[::-1]):
        ids = batch_to_ids(sentences)
        one, other = frozen(ids), trained(ids)
        for pair in zip(*(read["elmo_representations"] for read in (one, other)), strict=True):
            torch.testing.assert_close(*pair, rtol=1e-5, atol=1e-6)
        assert torch.equal(one["mask"], other["mask"])
    assert not any(p.requires_grad for p in frozen._elmo_lstm.parameters())
    assert frozen(ids)["elmo_representations"][0].requires_grad
    assert not frozen._elmo_lstm(ids)["activations"][1].requires_grad


def test_values_are_the_references_call_after_call(tiny_files):
    config = tiny_config(max_characters_per_token=50, num_highway_layers=2)
    bilm, state = _ElmoBiLm(*tiny_files), None
    for words in SENTENCES:
        found = bilm(batch_to_ids([words]))["activations"]
        expected, state = run(random_arrays(config), options_from_config(config), words, state)
        for layer, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(layer[0, 1:-1].numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_the_state_belongs_to_rows(tiny_files):
    """Batches of any sizes give each row what it would get in batches of its own."""
    together = _ElmoBiLm(*tiny_files)
    batches = [SENTENCES[:2], SENTENCES, SENTENCES[1:2], [SENTENCES[0], [], SENTENCES[2]]]
    alone = [_ElmoBiLm(*tiny_files) for _ in range(3)]
    for batch in batches:
        found = together(batch_to_ids(batch))["activations"][-1]
        for row, words in enumerate(batch):
            expected = alone[row](batch_to_ids([words]))["activations"][-1][0]
            torch.testing.assert_close(found[row, : len(expected)], expected, rtol=1e-5, atol=1e-6)
    for part in together._elmo_lstm._states:
        assert part.shape[:2] == (2, 3) and not part.requires_grad


def test_rows_without_tokens_keep_their_state(tiny_files):
    lstm = _ElmoBiLm(*tiny_files)._elmo_lstm
    inputs = torch.randn(2, 3, lstm.input_size)
    lstm(inputs, torch.tensor([[1, 1, 1], [1, 1, 0]]))
    before = lstm._states
    read = lstm(inputs, torch.tensor([[0, 0, 0], [1, 0, 0]]))
    assert not read[:, 0].any() and read[:, 1, 0].any() and not read[:, 1, 1:].any()
    for old, new in zip(before, lstm._states, strict=True):
        assert torch.equal(old[:, 0], new[:, 0]) and not torch.equal(old[:, 1], new[:, 1])


def test_states_are_reset_for_some_or_for_all(tiny_files):
    bilm = _ElmoBiLm(*tiny_files)
    lstm, ids = bilm._elmo_lstm, batch_to_ids(SENTENCES[:2])
    first = bilm(ids)["activations"][-1]
    lstm.reset_states(torch.tensor([1, 0]))
    assert not lstm._states[0][:, 0].any() and lstm._states[0][:, 1].any()
    with pytest.raises(ValueError, match="`mask` is of 3 sentences but the states are of 2"):
        lstm.reset_states(torch.ones(3))
    second = bilm(ids)["activations"][-1]
    torch.testing.assert_close(first[0], second[0])
    assert not torch.allclose(first[1], second[1])
    lstm.reset_states()
    assert lstm._states is None
    lstm.stateful = False
    for _ in range(2):
        torch.testing.assert_close(bilm(ids)["activations"][-1], first)


def test_state_fresh_is_the_same_every_time(tiny_files, monkeypatch):
    monkeypatch.setenv("ELMO_HF_STANDIN_STATE", "fresh")
    bilm = _ElmoBiLm(*tiny_files)
    first, second = (bilm(batch_to_ids(SENTENCES))["activations"][-1] for _ in range(2))
    assert torch.equal(first, second)


def test_names_load_into_each_other(tiny_files):
    elmo = Elmo(*tiny_files, 1, dropout=0)
    names = list(elmo.state_dict())
    # as in the checkpoints of models that AllenNLP has trained
    assert names[0] == "_elmo_lstm._token_embedder._char_embedding_weights"
    lstm = "_elmo_lstm._elmo_lstm.backward_layer_1"
    for part in ("input_linearity.weight", "state_linearity.weight", "state_linearity.bias"):
        assert f"{lstm}.{part}" in names
    assert names[-4:] == ["scalar_mix_0.gamma"] + [
        f"scalar_mix_0.scalar_parameters.{number}" for number in range(3)
    ]
    other = Elmo(*tiny_files, 1, dropout=0)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(0.5)
    ids = batch_to_ids(SENTENCES)
    expected = elmo(ids)["elmo_representations"][0]
    # read once, so that its prepared network must notice the change
    assert not torch.allclose(other(ids)["elmo_representations"][0], expected)
    other.load_state_dict(elmo.state_dict(), strict=True)
    other._elmo_lstm._elmo_lstm.reset_states()
    torch.testing.assert_close(other(ids)["elmo_representations"][0], expected)


def test_an_optimizers_step_changes_what_is_read(tiny_files):
    elmo = Elmo(*tiny_files, 1, requires_grad=True, dropout=0)
    optimizer = torch.optim.SGD(elmo.parameters(), lr=0.1)
    ids = batch_to_ids(SENTENCES)
    losses = []
    for _ in range(3):
        elmo._elmo_lstm._elmo_lstm.reset_states()
        loss = elmo(ids)["elmo_representations"][0].square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True) and losses[0] > losses[-1]
    assert all(parameter.grad is not None for parameter in elmo.parameters())


def test_modules_are_copied_and_pickled(tiny_files):
    elmo, ids = Elmo(*tiny_files, 1, dropout=0), batch_to_ids(SENTENCES)
    expected = elmo(ids)["elmo_representations"][0]
    file = io.BytesIO()
    torch.save(elmo, file)
    file.seek(0)
    for other in (copy.deepcopy(elmo), torch.load(file, weights_only=False)):
        other._elmo_lstm._elmo_lstm.reset_states()
        torch.testing.assert_close(other(ids)["elmo_representations"][0], expected)


def test_a_trained_module_may_be_frozen_and_thawed(tiny_files):
    elmo, ids = Elmo(*tiny_files, 1, requires_grad=True, dropout=0), batch_to_ids(SENTENCES)
    results = []
    for requires_grad in (True, False, True, False):
        elmo._elmo_lstm.requires_grad_(requires_grad)
        elmo._elmo_lstm._elmo_lstm.reset_states()
        read = elmo._elmo_lstm(ids)["activations"][-1]
        assert read.requires_grad == requires_grad
        results.append(read.detach())
    for other in results[1:]:
        torch.testing.assert_close(other, results[0], rtol=1e-5, atol=1e-6)


def test_parameters_in_unusual_forms_are_read(tiny_files):
    """Without gaps in another order, with gaps, as a function of others, and twice the same."""
    ids = batch_to_ids(SENTENCES)
    for requires_grad in (False, True):
        plain, unusual = (_ElmoBiLm(*tiny_files, requires_grad) for _ in range(2))
        for bilm in (plain, unusual):
            lstm = bilm._elmo_lstm
            lstm.backward_layer_1.input_linearity = lstm.forward_layer_1.input_linearity
        lstm = unusual._elmo_lstm
        transposed = lstm.forward_layer_0.input_linearity
        transposed.weight.data = transposed.weight.data.t().contiguous().t()
        gaps = lstm.forward_layer_0.state_linearity
        gaps.weight.data = torch.stack([gaps.weight.data] * 2, dim=2)[..., 0]
        torch.nn.utils.parametrizations.weight_norm(lstm.backward_layer_0.input_linearity)
        for _ in range(2):
            pairs = zip(*(bilm(ids)["activations"] for bilm in (plain, unusual)), strict=True)
            for wanted, found in pairs:
                # the norm and its product round
                torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    found.sum().backward()
    assert all(part.grad is not None for part in lstm.parameters())


def test_a_transposed_weight_may_be_written_through_its_data(tiny_files):
    bilm, ids = _ElmoBiLm(*tiny_files), batch_to_ids(SENTENCES)
    weight = bilm._elmo_lstm.forward_layer_0.input_linearity.weight
    weight.data = weight.data.t().contiguous().t()
    before = bilm(ids)["activations"][1]
    bilm._elmo_lstm.reset_states()
    weight.data.mul_(2)
    assert not torch.equal(bilm(ids)["activations"][1], before)


def test_more_dimensions_are_folded_and_restored(tiny_files):
    elmo = Elmo(*tiny_files, 1, dropout=0)
    ids = batch_to_ids(SENTENCES + SENTENCES)
    expected = elmo(ids)
    elmo._elmo_lstm._elmo_lstm.reset_states()
    found = elmo(ids.view(2, 3, 5, 50))
    assert found["mask"].shape == (2, 3, 5)
    (read,), (wanted,) = found["elmo_representations"], expected["elmo_representations"]
    torch.testing.assert_close(read.flatten(0, 1), wanted)


def test_cached_words_and_the_way_back_to_characters(tiny_files):
    words = ["@@PADDING@@", "@@UNKNOWN@@", "The", "bank", "of"]
    cached = Elmo(*tiny_files, 1, dropout=0, vocab_to_cache=words)
    ids, numbers = batch_to_ids([["The", "bank"], ["of"]]), torch.tensor([[2, 3], [4, 0]])
    expected = Elmo(*tiny_files, 1, dropout=0)(ids)["elmo_representations"][0]
    torch.testing.assert_close(
        cached(ids, numbers)["elmo_representations"][0], expected, rtol=1e-5, atol=1e-6
    )
    cached._elmo_lstm._elmo_lstm.reset_states()
    unknown = torch.tensor([[2, 99], [4, 0]])
    found = cached(ids, unknown)["elmo_representations"][0]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_many_words_are_cached_in_parts(tiny_files, monkeypatch, capsys):
    words = ["@@PADDING@@", *"abcde"]
    whole = _ElmoBiLm(*tiny_files, vocab_to_cache=words)
    assert not capsys.readouterr().err
    monkeypatch.setattr("elmo_hf.standin.bilm.WORDS_AT_ONCE", 3)
    parts = _ElmoBiLm(*tiny_files, vocab_to_cache=words)
    assert "Caching words" in capsys.readouterr().err
    torch.testing.assert_close(parts._word_embedding.weight, whole._word_embedding.weight)


def test_models_without_projections_work(tmp_path):
    sizes = {"char_filters": [[1, 4], [2, 8]], "projection_size": 12, "cell_size": 12}
    config = tiny_config(max_characters_per_token=50, num_highway_layers=0, **sizes)
    files = tuple(map(str, write_model(tmp_path, config)))
    names = _ElmoBiLm(*files).state_dict()
    assert not [name for name in names if "projection" in name or "_highways" in name]
    found = _ElmoBiLm(*files)(batch_to_ids(SENTENCES[:1]))["activations"]
    expected, _ = run(random_arrays(config), options_from_config(config), SENTENCES[0])
    for layer, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(layer[0, 1:-1].numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_boundaries_may_be_kept(tiny_files):
    kept = Elmo(*tiny_files, 1, dropout=0, keep_sentence_boundaries=True)
    read = kept(batch_to_ids(SENTENCES))
    assert read["mask"].sum(dim=1).tolist() == [7, 4, 3]
    expected = Elmo(*tiny_files, 1, dropout=0)(batch_to_ids(SENTENCES))
    shorter, mask = remove_sentence_boundaries(read["elmo_representations"][0], read["mask"])
    torch.testing.assert_close(shorter, expected["elmo_representations"][0])
    assert torch.equal(mask, expected["mask"]) and mask.dtype == torch.long


def test_masks_of_version_2_are_truth_values(tiny_files, monkeypatch):
    monkeypatch.setenv("ELMO_HF_STANDIN_VERSION", "2.10")
    read = Elmo(*tiny_files, 1)(batch_to_ids(SENTENCES))
    assert read["mask"].dtype == torch.bool and read["mask"].sum().item() == 8


def test_boundaries_are_added_to_numbers_and_to_vectors():
    ids, mask = add_sentence_boundary_token_ids(
        torch.tensor([[5, 6], [7, 0]]), torch.tensor([[1, 1], [1, 0]]), 1, 2
    )
    assert ids.tolist() == [[1, 5, 6, 2], [1, 7, 2, 0]] and mask.sum().item() == 7
    vectors, _ = add_sentence_boundary_token_ids(
        torch.ones(1, 2, 3), torch.ones(1, 2), torch.full((3,), 4.0), torch.full((3,), 5.0)
    )
    assert vectors[0, :, 0].tolist() == [4, 1, 1, 5]
    with pytest.raises(ValueError, match="4 dimensions"):
        add_sentence_boundary_token_ids(torch.ones(1, 1, 1, 1), torch.ones(1, 1), 0, 0)


def test_a_mix_weighs_and_normalizes():
    layers = [torch.randn(2, 3, 4) for _ in range(2)]
    mix = ScalarMix(2, initial_scalar_parameters=[0.0, float(np.log(3))])
    torch.testing.assert_close(mix(layers), 0.25 * layers[0] + 0.75 * layers[1])
    mask = torch.tensor([[1, 1, 0], [1, 0, 0]])
    normed = ScalarMix(1, do_layer_norm=True, trainable=False)(layers[:1], mask)[mask.bool()]
    assert normed.mean().abs() < 1e-6 and not normed.requires_grad
    assert normed.square().mean() == pytest.approx(1, rel=1e-5)
    for wrong in (lambda: ScalarMix(2, initial_scalar_parameters=[1.0]), lambda: mix(layers[:1])):
        with pytest.raises(ConfigurationError):
            wrong()


def test_the_embedder_of_tokens_projects(tiny_files):
    embedder = ElmoTokenEmbedder(*tiny_files, dropout=0, projection_dim=5)
    assert embedder(batch_to_ids(SENTENCES)).shape == (3, 5, 5) and embedder.get_output_dim() == 5


def test_what_allennlp_refuses_is_refused(tiny_files, tmp_path):
    with pytest.raises(ConfigurationError, match="`module`"):
        Elmo(*tiny_files, 1, module=_ElmoBiLm(*tiny_files))
    plain = write_model(tmp_path, tiny_config(use_skip_connections=False))
    with pytest.raises(ConfigurationError, match="use_skip_connections"):
        _ElmoBiLm(*map(str, plain))
    with pytest.raises(FileNotFoundError, match="There is no file 'nowhere.json'"):
        _ElmoCharacterEncoder("nowhere.json", tiny_files[1])
    for ids in (batch_to_ids(SENTENCES)[0], batch_to_ids([])):
        with pytest.raises(ValueError, match=rf"these are \({len(ids)}, .*; make them with"):
            _ElmoCharacterEncoder(*tiny_files)(ids)


def test_words_and_letters_become_ids():
    assert batch_to_ids(["ab", "c"]).shape == (2, 2, 50)
    assert batch_to_ids(np.array([["ab", "c"]])).shape == (1, 2, 50)
    ids = batch_to_ids([["a"], []])
    assert ids.dtype == torch.long and ids[0, 0, :4].tolist() == [259, 98, 260, 261]
    assert not ids[1].any()
    for wrong in (None, 3, b"a"):
        with pytest.raises(TypeError, match=f"A word is a string, not {wrong!r}."):
            batch_to_ids([["a", wrong]])


def test_a_model_that_was_made_in_inference_mode(fixture_files):
    with torch.inference_mode():
        bilm = _ElmoBiLm(*fixture_files, requires_grad=True)
        assert bilm(batch_to_ids([["a", "b"]]))["activations"][0].shape == (1, 4, 32)
    bilm(batch_to_ids([["a", "b"]]))["activations"][2].sum().backward()
    assert all(part.grad is not None for part in bilm._elmo_lstm.parameters())


@pytest.mark.parametrize("requires_grad", [False, True])
def test_threads_may_share_a_module(tiny_files, monkeypatch, requires_grad):
    """Also while its network gets weights: the first time, after a change, or in every call."""
    monkeypatch.setenv("ELMO_HF_STANDIN_STATE", "fresh")
    bilm, ids = _ElmoBiLm(*tiny_files, requires_grad), batch_to_ids(SENTENCES)
    weight = bilm._elmo_lstm.forward_layer_0.state_linearity.weight
    expected, interval = bilm(ids)["activations"][-1], sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as pool:
            for _ in range(40):
                with torch.no_grad():
                    weight.mul_(1)
                for found in pool.map(lambda _: bilm(ids)["activations"][-1], range(6)):
                    torch.testing.assert_close(found, expected)
    finally:
        sys.setswitchinterval(interval)
