"""The CRF against sums and maxima over all tag sequences, in double precision."""

import itertools

import numpy as np
import pytest
import torch
from helpers.tiny import WIDTH, tiny_config, tokenize
from transformers import pipeline

from elmo_hf import ElmoForTokenClassification, ElmoTagger, ElmoTokenizer
from elmo_hf.crf_constraints import allowed_ends, allowed_starts, allowed_transitions
from elmo_hf.crf_elmo import ElmoCrf
from elmo_hf.export import PaddedElmo

LABELS = {
    "BIO": ["O", "B-X", "I-X", "B-Y", "I-Y"],
    "IOB1": ["I-X", "O", "B-X", "I-Y", "B-Y"],
    "BIOUL": ["O", "B-X", "I-X", "L-X", "U-X", "U-Y"],
}
# no words, gaps, and padding on either side
MASK = torch.tensor([[1, 1, 1, 1], [0, 1, 1, 0], [1, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]])


def crf_config(scheme: str | None = None, labels: list[str] | None = None, **settings):
    labels = labels or LABELS[scheme or "BIO"]
    return tiny_config(
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        classifier_decoder="crf",
        crf_constraints=scheme,
        **settings,
    )


def random_crf(scheme: str | None = None) -> tuple[ElmoCrf, torch.Tensor]:
    crf = ElmoCrf(crf_config(scheme)).double()
    for part in crf.parameters():
        torch.nn.init.normal_(part)
    return crf, torch.randn(*MASK.shape, len(crf.labels), dtype=torch.double)


def all_sequences(crf: ElmoCrf, logits: torch.Tensor) -> dict[tuple[int, ...], float]:
    """The score of every tag sequence of one sentence, (words, tags)."""
    found = {}
    for tags in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        score = sum(logits[word, tag] for word, tag in enumerate(tags))
        score = score + sum(crf.transitions[pair] for pair in itertools.pairwise(tags))
        score = score + crf.start_transitions[tags[0]] + crf.end_transitions[tags[-1]]
        found[tags] = float(score)
    return found


def is_allowed(scheme: str | None, tags: tuple[int, ...]) -> bool:
    if scheme is None:
        return True
    labels = LABELS[scheme]
    pairs = allowed_transitions(scheme, labels)
    inside = all(pairs[one][other] for one, other in itertools.pairwise(tags))
    starts, ends = allowed_starts(scheme, labels), allowed_ends(scheme, labels)
    return inside and starts[tags[0]] and ends[tags[-1]]


@torch.no_grad()
def test_losses_are_exact():
    crf, logits = random_crf()
    labels = torch.randint(5, MASK.shape)
    labels[0, 2] = -100
    found = crf.losses(logits, labels, MASK)
    for row, mask in enumerate(MASK.bool()):
        if not mask.any():
            assert found[row] == 0
            continue
        scores = all_sequences(crf, logits[row, mask])
        gold = labels[row, mask].tolist()
        fits = [
            score
            for tags, score in scores.items()
            if all(label in (-100, tag) for label, tag in zip(gold, tags, strict=True))
        ]
        expected = np.logaddexp.reduce([*scores.values()]) - np.logaddexp.reduce(fits)
        assert found[row].item() == pytest.approx(expected, rel=1e-12)


@torch.no_grad()
@pytest.mark.parametrize("scheme", [None, *LABELS])
def test_the_best_tags_and_their_probabilities_are_exact(scheme):
    crf, logits = random_crf(scheme)
    tags, chances = crf.decode(logits, MASK)
    for row, mask in enumerate(MASK.bool()):
        if not mask.any():
            continue
        scores = all_sequences(crf, logits[row, mask])
        allowed = {tags: score for tags, score in scores.items() if is_allowed(scheme, tags)}
        best = max(allowed, key=lambda tags: allowed[tags])
        assert tuple(tags[row, mask].tolist()) == best
        total = np.logaddexp.reduce([*allowed.values()])
        for word, tag in enumerate(best):
            some = [score for tags, score in allowed.items() if tags[word] == tag]
            share = np.exp(np.logaddexp.reduce(some) - total)
            assert chances[row, mask][word].item() == pytest.approx(share, rel=1e-10)


@pytest.mark.parametrize("scheme", LABELS)
def test_constraints_are_never_violated(scheme):
    crf = ElmoCrf(crf_config(scheme))
    for part in crf.parameters():
        torch.nn.init.normal_(part, std=10)
    logits = 100 * torch.randn(200, 12, len(LABELS[scheme]))
    for tags in crf.decode(logits, torch.ones(200, 12))[0].tolist():
        assert is_allowed(scheme, tuple(tags))


def test_labels_among_which_nothing_is_allowed_have_tags_all_the_same():
    crf = ElmoCrf(crf_config("BIO", ["I-X", "I-Y"]))
    for part in crf.parameters():
        torch.nn.init.zeros_(part)
    tags, chances = crf.decode(torch.tensor([[[3.0, 0.0]] * 3]), torch.ones(1, 3))
    assert tags.tolist() == [[0, 0, 0]] and chances.isfinite().all()


def test_gradients():
    crf, logits = random_crf()
    labels = torch.randint(5, MASK.shape)
    labels[2, 2] = -100
    logits.requires_grad_()

    def loss(*values):
        parts = dict(zip(dict(crf.named_parameters()), values[1:], strict=True))
        call = torch.func.functional_call
        return call(Losses(crf), {f"crf.{n}": p for n, p in parts.items()}, (values[0], labels))

    assert torch.autograd.gradcheck(loss, (logits, *crf.parameters()))
    crf.losses(logits, labels, MASK).sum().backward()
    # padding takes no part
    assert not logits.grad[~MASK.bool()].any()


