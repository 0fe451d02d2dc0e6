import logging

import pytest
import torch
from helpers.tiny import WIDTH, random_arrays, tiny_config, tokenize
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    pipeline,
)

from elmo_hf import (
    ElmoForSequenceClassification,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoState,
    ElmoTokenizer,
)
from elmo_hf.conversion import reference_elmo
from elmo_hf.conversion.building import load_model
from elmo_hf.conversion.options_map import options_from_config

SENTENCES = [["Dogs", "bark", "."], ["Hi"], [], ["a", "a", "b", "a", "Dogs", "incomprehensible"]]
VARIANTS = {
    "plain": {},
    "no-clips": {"cell_clip": None, "projection_clip": None},
    "tight-clips": {"cell_clip": 0.05, "projection_clip": 0.05},
    "no-cell-projection": {"cell_size": 8},
    "no-char-projection": {"char_filters": [[1, 3], [2, 5]]},
    "no-skip": {"use_skip_connections": False},
    "tanh": {"char_activation": "tanh"},
    "no-highway": {"num_highway_layers": 0},
    "one-layer": {"num_hidden_layers": 1},
    "three-layers": {"num_hidden_layers": 3},
}
variants = pytest.mark.parametrize("overrides", VARIANTS.values(), ids=VARIANTS)


def all_layers(model, **batch) -> torch.Tensor:
    with torch.no_grad():
        return torch.stack(model(**batch, output_hidden_states=True).hidden_states)


def close(ours, truth, error=1e-6):
    torch.testing.assert_close(ours, truth, rtol=0, atol=error * truth.abs().max().item())


@variants
@pytest.mark.parametrize("words", [1, 2, 7], ids="words{}".format)
def test_matches_the_numpy_reference(overrides, words):
    config = tiny_config(**overrides)
    arrays = random_arrays(config)

    model = load_model(config, arrays)
    sentence = ["Dogs", "bärk", "incomprehensibilities", "<S>", "", "a", "."][:words]
    expected, _ = reference_elmo.run(arrays, options_from_config(config), sentence)
    close(all_layers(model, **tokenize([sentence]))[:, 0].double(), torch.tensor(expected), 1e-5)


def test_state_carries_on_like_the_reference():
    config = tiny_config()
    arrays, options = random_arrays(config), options_from_config(config)
    model = load_model(config, arrays)
    rows = [[["a", "b", "c"], ["d"]], [["e"], ["f", "g"]]]
    state, states = None, [None, None]
    for number in range(2):
        batch = tokenize([row[number] for row in rows])
        with torch.no_grad():
            output = model(**batch, state=state, output_hidden_states=True)
        state = output.state
        for index, row in enumerate(rows):
            layers, states[index] = reference_elmo.run(arrays, options, row[number], states[index])
            ours = torch.stack(output.hidden_states)[:, index, : len(row[number])]
            close(ours.double(), torch.tensor(layers), 1e-5)


@variants
def test_gradients_are_right(overrides):
    model = ElmoModel(tiny_config(**overrides)).double()
    # initial weights are too small to reach the clips or to bend the gates
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.6)
    batch = tokenize([["ab", "a", "ab"], ["b"], []])
    names = [name for name, _ in model.named_parameters()]
    parameters = tuple(parameter for _, parameter in model.named_parameters())

    def run(*values):
        output = torch.func.functional_call(
            model, dict(zip(names, values, strict=True)), kwargs=batch
        )
        return output.last_hidden_state

    assert torch.autograd.gradcheck(run, parameters, fast_mode=True)
    run(*parameters).sum().backward()
    assert all(parameter.grad is not None for parameter in parameters)


sentence = st.lists(st.text(max_size=6), max_size=6)


