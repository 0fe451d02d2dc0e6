"""The word softmax: sampled as AllenNLP's port of TensorFlow samples, full in chunks."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.references import allennlp_sampled_softmax

from elmo_hf import softmax_elmo
from elmo_hf.softmax_elmo import ElmoSoftmax, log_uniform, sample_distinct

WORDS, WIDTH, NEGATIVES = 50, 8, 12


@pytest.fixture
def softmax():
    torch.manual_seed(0)
    softmax = ElmoSoftmax(WIDTH, WORDS)
    torch.nn.init.normal_(softmax.bias)
    return softmax


@pytest.fixture
def batch():
    torch.manual_seed(1)
    # small numbers are often among the negatives: accidental hits
    return torch.randn(30, WIDTH), torch.arange(30) % 10


def test_sampled_loss_and_gradients_are_allennlps(softmax, batch, monkeypatch):
    peer = allennlp_sampled_softmax().SampledSoftmaxLoss(WORDS, WIDTH, NEGATIVES)
    peer.softmax_w.data = softmax.weight.detach().clone()
    peer.softmax_b.data = softmax.bias.detach().clone()
    np.random.seed(2)
    negatives, tries = peer.choice_func(WORDS, NEGATIVES)
    peer.choice_func = lambda words, samples: (negatives, tries)
    drawn = (torch.from_numpy(negatives), torch.tensor(tries))
    monkeypatch.setattr(softmax_elmo, "sample_distinct", lambda *_: drawn)
    hidden, targets = batch
    assert set(targets.tolist()) & set(negatives.tolist())
    ours, theirs = hidden.clone().requires_grad_(), hidden.clone().requires_grad_()
    found = softmax.sampled_losses(ours.unsqueeze(0), targets.unsqueeze(0), NEGATIVES).sum()
    expected = peer(theirs, targets)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)
    found.backward()
    expected.backward()
    for mine, other in (
        (ours.grad, theirs.grad),
        (softmax.weight.grad, peer.softmax_w.grad),
        (softmax.bias.grad, peer.softmax_b.grad),
    ):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)


def test_negatives_are_distinct_and_drawn_like_allennlps():
    torch.manual_seed(3)
    np.random.seed(3)
    choose = allennlp_sampled_softmax()._choice
    rounds = 2000
    frequency, tries = torch.zeros(2, WORDS), [0.0, 0.0]
    for _ in range(rounds):
        words, number = sample_distinct(NEGATIVES, WORDS, torch.device("cpu"))
        assert len(words.unique()) == NEGATIVES and words.min() >= 0 and words.max() < WORDS
        theirs, their_number = choose(WORDS, NEGATIVES)
        frequency[0][words] += 1 / rounds
        frequency[1][torch.from_numpy(theirs)] += 1 / rounds
        tries[0] += number.item() / rounds
        tries[1] += their_number / rounds
    # five standard deviations of a difference of two such frequencies are below 0.08
    assert (frequency[0] - frequency[1]).abs().max() < 0.08
    assert tries[0] == pytest.approx(tries[1], rel=0.05)


def test_log_uniform_is_a_distribution():
    assert log_uniform(torch.arange(WORDS), WORDS).sum().item() == pytest.approx(1)


def test_all_words_can_be_drawn_but_not_more():
    words, _ = sample_distinct(20, 20, torch.device("cpu"))
    assert words.sort().values.tolist() == list(range(20))
    with pytest.raises(ValueError, match="Cannot draw 21 distinct words from a vocabulary of 20"):
        sample_distinct(21, 20, torch.device("cpu"))


def test_each_direction_has_negatives_of_its_own(softmax, batch, monkeypatch):
    hidden, targets = batch
    draws = [sample_distinct(NEGATIVES, WORDS, torch.device("cpu")) for _ in range(2)]
    expected = []
    for drawn in draws:
        monkeypatch.setattr(softmax_elmo, "sample_distinct", lambda *_, drawn=drawn: drawn)
        expected.append(softmax.sampled_losses(hidden[None], targets[None], NEGATIVES)[0])
    assert not torch.equal(*expected)
    left = iter(draws)
    monkeypatch.setattr(softmax_elmo, "sample_distinct", lambda *_: next(left))
    both = softmax.sampled_losses(hidden.repeat(2, 1, 1), targets.repeat(2, 1), NEGATIVES)
    torch.testing.assert_close(both, torch.stack(expected))


@pytest.mark.parametrize("negatives", [None, NEGATIVES])
def test_a_missing_target_costs_nothing(softmax, batch, negatives):
    hidden, targets = batch
    targets[::3] = -100
    if negatives is None:
        losses = softmax.losses(hidden, targets)
    else:
        losses = softmax.sampled_losses(hidden[None], targets[None], negatives)[0]
    assert (losses[::3] == 0).all() and (losses[1::3] > 0).all()


def test_full_softmax_in_chunks_is_the_full_softmax(softmax, batch, monkeypatch):
    hidden, targets = batch
    expected = torch.nn.functional.cross_entropy(softmax(hidden), targets, reduction="none")
    monkeypatch.setattr(softmax_elmo, "LOGITS_AT_ONCE", 7 * WORDS)
    with torch.no_grad():
        torch.testing.assert_close(softmax.losses(hidden, targets), expected)


@pytest.mark.program
@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux for the peak")
def test_the_full_softmax_takes_as_much_memory_for_many_targets_as_for_some():
    """Five parts of 128 MB of logits, one after the other in the same memory."""
    program = Path(__file__).parents[1] / "helpers" / "memory_of_losses.py"
    command = [sys.executable, program, "400000", "400"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert int(printed) < 1.5 * 4 * softmax_elmo.LOGITS_AT_ONCE
