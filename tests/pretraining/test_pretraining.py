"""`ElmoForPreTraining`: whole sentences, packed streams, scores, and folders with a vocabulary."""

import math

import numpy as np
import pytest
import torch
from helpers.tiny import WIDTH, tiny_config, tokenize
from transformers import AutoModelForPreTraining

from elmo_hf import ElmoForPreTraining, ElmoModel, WordVocabulary
from elmo_hf.characters import ByteRows
from elmo_hf.pretraining import ElmoScorer
from elmo_hf.pretraining.batches import encode_tokens, number_tokens
from elmo_hf.word_vocabulary import BEGIN, END

WORDS = ["<S>", "</S>", "<UNK>", "the", "dog", "barks", "a", "cat", "sleeps", "."]
SENTENCES = [["the", "dog", "barks", "."], ["a", "cat"], ["zebra"], []]


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = ElmoForPreTraining(tiny_config(lm_vocab_size=len(WORDS))).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    model.vocabulary = WordVocabulary(WORDS)
    return model


def naive_log_probabilities(model, words):
    """By the layers of `ElmoModel` and numpy, one position after the other."""
    hidden = model.elmo(
        **tokenize([words]), keep_sentence_boundaries=True, output_hidden_states=True
    ).hidden_states[-1][0]
    weight, bias = (part.detach().double().numpy() for part in model.softmax.parameters())
    size = model.config.projection_size

    def log_probability(vector, word):
        logits = weight @ vector.detach().double().numpy() + bias
        return logits[WORDS.index(word)] - np.log(np.exp(logits).sum())

    known = [word if word in WORDS else "<UNK>" for word in words]
    tokens = ["<S>", *known, "</S>"]
    forward = [
        log_probability(hidden[place - 1, :size], tokens[place]) for place in range(1, len(tokens))
    ]
    backward = [
        log_probability(hidden[place + 1, size:], tokens[place]) for place in range(len(tokens) - 1)
    ]
    return forward, backward


def test_scores_are_those_of_the_layers(model):
    scores = ElmoScorer(model).score(SENTENCES, batch_size=3)
    assert len(scores) == len(SENTENCES)
    for words, score in zip(SENTENCES, scores, strict=True):
        forward, backward = naive_log_probabilities(model, words)
        np.testing.assert_allclose(score.forward, forward, rtol=1e-5)
        np.testing.assert_allclose(score.backward, backward, rtol=1e-5)
        expected = math.exp(-(np.mean(forward) + np.mean(backward)) / 2)
        assert score.perplexity == pytest.approx(expected, rel=1e-5)


def test_loss_of_sentences_is_the_mean_over_all_their_words(model):
    input_ids, labels = ElmoScorer(model).encode(SENTENCES)
    output = model(input_ids, labels=labels)
    scores = ElmoScorer(model).score(SENTENCES)
    for loss, part in ((output.loss_forward, "forward"), (output.loss_backward, "backward")):
        all_words = [value for score in scores for value in getattr(score, part)]
        assert loss.item() == pytest.approx(-np.mean(all_words), rel=1e-5)
    assert output.loss == (output.loss_forward + output.loss_backward) / 2


def test_logits_stand_at_the_words_they_are_of(model):
    input_ids, labels = ElmoScorer(model).encode(SENTENCES)
    output = model(input_ids)
    for number, score in enumerate(ElmoScorer(model).score(SENTENCES)):
        for logits, values in (
            (output.logits_forward, score.forward[:-1]),
            (output.logits_backward, score.backward[1:]),
        ):
            chances = logits[number].log_softmax(dim=-1)
            size = len(SENTENCES[number])
            found = chances[range(size), labels[number, :size]]
            np.testing.assert_allclose(found.detach(), values, rtol=1e-5)
            assert (logits[number, size:] == 0).all()


def streams(sentences, backward=False):
    """One row a sentence, as a stream has it: the last token is only predicted."""
    tokens = [
        [END, *reversed(words), BEGIN] if backward else [BEGIN, *words, END] for words in sentences
    ]
    return [row[:-1] for row in tokens], [row[1:] for row in tokens]