@settings(deadline=None, max_examples=30)
@given(sentences=st.lists(sentence, min_size=1, max_size=5), data=st.data())
def test_batch_order_and_padding_change_nothing(_tiny_model, sentences, data):
    order = data.draw(st.permutations(range(len(sentences))))
    side = data.draw(st.sampled_from(["left", "right"]))
    longest = max(map(len, sentences)) + data.draw(st.integers(0, 3))
    padding = {"padding": "max_length", "max_length": longest, "padding_side": side}
    mixed = all_layers(_tiny_model, **tokenize([sentences[i] for i in order], **padding))
    for place, number in enumerate(order):
        size = len(sentences[number])
        alone = all_layers(_tiny_model, **tokenize([sentences[number]]))[:, 0]
        live = mixed[:, place, longest - size :] if side == "left" else mixed[:, place, :size]
        torch.testing.assert_close(live, alone, rtol=0, atol=2e-6)
        assert mixed[:, place].abs().sum() == pytest.approx(live.abs().sum().item(), rel=1e-4)


def test_words_with_gaps_between_them_are_the_same_sentence(tiny_model):
    batch = tokenize([["a", "b", "c"]])
    gaps = {
        "input_ids": torch.zeros(1, 6, WIDTH, dtype=torch.long),
        "attention_mask": torch.tensor([[0, 1, 0, 1, 1, 0]]),
    }
    places = gaps["attention_mask"][0].bool()
    gaps["input_ids"][0, places] = batch["input_ids"][0]
    assert torch.equal(
        all_layers(tiny_model, **gaps)[:, 0, places], all_layers(tiny_model, **batch)[:, 0]
    )


def test_shapes_and_zeros(tiny_model):
    batch = tokenize(SENTENCES)
    with torch.no_grad():
        output = tiny_model(**batch, output_hidden_states=True)
    assert output.last_hidden_state.shape == (4, 6, 16)
    assert [layer.shape for layer in output.hidden_states] == [(4, 6, 16)] * 3
    for layer in (output.last_hidden_state, *output.hidden_states):
        assert not layer[~batch["attention_mask"].bool()].any()
        assert layer[batch["attention_mask"].bool()].any(dim=-1).all()
    token_layer = output.hidden_states[0]
    assert torch.equal(token_layer[..., :8], token_layer[..., 8:])
    assert output.state.outputs.shape == (4, 2, 2, 8)
    assert output.state.cells.shape == (4, 2, 2, 12)


@pytest.mark.parametrize("side", ["left", "right"])
def test_boundaries_are_kept_on_request(tiny_model, side):
    batch = tokenize(SENTENCES, padding_side=side)
    kept = all_layers(tiny_model, **batch, keep_sentence_boundaries=True)
    inner = all_layers(tiny_model, **batch)
    lengths = [len(sentence) for sentence in SENTENCES]
    for number, length in enumerate(lengths):
        live = kept[:, number].abs().sum(dim=(0, 2)) > 0
        start = 0 if side == "right" or not length else 6 - length
        assert live.tolist() == [start <= place < start + length + 2 for place in range(8)]
        words = kept[:, number, start + 1 : start + 1 + length]
        assert torch.equal(words, inner[:, number, start : start + length])
    begin = kept[:, 1, 0 if side == "right" else 5]
    explicit = all_layers(tiny_model, **tokenize([["Hi"]]), keep_sentence_boundaries=True)
    close(begin, explicit[:, 0, 0])


def test_a_batch_of_nothing_but_empty_sentences(tiny_model):
    output = tiny_model(torch.zeros(2, 0, WIDTH, dtype=torch.long))
    assert output.last_hidden_state.shape == (2, 0, 16)
    assert torch.equal(output.state.cells[0], output.state.cells[1])


def test_forward_keeps_nothing_between_calls(tiny_model):
    batch = tokenize(SENTENCES)

    def attributes() -> list[dict]:
        """Of all submodules; tensors by identity and content."""
        return [
            {name: (id(value), str(value)) for name, value in vars(module).items()}
            for module in tiny_model.modules()
        ]

    before = attributes()
    first = all_layers(tiny_model, **batch)
    assert torch.equal(first, all_layers(tiny_model, **batch))
    assert attributes() == before


