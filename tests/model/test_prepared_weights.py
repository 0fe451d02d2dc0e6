"""The prepared model against the plain one: the same values, and no stale weight."""

import copy
import pickle

import pytest
import torch
from helpers.tiny import random_arrays, tiny_config, tokenize
from test_modeling_elmo import SENTENCES, VARIANTS, all_layers, close
from torch import nn
from torch.nn.utils import prune

from elmo_hf import ElmoForTokenClassification, ElmoModel, prepared_weights, recurrence_prepared
from elmo_hf.conversion import reference_elmo
from elmo_hf.conversion.building import load_model
from elmo_hf.conversion.options_map import options_from_config
from elmo_hf.layers_elmo import ElmoLayer, PackedLinear

# relative; the two paths sum in another order, through up to 500 steps of float32
ROUNDING = 1e-5
BATCHES = {
    "one-word": [["Hi"]],
    "one-sentence": [["Dogs", "bark", "and", "dogs", "bark", "."]],
    "empty-sentence": [[]],
    "equal-lengths": [["a", "b"], ["c", "d"], ["a", "d"]],
    "mixed": SENTENCES,
    "one-long": [["Hi"], ["w" + str(number % 7) for number in range(500)], [], ["a", "b"]],
    "many-words": [["w" * (number % 13) + str(number) for number in range(300)]],
}


def packed_linears(model) -> list[PackedLinear]:
    linears = [module for module in model.modules() if isinstance(module, PackedLinear)]
    return [linear for linear in linears if linear.packed is not None]


def is_prepared(model) -> bool:
    """Whether all fast copies are there; fails where only some are."""
    layers = [module for module in model.modules() if isinstance(module, ElmoLayer)]
    encoder = model.base_model.token_encoder
    (found,) = {
        bool(packed_linears(model)),
        bool(encoder.tables),
        *(any(layer.copies.values()) for layer in layers),
    }
    return found


@pytest.fixture(params=["paired", "single"])
def way(request, monkeypatch):
    """Both ways of the LSTM: weights that fit into the caches, and weights that do not."""
    if request.param == "single":
        monkeypatch.setattr(recurrence_prepared.PairedWeights, "LARGEST", 0)
    return request.param


@pytest.fixture
def strong_model():
    """Weights that bend the gates."""
    return load_model(tiny_config(), random_arrays(tiny_config()))