def stream_inputs(sentences, vocabulary):
    steps = max(map(len, sentences)) + 1
    batch = {}
    for suffix in ("", "_backward"):
        inputs, targets = streams(sentences, backward=bool(suffix))
        batch[f"input_ids{suffix}"] = encode_tokens(inputs, steps, ByteRows(WIDTH))
        batch[f"labels{suffix}"] = number_tokens(targets, steps, vocabulary)
    return batch


def test_streams_give_the_loss_of_the_sentences_in_them(model):
    input_ids, labels = ElmoScorer(model).encode(SENTENCES)
    expected = model(input_ids, labels=labels)
    found = model(**stream_inputs(SENTENCES, model.vocabulary))
    for name in ("loss", "loss_forward", "loss_backward"):
        torch.testing.assert_close(found[name], expected[name], rtol=1e-5, atol=0)


@pytest.mark.parametrize("prepared", [False, True])
def test_a_stream_may_be_read_in_windows(model, prepared):
    sentences = [["the", "dog", "barks", ".", "a", "cat", "sleeps"], list("abcdefg")]
    whole = stream_inputs(sentences, model.vocabulary)
    if prepared:
        model.prepare_for_inference()
    with torch.inference_mode():
        expected = model(**whole)
        losses, state = [], None
        for start in (0, 4):
            window = {name: part[:, start : start + 4] for name, part in whole.items()}
            output = model(**window, state=state)
            state = output.state
            losses.append(output.loss)
    torch.testing.assert_close(torch.stack(losses).mean(), expected.loss, rtol=1e-5, atol=0)
    torch.testing.assert_close(state.cells, expected.state.cells, rtol=1e-5, atol=1e-6)


def test_gradients_stop_at_a_detached_state(model):
    window = stream_inputs([["the", "dog"]], model.vocabulary)
    state = model(**window).state
    assert state.cells.requires_grad and not state.detach().cells.requires_grad


def test_sampling_is_for_training_only(model, monkeypatch):
    config = tiny_config(lm_vocab_size=40, num_negative_samples=5)
    model = ElmoForPreTraining(config)
    assert model.num_negatives == 5
    drawn = []

    def losses(hidden, targets, negatives=None):
        drawn.append(negatives)
        return hidden.sum(dim=-1)

    monkeypatch.setattr(model.softmax, "losses", losses)
    monkeypatch.setattr(model.softmax, "sampled_losses", losses)
    batch = stream_inputs(SENTENCES, WordVocabulary(WORDS))
    for training in (True, False):
        model.train(training)(**batch)
    assert drawn == [5, None]


@pytest.mark.parametrize("negatives", [5, None])
def test_autocast_trains(negatives):
    """The products in low precision, the softmax not: the loss is near, and everything learns."""
    model = ElmoForPreTraining(tiny_config(lm_vocab_size=40, num_negative_samples=negatives))
    batch = stream_inputs(SENTENCES, WordVocabulary(WORDS))
    torch.manual_seed(0)
    expected = model.train()(**batch).loss
    torch.manual_seed(0)
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(**batch).loss
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, expected, rtol=0.02, atol=0)
    loss.backward()
    assert all(weight.grad is not None for weight in model.parameters())


def test_a_small_vocabulary_uses_all_of_it():
    model = ElmoForPreTraining(tiny_config(lm_vocab_size=10, num_negative_samples=5))
    assert model.num_negatives is None
    assert ElmoForPreTraining(tiny_config(lm_vocab_size=11, num_negative_samples=5)).num_negatives


def test_dropout_masks_every_token(model):
    """The same word at two places loses different parts; the evaluation loses nothing."""
    config = tiny_config(lm_vocab_size=len(WORDS), hidden_dropout=0.5, num_hidden_layers=1)
    model = ElmoForPreTraining(config).train()
    seen = []
    layer = model.elmo.layers[0]
    layer.forward_cell.input_linear.register_forward_hook(lambda _, args, __: seen.append(args[0]))
    batch = stream_inputs([["a", "a", "a"]] * 2, WordVocabulary(WORDS))
    model(**batch)
    model.eval()(**batch)
    trained, evaluated = seen
    assert len(trained) == 8 and len(evaluated) < 8
    assert (trained == 0).any() and not (evaluated == 0).any()
    zeros = (trained.view(4, 2, -1) == 0)[1:]
    assert not torch.equal(zeros[0], zeros[1])