def test_state_of_one_sentence_serves_a_batch(tiny_model):
    state = tiny_model(**tokenize([["x", "y"]])).state
    batch = tokenize(SENTENCES)

    def repeated(times):
        return ElmoState(*(part.repeat(times, 1, 1, 1) for part in state.values()))

    expected = all_layers(tiny_model, **batch, state=repeated(4))
    close(all_layers(tiny_model, **batch, state=state), expected)
    with pytest.raises(ValueError, match="of 2 sentences but the batch has 4"):
        tiny_model(**batch, state=repeated(2))


def test_carried_state_can_forget_its_history(tiny_model):
    state = tiny_model(**tokenize([["x", "y"]])).state
    assert state.outputs.requires_grad and state.cells.requires_grad
    assert not state.detach().outputs.requires_grad and not state.detach().cells.requires_grad


def test_warm_state_is_a_fixed_point_and_changes_the_vectors(tiny_model):
    state = tiny_model.warm_state()
    nothing = torch.zeros(1, 0, WIDTH, dtype=torch.long)
    again = tiny_model(nothing, state=state).state
    torch.testing.assert_close(dict(again), dict(state), rtol=0, atol=1e-6)
    batch = tokenize(SENTENCES)
    warm = all_layers(tiny_model, **batch, state=state)
    assert not torch.allclose(warm, all_layers(tiny_model, **batch), atol=1e-5)


def test_warm_state_says_when_it_does_not_settle(tiny_model, caplog):
    logger = logging.getLogger("transformers")
    logger.propagate = True
    tiny_model.warm_state(tolerance=-1.0, max_rounds=2)
    logger.propagate = False
    assert "after 2 rounds" in caplog.text


@pytest.mark.parametrize("choice", ["mix", "mean", "top", 0, 1, 2], ids=str)
def test_output_layer(choice):
    torch.manual_seed(0)
    model = ElmoModel(tiny_config(output_layer=choice)).eval()
    batch = tokenize(SENTENCES)
    layers = all_layers(model, **batch)
    expected = {"mix": layers.mean(0), "mean": layers.mean(0), "top": layers[-1]}
    expected = expected.get(choice, layers[choice] if isinstance(choice, int) else None)
    close(model(**batch).last_hidden_state, expected)


def test_each_mix_has_its_own_weights():
    model = ElmoModel(tiny_config(num_output_representations=2)).eval()
    with torch.no_grad():
        model.mixes[1].scalars.copy_(torch.tensor([0.0, 2.0, -1.0]))
        model.mixes[1].gamma.fill_(3.0)
    batch = tokenize(SENTENCES)
    output = model(**batch, output_hidden_states=True)
    layers = torch.stack(output.hidden_states)
    weights = torch.tensor([0.0, 2.0, -1.0]).softmax(0)
    close(output.representations[:, :, 0], layers.mean(0))
    close(output.representations[:, :, 1], 3 * torch.einsum("l,lbwd->bwd", weights, layers))
    assert torch.equal(output.last_hidden_state, output.representations[:, :, 0])


def test_layer_norm_in_the_mix_is_over_all_live_tokens():
    model = ElmoModel(tiny_config(mix_layer_norm=True)).eval()
    batch = tokenize(SENTENCES)
    kept = all_layers(model, **batch, keep_sentence_boundaries=True)
    live = kept.abs().sum(dim=(0, 3)) > 0
    normed = [(layer - layer[live].mean()) / layer[live].std(unbiased=False) for layer in kept]
    output = model(**batch, keep_sentence_boundaries=True).last_hidden_state
    close(output[live], torch.stack(normed).mean(0)[live], 1e-5)
    assert not output[~live].any()


def test_frozen_bilm_still_trains_the_mix_and_the_head():
    model = ElmoForTokenClassification(tiny_config())
    model.freeze_bilm()
    batch = tokenize(SENTENCES)
    model(**batch, labels=torch.zeros(4, 6, dtype=torch.long)).loss.backward()
    trained = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert trained == {
        "elmo.mixes.0.scalars",
        "elmo.mixes.0.gamma",
        "classifier.weight",
        "classifier.bias",
    }