@pytest.mark.parametrize("sentences", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("overrides", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("carried", [False, True], ids=["fresh", "carried"])
def test_prepared_model_gives_the_plain_values(way, sentences, overrides, carried):
    config = tiny_config(**overrides)
    plain = load_model(config, random_arrays(config))
    prepared = copy.deepcopy(plain).prepare_for_inference()
    assert packed_linears(prepared) and not packed_linears(plain)
    assert all(len(layer.copies) == {"paired": 1, "single": 2}[way] for layer in prepared.layers)
    assert prepared.token_encoder.tables and not plain.token_encoder.tables
    batch = tokenize(sentences)
    state = plain(**tokenize([["x", "y"]])).state.detach() if carried else None
    with torch.no_grad():
        expected = plain(**batch, state=state, output_hidden_states=True)
    with torch.inference_mode():
        found = prepared(**batch, state=state, output_hidden_states=True)
    close(found.state.outputs, expected.state.outputs, ROUNDING)
    close(found.state.cells, expected.state.cells, ROUNDING)
    if any(sentences):
        close(torch.stack(found.hidden_states), torch.stack(expected.hidden_states), ROUNDING)


def test_prepared_model_gives_the_values_of_the_reference(strong_model, way):
    strong_model.prepare_for_inference()
    words = ["Dogs", "bärk", "at", "night", "at", "dogs"]
    options = options_from_config(strong_model.config)
    expected, _ = reference_elmo.run(random_arrays(tiny_config()), options, words)
    found = all_layers(strong_model, **tokenize([words]))[:, 0]
    close(found.double(), torch.tensor(expected), 1e-5)


def test_a_long_sentence_is_read_like_its_reference(strong_model):
    """500 words among short ones, plain and prepared."""
    sentences = BATCHES["one-long"]
    options = options_from_config(strong_model.config)
    expected, _ = reference_elmo.run(random_arrays(tiny_config()), options, sentences[1])
    plain = all_layers(strong_model, **tokenize(sentences))[:, 1]
    prepared = all_layers(strong_model.prepare_for_inference(), **tokenize(sentences))[:, 1]
    for found in (plain, prepared):
        close(found.double(), torch.tensor(expected), 1e-5)


def test_gradients_do_not_change_when_prepared(strong_model):
    """Outside of inference the prepared model takes its plain path."""
    batch = tokenize(SENTENCES)
    prepared = copy.deepcopy(strong_model).prepare_for_inference()
    for model in (strong_model, prepared):
        model(**batch).last_hidden_state.sum().backward()
    for ours, plain in zip(prepared.parameters(), strong_model.parameters(), strict=True):
        assert torch.equal(ours.grad, plain.grad)


@torch.no_grad()
def change_in_place(linear):
    linear.weight.mul_(1.5)


def change_behind_autograd(linear):
    linear.weight.data.mul_(1.5)


def replace_data(linear):
    linear.weight.data = linear.weight.data * 1.5


def replace_parameter(linear):
    linear.weight = nn.Parameter(linear.weight.detach() * 1.5)


def load_other_weights(linear):
    linear.load_state_dict({name: 1.5 * part for name, part in linear.state_dict().items()})


CHANGES = [
    change_in_place, change_behind_autograd, replace_data, replace_parameter, load_other_weights,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("sentences", [SENTENCES, SENTENCES[:1]], ids=["batch", "one-sentence"])
@pytest.mark.parametrize(
    "name",
    ["token_encoder.highways.0.carry", "layers.1.forward_cell.recurrent_linear",
     "layers.0.backward_cell.projection", "layers.0.forward_cell.input_linear",
     "token_encoder.char_embeddings", "token_encoder.convolutions.1"],
)  # fmt: skip
def test_changed_weights_are_noticed(strong_model, way, change, sentences, name):
    batch = tokenize(sentences)
    strong_model.prepare_for_inference()
    before = all_layers(strong_model, **batch)
    change(strong_model.get_submodule(name))
    plain = all_layers(copy.deepcopy(strong_model), **batch)
    after = all_layers(strong_model, **batch)
    assert not torch.allclose(before, after)
    close(after, plain, ROUNDING)


# The first value is sampled, the other two are not.
PLACES = {
    "first": lambda size: 0,
    "middle": lambda size: size // 2 + 1,
    "last": lambda size: size - 1,
}
LINEARS = [
    "token_encoder.highways.0.carry", "token_encoder.convolutions.1",
    "layers.0.forward_cell.input_linear", "layers.1.forward_cell.recurrent_linear",
    "layers.0.backward_cell.projection",
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_one_value_that_autograd_sees_makes_a_copy_stale(place):
    weight = nn.Parameter(torch.randn(100, 10))
    copied = prepared_weights.WeightCopy(weight)
    assert copied.matches(weight)
    with torch.no_grad():
        weight.view(-1)[PLACES[place](weight.numel())] += 1
    assert not copied.matches(weight)


def optimizer_step(kind, **options):
    def step(linear):
        linear.weight.grad = torch.zeros_like(linear.weight)
        # a value that is not sampled
        linear.weight.grad.view(-1)[-1] = 1.0
        kind([linear.weight], lr=0.1, **options).step()

    return step


def under(context, write):
    def change(linear):
        with context():
            write(linear.weight)

    return change


def fill_last(weight):
    nn.init.zeros_(weight.view(-1)[-3:])


def index_last(weight):
    weight.index_fill_(0, torch.tensor([len(weight) - 1]), 0.5)


def mask_last(weight):
    weight.masked_fill_(weight == weight[-1, -1], 0.5)


def out_last(weight):
    torch.add(weight[-1:], 1, out=weight[-1:])


def assign_last(weight):
    weight[-1, -1] = 0.5


def detached_last(weight):
    weight.detach()[-1, -1] = 0.5


def transposed_last(weight):
    weight.T[-1].mul_(2)


def foreach_last(weight):
    torch._foreach_mul_([weight[-1]], 2.0)


def swap(linear):
    torch.utils.swap_tensors(linear.weight, nn.Parameter(linear.weight.detach() + 0))


def load_assigned(linear):
    state = {name: part.clone() for name, part in linear.state_dict().items()}
    linear.load_state_dict(state, assign=True)


def load_last(linear):
    state = {name: part.clone() for name, part in linear.state_dict().items()}
    state["weight"][-1, -1] = 0.5
    linear.load_state_dict(state)


def vector_to_parameters(linear):
    vector = nn.utils.parameters_to_vector(linear.parameters())
    nn.utils.vector_to_parameters(vector, linear.parameters())


def prune_last(linear):
    prune.l1_unstructured(linear, "weight", amount=1)


def there_and_back(linear):
    linear.double().float()


def shared_memory(linear):
    linear.share_memory()


WRITES = [
    fill_last, index_last, mask_last, out_last, assign_last, detached_last, transposed_last,
    foreach_last,
]  # fmt: skip
SEEN = {
    "sgd": optimizer_step(torch.optim.SGD),
    "sgd-one-by-one": optimizer_step(torch.optim.SGD, foreach=False),
    "adamw": optimizer_step(torch.optim.AdamW),
    "adamw-foreach": optimizer_step(torch.optim.AdamW, foreach=True),
    "adamw-fused": optimizer_step(torch.optim.AdamW, fused=True),
    "adagrad": optimizer_step(torch.optim.Adagrad),
    **{f"no-grad-{write.__name__}": under(torch.no_grad, write) for write in WRITES},
    **{f"inference-{write.__name__}": under(torch.inference_mode, write) for write in WRITES},
    "swap": swap,
    "load-assigned": load_assigned,
    "load": load_last,
    "vector-to-parameters": vector_to_parameters,
    "prune": prune_last,
    "there-and-back": there_and_back,
    "shared-memory": shared_memory,
}


@pytest.mark.parametrize("change", SEEN.values(), ids=SEEN)
def test_every_change_that_autograd_sees_makes_a_copy_stale(change):
    """Also one of a value that is not sampled."""
    linear = nn.Linear(10, 100)
    copied = prepared_weights.WeightCopy(linear.weight)
    linear(torch.ones(1, 10)).sum().backward()
    copy.deepcopy(linear).state_dict()
    assert copied.matches(linear.weight)
    change(linear)
    assert not copied.matches(linear.weight)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", LINEARS)
def test_one_changed_value_is_noticed(strong_model, way, name, place):
    batch = tokenize(SENTENCES)
    strong_model.prepare_for_inference()
    before = all_layers(strong_model, **batch)
    weight = strong_model.get_submodule(name).weight
    with torch.no_grad():
        weight.view(-1)[PLACES[place](weight.numel())] += 5
    plain = all_layers(copy.deepcopy(strong_model), **batch)
    after = all_layers(strong_model, **batch)
    assert not torch.allclose(before, after)
    close(after, plain, ROUNDING)


@pytest.mark.parametrize("name", LINEARS)
def test_a_partial_write_to_data_needs_new_copies(strong_model, way, name):
    """
    As documented: a write through `.data` may go unnoticed, so `prepare_for_inference` must be
    called again after it, and then the values are right.
    """
    batch = tokenize(SENTENCES)
    before = all_layers(strong_model.prepare_for_inference(), **batch)
    weight = strong_model.get_submodule(name).weight
    weight.data.view(-1)[PLACES["middle"](weight.numel())] += 5
    plain = all_layers(copy.deepcopy(strong_model), **batch)
    strong_model.prepare_for_inference()
    assert is_prepared(strong_model)
    after = all_layers(strong_model, **batch)
    assert not torch.allclose(before, after)
    close(after, plain, ROUNDING)


def test_training_again_drops_the_packed_weights(strong_model):
    strong_model.prepare_for_inference()
    assert is_prepared(strong_model)
    strong_model.eval()
    assert is_prepared(strong_model)
    strong_model.train()
    assert not is_prepared(strong_model)


def test_moving_to_another_type_is_noticed(strong_model):
    batch = tokenize(SENTENCES)
    strong_model.prepare_for_inference().double()
    assert all_layers(strong_model, **batch).dtype == torch.float64


def test_copies_and_pickles_start_unprepared(strong_model, tmp_path):
    batch = tokenize(SENTENCES)
    expected = all_layers(strong_model.prepare_for_inference(), **batch)
    for again in (copy.deepcopy(strong_model), pickle.loads(pickle.dumps(strong_model))):
        assert not is_prepared(again)
        close(all_layers(again, **batch), expected, ROUNDING)
    strong_model.save_pretrained(tmp_path)
    again = ElmoModel.from_pretrained(tmp_path)
    assert sorted(again.state_dict()) == sorted(strong_model.state_dict())


def test_heads_are_prepared_too():
    model = ElmoForTokenClassification(tiny_config()).eval()
    batch = tokenize(SENTENCES)
    with torch.inference_mode():
        expected = model(**batch).logits
        close(model.prepare_for_inference()(**batch).logits, expected, ROUNDING)
    assert is_prepared(model)


def test_without_the_private_operators_nothing_is_packed(strong_model, way, monkeypatch):
    def missing(weight):
        raise AttributeError("no such operator")

    batch = tokenize(SENTENCES)
    expected = all_layers(strong_model, **batch)
    monkeypatch.setattr(prepared_weights, "PackedMatrix", missing)
    prepared_weights.can_pack.cache_clear()
    strong_model.prepare_for_inference()
    prepared_weights.can_pack.cache_clear()
    assert not packed_linears(strong_model)
    assert all(any(layer.copies.values()) == (way == "paired") for layer in strong_model.layers)
    close(all_layers(strong_model, **batch), expected, ROUNDING)


def test_half_precision_is_left_plain(strong_model):
    assert not is_prepared(strong_model.to(torch.bfloat16).prepare_for_inference())


def test_autocast_passes_the_copies_over(strong_model):
    batch = tokenize(SENTENCES)
    prepared = copy.deepcopy(strong_model).prepare_for_inference()
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        found, expected = (model.eval()(**batch)[0] for model in (prepared, strong_model))
    assert torch.equal(found, expected)


@pytest.mark.parametrize(
    "name",
    ["layers.0.forward_cell.recurrent_linear", "layers.1.backward_cell.projection",
     "layers.0.forward_cell.input_linear", "token_encoder.convolutions.1",
     "token_encoder.char_embeddings", "token_encoder.highways.0.carry"],
)  # fmt: skip
@pytest.mark.parametrize("prepared", [False, True], ids=["plain", "prepared"])
def test_hooks_are_called(strong_model, way, name, prepared):
    """The fast paths read weights instead of calling modules, which must not bypass a hook."""
    if prepared:
        strong_model.prepare_for_inference()
    called = []
    module = strong_model.get_submodule(name)
    handle = module.register_forward_hook(lambda *_: called.append(name))
    all_layers(strong_model, **tokenize(SENTENCES))
    assert called
    handle.remove()