def test_substitutes_are_the_best_words_of_both_directions(model):
    sentence = ["the", "dog", "barks"]
    found = ElmoScorer(model).substitutes(sentence, k=3)
    input_ids, _ = ElmoScorer(model).encode([sentence])
    output = model(input_ids)
    forward, backward = (
        logits[0].log_softmax(dim=-1) for logits in (output.logits_forward, output.logits_backward)
    )
    assert len(found) == 3
    for place, best in enumerate(found):
        mean = ((forward[place] + backward[place]) / 2)[3:]
        expected = mean.argsort(descending=True)[:3] + 3
        assert [WORDS.index(substitute.word) for substitute in best] == expected.tolist()
        for substitute, number in zip(best, expected.tolist(), strict=True):
            assert substitute.forward == pytest.approx(forward[place, number].item(), rel=1e-5)
            assert substitute.backward == pytest.approx(backward[place, number].item(), rel=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_scoring_leaves_the_model_in_its_mode(model, training):
    """Dropout counts for nothing while scoring, also in the middle of training."""
    model.dropout.p = 0.5
    expected = ElmoScorer(model).score(SENTENCES)
    scorer = ElmoScorer(model.train(training), device="cpu")
    assert scorer.score(SENTENCES) == expected
    assert len(scorer.substitutes(["the", "dog"])) == 2
    assert all(module.training == training for module in model.modules())
    assert all(weight.requires_grad for weight in model.parameters())


def test_no_sentences_have_no_scores(model):
    assert ElmoScorer(model).score([]) == [] and ElmoScorer(model).substitutes([]) == []


def test_a_model_without_softmax_is_refused(tiny_model, tmp_path):
    tiny_model.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="holds an ElmoModel, without a softmax over words"):
        ElmoScorer(tmp_path)


def test_folder_keeps_words_and_weights(model, tmp_path):
    model.save_pretrained(tmp_path)
    again = ElmoForPreTraining.from_pretrained(tmp_path)
    assert again.vocabulary.words == WORDS
    scores = [ElmoScorer(source).score(SENTENCES) for source in (model, again, tmp_path)]
    assert scores[2] == scores[1]
    for old, new in zip(*scores[:2], strict=True):
        np.testing.assert_allclose(new.forward, old.forward, rtol=1e-5)
    assert isinstance(AutoModelForPreTraining.from_pretrained(tmp_path), ElmoForPreTraining)
    alone = ElmoModel.from_pretrained(tmp_path)
    batch = tokenize(SENTENCES)
    expected = model.elmo(**batch, output_hidden_states=True).hidden_states
    found = alone(**batch, output_hidden_states=True).hidden_states
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("lines", [[*WORDS, "more"], WORDS[:-1], WORDS[::-1]])
def test_words_of_another_model_are_refused(model, tmp_path, lines):
    model.save_pretrained(tmp_path)
    (tmp_path / "lm_vocabulary.txt").write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match="does not belong to this model: by its lines `lm_"):
        ElmoForPreTraining.from_pretrained(tmp_path)


def test_without_words_there_is_a_sentence(model):
    model.vocabulary = None
    with pytest.raises(ValueError, match="has no vocabulary"):
        ElmoScorer(model)
    with pytest.raises(ValueError, match="needs a vocabulary"):
        ElmoForPreTraining(tiny_config())
    with pytest.raises(ValueError, match="both `labels` and `labels_backward`"):
        model(**tokenize(SENTENCES), input_ids_backward=tokenize(SENTENCES)["input_ids"])


def test_what_a_scorer_cannot_score_is_refused(model):
    scorer = ElmoScorer(model)
    for wrong in (["ab cd"], "ab cd"):
        with pytest.raises(ValueError, match="A sentence is a list of words, not a string"):
            scorer.score(wrong)
    with pytest.raises(ValueError, match="A sentence is a list of words, not a string"):
        scorer.substitutes("ab cd")
    for number in (0, -1):
        with pytest.raises(ValueError, match=f"`batch_size` is {number} but must be at least 1"):
            scorer.score(SENTENCES, batch_size=number)
        with pytest.raises(ValueError, match=f"`k` is {number} but must be at least 1"):
            scorer.substitutes(SENTENCES[0], k=number)