HEADS = {
    "linear": {},
    "two-mixes": {"num_output_representations": 2},
    "all-layers": {"concatenate_layers": True},
    "task-lstm": {"task_lstm_size": 5},
    "elmo-after-lstm": {
        "task_lstm_size": 5,
        "num_output_representations": 2,
        "mix_after_task_lstm": True,
    },
    "top": {"output_layer": "top"},
    "max-pooling": {"classifier_pooling": "max"},
}


# a sequence classifier has no task LSTM
CASES = {
    f"{name}-{head.__name__}": (head, overrides)
    for name, overrides in HEADS.items()
    for head in (ElmoForTokenClassification, ElmoForSequenceClassification)
    if not (head is ElmoForSequenceClassification and "task_lstm_size" in overrides)
}


@pytest.mark.parametrize(("head", "overrides"), CASES.values(), ids=CASES)
def test_heads_use_every_parameter_and_ignore_padding(head, overrides):
    torch.manual_seed(0)
    model = head(tiny_config(num_labels=3, **overrides))
    batch = tokenize(SENTENCES)
    per_word = head is ElmoForTokenClassification
    labels = torch.randint(3, (4, 6) if per_word else (4,))
    model(**batch, labels=labels).loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    model.eval()
    logits = model(**batch).logits
    padded = model(
        **tokenize(SENTENCES, padding="max_length", max_length=9, padding_side="left")
    ).logits
    for number, sentence in enumerate(SENTENCES):
        if per_word:
            size = len(sentence)
            close(padded[number, 9 - size :], logits[number, :size]) if size else None
        else:
            close(padded[number], logits[number])


def test_token_loss_ignores_minus_100():
    model = ElmoForTokenClassification(tiny_config(num_labels=3)).eval()
    batch = tokenize(SENTENCES)
    labels = torch.full((4, 6), -100)
    labels[0, 1] = 2
    output = model(**batch, labels=labels)
    close(output.loss, nn.functional.cross_entropy(output.logits[0, 1], torch.tensor(2)))


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_pooling_counts_live_words_only(pooling):
    model = ElmoForSequenceClassification(tiny_config(classifier_pooling=pooling)).eval()
    batch = tokenize(SENTENCES)
    hidden = model.elmo(**batch).last_hidden_state
    logits = model(**batch).logits
    for number, sentence in enumerate(SENTENCES):
        words = hidden[number, : len(sentence)]
        pooled = torch.zeros(16)
        if sentence:
            pooled = words.mean(0) if pooling == "mean" else words.amax(0)
        close(logits[number], model.classifier(pooled))


@pytest.mark.parametrize(
    ("head", "auto"),
    [
        (ElmoModel, AutoModel),
        (ElmoForTokenClassification, AutoModelForTokenClassification),
        (ElmoForSequenceClassification, AutoModelForSequenceClassification),
    ],
)
def test_round_trip_to_disk_is_exact(head, auto, tmp_path):
    model = head(tiny_config(num_output_representations=2)).eval()
    model.save_pretrained(tmp_path)
    again = auto.from_pretrained(tmp_path).eval()
    assert type(again) is head
    saved = model.state_dict()
    assert sorted(again.state_dict()) == sorted(saved)
    assert all(torch.equal(tensor, saved[name]) for name, tensor in again.state_dict().items())
    # not bit for bit: loaded weights lie elsewhere in memory, which changes the order of sums
    batch = tokenize(SENTENCES)
    close(again(**batch)[0], model(**batch)[0])


def test_a_base_model_lacks_only_the_classifier_of_a_head(tiny_model, tmp_path):
    tiny_model.save_pretrained(tmp_path)
    _, report = ElmoForTokenClassification.from_pretrained(tmp_path, output_loading_info=True)
    assert sorted(report["missing_keys"]) == ["classifier.bias", "classifier.weight"]
    assert not report["unexpected_keys"]