class Losses(torch.nn.Module):
    def __init__(self, crf: ElmoCrf):
        super().__init__()
        self.crf = crf

    def forward(self, logits, labels):
        return self.crf.losses(logits, labels, MASK)


def test_huge_and_half_precision_logits_stay_finite():
    crf, logits = random_crf()
    crf, labels = crf.float(), torch.randint(5, MASK.shape)
    for some in (1e4 * logits.float(), logits.half(), logits.bfloat16()):
        assert crf.losses(some, labels, MASK).isfinite().all()
        assert crf.decode(some, MASK)[1].isfinite().all()
    low = crf.to(torch.bfloat16).losses(logits.bfloat16(), labels, MASK)
    assert low.dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        assert crf.losses(logits.bfloat16(), labels, MASK).equal(low)


SENTENCES = [["Will", "you", "book", "it", "?"], ["No", "."]]


def random_tagger(**settings) -> ElmoForTokenClassification:
    model = ElmoForTokenClassification(crf_config("BIO", task_lstm_size=4, **settings)).eval()
    for part in model.crf.parameters():
        torch.nn.init.normal_(part, std=2)
    return model


def test_a_new_crf_is_a_softmax():
    torch.manual_seed(0)
    model = ElmoForTokenClassification(crf_config()).eval()
    torch.manual_seed(0)
    plain = ElmoForTokenClassification(
        tiny_config(id2label=model.config.id2label, label2id=model.config.label2id)
    ).eval()
    batch = tokenize(SENTENCES)
    batch["labels"] = torch.tensor([[0, 1, 2, 0, 0], [3, -100, -100, -100, -100]])
    one, other = model(**batch), plain(**batch)
    torch.testing.assert_close(one.loss, other.loss)
    tags, chances = model.decode(one.logits, batch["attention_mask"])
    expected, shares = plain.decode(other.logits, batch["attention_mask"])
    live = batch["attention_mask"].bool()
    assert tags[live].equal(expected[live])
    torch.testing.assert_close(chances[live], shares[live])


def test_the_loss_of_a_tagger_is_a_mean_per_word():
    model = random_tagger()
    batch = tokenize(SENTENCES)
    labels = torch.tensor([[0, 1, 2, 0, 0], [3, 4, -100, -100, -100]])
    output = model(**batch, labels=labels)
    losses = model.sentence_losses(output.logits, labels, batch["attention_mask"])
    torch.testing.assert_close(output.loss, losses.sum() / 7)
    output = model(**batch, labels=labels, num_items_in_batch=70)
    torch.testing.assert_close(output.loss, losses.sum() / 70)
    output.loss.backward()
    assert all(part.grad.abs().sum() > 0 for part in model.crf.parameters())
    # a softmax adds up its words
    plain = ElmoForTokenClassification(tiny_config(num_labels=5)).eval()
    output = plain(**batch, labels=labels)
    total = plain.sentence_losses(output.logits, labels, batch["attention_mask"]).sum()
    assert output.loss.item() == pytest.approx(total.item() / 7, rel=1e-6)


@pytest.mark.parametrize("strategy", ["none", "simple", "average"])
def test_a_pipeline_and_a_tagger_choose_the_same(tmp_path, strategy):
    model = random_tagger()
    model.save_pretrained(tmp_path)
    ElmoTokenizer(max_characters_per_token=WIDTH).save_pretrained(tmp_path)
    tagged = list(ElmoTagger(str(tmp_path)).tag(SENTENCES))
    batch = tokenize(SENTENCES)
    logits = model(**batch).logits
    tags, chances = model.decode(logits, batch["attention_mask"])
    assert tags[0].tolist() != logits[0].argmax(dim=-1).tolist()
    pipe = pipeline("token-classification", model=str(tmp_path), aggregation_strategy=strategy)
    texts = [" ".join(words) for words in SENTENCES]
    for size in (1, 2):
        found = pipe(texts, batch_size=size, ignore_labels=[])
        for row, (sentence, words) in enumerate(zip(tagged, found, strict=True)):
            count = len(sentence.words)
            labels = [model.config.id2label[tag] for tag in tags[row, :count].tolist()]
            assert sentence.tags == labels
            assert sentence.scores == pytest.approx(chances[row, :count].tolist(), rel=1e-4)
            if strategy == "none":
                assert [word["entity"] for word in words] == labels
                scores = [float(word["score"]) for word in words]
                assert scores == pytest.approx(sentence.scores, rel=1e-4)
            else:
                kinds = [label.partition("-")[2] or "O" for label in labels]
                begins = sum(label.startswith("B-") for label in labels)
                assert {word["entity_group"] for word in words} == set(kinds)
                assert sum(word["entity_group"] != "O" for word in words) == begins


def test_a_crf_cannot_be_exported():
    with pytest.raises(ValueError, match="A tagger with a CRF cannot be exported"):
        PaddedElmo(random_tagger())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"classifier_decoder": "beam"}, "must be one of softmax, crf"),
        ({"classifier_decoder": "crf", "crf_constraints": "BMES"}, "one of BIO, IOB1, BIOUL, or"),
        ({"crf_constraints": "BIO"}, 'requires `classifier_decoder` "crf"'),
        (
            {"classifier_decoder": "crf", "crf_constraints": "BIO", "id2label": {0: "O", 1: "N"}},
            "'N' is not a label of this scheme",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(Exception, match=message):
        tiny_config(**settings)