def test_initial_values_are_those_of_bilm_tf():
    config = tiny_config(cell_size=64, projection_size=32, char_filters=[[1, 40], [2, 60]])
    model = ElmoModel(config)
    cell = model.layers[1].backward_cell
    expected = torch.zeros(4, 64)
    expected[1] = 1
    assert torch.equal(cell.input_linear.bias, expected.flatten())
    bound = (6 / (32 + 32 + 256)) ** 0.5
    for linear in (cell.input_linear, cell.recurrent_linear):
        assert 0.97 * bound < linear.weight.abs().max() <= bound
    highway = model.token_encoder.highways[0]
    assert (highway.carry.bias == -2).all() and (highway.transform.bias == 0).all()
    assert highway.carry.weight.std().item() == pytest.approx(0.1, rel=0.05)
    embeddings = model.token_encoder.char_embeddings.weight
    assert not embeddings[0].any() and embeddings.abs().max() > 0.95
    assert model.token_encoder.convolutions[0].weight.abs().max() <= 0.05


def test_bfloat16_is_close_to_float32(tiny_model):
    batch = tokenize(SENTENCES)
    full = tiny_model(**batch).last_hidden_state
    half = tiny_model.to(torch.bfloat16)(**batch).last_hidden_state
    assert half.dtype == torch.bfloat16
    close(half.float(), full, 0.05)


def test_gradient_checkpointing_gives_the_same_gradients(tiny_model):
    batch = tokenize(SENTENCES)
    tiny_model.train()
    tiny_model(**batch).last_hidden_state.sum().backward()
    plain = {name: parameter.grad.clone() for name, parameter in tiny_model.named_parameters()}
    tiny_model.zero_grad()
    tiny_model.gradient_checkpointing_enable()
    tiny_model(**batch).last_hidden_state.sum().backward()
    for name, parameter in tiny_model.named_parameters():
        torch.testing.assert_close(parameter.grad, plain[name], rtol=0, atol=0)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "exactly one"),
        (
            {"input_ids": torch.zeros(2, 3).long()},
            r"shape \(2, 3\) but ELMo reads \(batch, words, 16\)",
        ),
        ({"input_ids": torch.zeros(2, 3, 50).long()}, "50"),
        (
            {"input_ids": torch.zeros(2, 3, 16).long(), "attention_mask": torch.ones(2, 4)},
            r"shape \(2, 4\)",
        ),
    ],
    ids=["nothing", "two-dimensional", "wrong-width", "wrong-mask"],
)
def test_wrong_shapes_are_refused_by_name(tiny_model, inputs, message):
    with pytest.raises(ValueError, match=message):
        tiny_model(**inputs)


def test_layers_may_wait_on_disk(tiny_model, tmp_path):
    tiny_model.save_pretrained(tmp_path)
    places = {"token_encoder": "cpu", "layers.0": "disk", "layers.1": "cpu", "mixes": "cpu"}
    offloaded = ElmoModel.from_pretrained(
        tmp_path, device_map=places, offload_folder=tmp_path / "offload"
    ).eval()
    batch = tokenize(SENTENCES)
    close(all_layers(offloaded, **batch), all_layers(tiny_model, **batch))


def test_sharded_weights_load_again(tiny_model, tmp_path):
    tiny_model.save_pretrained(tmp_path, max_shard_size="8KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    again = ElmoModel.from_pretrained(tmp_path)
    saved = tiny_model.state_dict()
    assert all(torch.equal(tensor, saved[name]) for name, tensor in again.state_dict().items())


def test_pipeline_extracts_features_in_batches(tiny_model):
    tokenizer = ElmoTokenizer(max_characters_per_token=WIDTH)
    extract = pipeline("feature-extraction", model=tiny_model, tokenizer=tokenizer)
    texts = ["Dogs bark .", "Hi", "a b c d"]
    for batched, text in zip(extract(texts, batch_size=3), texts, strict=True):
        alone = tiny_model(**tokenize([text.split()])).last_hidden_state[0]
        close(torch.tensor(batched)[0, : len(alone)], alone)


LAYER_HEADS = {
    "linear": {},
    "task-lstm": {"task_lstm_size": 5},
    "mixes": {"task_lstm_size": 5, "num_output_representations": 3, "mix_after_task_lstm": True},
    "all-layers": {"concatenate_layers": True},
    "word-vectors": {"num_word_vectors": 2, "word_vector_size": 3},
}


@pytest.mark.parametrize("overrides", LAYER_HEADS.values(), ids=LAYER_HEADS)
def test_a_head_reads_layers_made_before(overrides):
    model = ElmoForTokenClassification(tiny_config(num_labels=4, **overrides)).eval()
    batch = tokenize(SENTENCES)
    layers = torch.stack(model.elmo(**batch, output_hidden_states=True).hidden_states, dim=2)
    expected = model(**batch).logits
    found = model(**batch, layers=layers.detach()).logits
    close(found, expected)
    if not model.config.num_word_vectors:
        mask = batch["attention_mask"]
        assert torch.equal(model(attention_mask=mask, layers=layers).logits, found)
    else:
        with pytest.raises(ValueError, match="word vectors, which need `input_ids`"):
            model(attention_mask=batch["attention_mask"], layers=layers)


def test_word_vectors_are_found_by_characters(tmp_path):
    config = tiny_config(num_labels=4, num_word_vectors=2, word_vector_size=3)
    model = ElmoForTokenClassification(config).eval()
    rows = tokenize([["bark", "Dogs"]])["input_ids"][0]
    model.word_vectors.fill(rows, torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    asked = tokenize([["Dogs", "dogs", "bark"]])["input_ids"]
    expected = [[[4.0, 5.0, 6.0], [2.5, 3.5, 4.5], [1.0, 2.0, 3.0]]]
    assert model.word_vectors(asked).tolist() == expected
    model.save_pretrained(tmp_path)
    again = ElmoForTokenClassification.from_pretrained(tmp_path)
    assert again.word_vectors(asked).tolist() == expected


def test_misspelt_arguments_are_refused(tiny_model):
    batch = tokenize(SENTENCES)
    heads = [
        ElmoForTokenClassification(tiny_config()),
        ElmoForSequenceClassification(tiny_config()),
    ]
    for model in (tiny_model, *heads):
        with pytest.raises(TypeError, match="no argument 'atention_mask'"):
            model(input_ids=batch["input_ids"], atention_mask=batch["attention_mask"])


def test_a_tagger_without_its_trained_mixes_is_reported(tmp_path):
    model = ElmoForTokenClassification(tiny_config())
    weights = {name: part for name, part in model.state_dict().items() if "mixes" not in name}
    model.save_pretrained(tmp_path, state_dict=weights)
    _, report = ElmoForTokenClassification.from_pretrained(tmp_path, output_loading_info=True)
    assert sorted(report["missing_keys"]) == ["elmo.mixes.0.gamma", "elmo.mixes.0.scalars"]


def test_the_tag_of_a_word_is_the_likeliest_label():
    model = ElmoForTokenClassification(tiny_config(num_labels=3))
    logits = torch.tensor([[[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]]])
    numbers, probabilities = model.decode(logits)
    assert numbers.tolist() == [[1, 0]]
    close(probabilities, logits.softmax(dim=-1).amax(dim=-1))


def test_adapters_on_a_frozen_bilm_learn_with_checkpointing(tiny_model):
    """As peft asks for it: nothing below the layers has gradients of its own."""
    tiny_model.requires_grad_(False)
    trained = tiny_model.layers[0].forward_cell.input_linear.weight.requires_grad_(True)
    tiny_model.gradient_checkpointing_enable({"use_reentrant": True})
    tiny_model.enable_input_require_grads()
    tiny_model.train()
    tiny_model(**tokenize(SENTENCES)).last_hidden_state.sum().backward()
    assert trained.grad is not None and trained.grad.any()
    tiny_model.disable_input_require_grads()
    with torch.inference_mode():
        assert not tiny_model.eval()(**tokenize(SENTENCES)).last_hidden_state.requires_grad
