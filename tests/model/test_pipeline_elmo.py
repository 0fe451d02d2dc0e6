"""transformers' pipelines, by nothing but a folder."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from helpers.tiny import WIDTH, tiny_config
from transformers import BertConfig, BertForTokenClassification, BertTokenizer, pipeline

from elmo_hf import (
    ElmoForSequenceClassification,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoTagger,
    ElmoTokenizer,
)
from elmo_hf.remote_code import add_code

TEXT = "Stocks  fell sharply ."
WORDS = TEXT.split()


def save(folder, model_class, **settings) -> str:
    torch.manual_seed(0)
    model_class(tiny_config(**settings)).save_pretrained(folder)
    ElmoTokenizer(max_characters_per_token=WIDTH).save_pretrained(folder)
    return str(folder)


@pytest.fixture
def tagger(tmp_path):
    labels = {0: "A", 1: "B"}
    return save(tmp_path / "tagger", ElmoForTokenClassification, id2label=labels)


def test_tags_words_and_offsets_of_a_string(tagger):
    found = pipeline("token-classification", model=tagger)(TEXT)
    [expected] = ElmoTagger(tagger).tag([WORDS])
    assert [word["word"] for word in found] == WORDS
    assert [TEXT[word["start"] : word["end"]] for word in found] == WORDS
    assert [word["entity"] for word in found] == expected.tags
    assert [word["score"] for word in found] == pytest.approx(expected.scores, rel=1e-5)


def test_split_words_may_have_spaces(tagger):
    [found] = pipeline("token-classification", model=tagger)(
        [["New York", "fell"]], is_split_into_words=True
    )
    assert [word["word"] for word in found] == ["New York", "fell"]


def test_batches_change_nothing(tagger):
    pipe = pipeline("token-classification", model=tagger)
    texts = [TEXT, "Up .", "", "Nobody knows why it fell so far ."]
    alone, together = pipe(texts), pipe(texts, batch_size=4)
    for one, other in zip(alone, together, strict=True):
        assert [word["entity"] for word in one] == [word["entity"] for word in other]
        scores = [word["score"] for word in other]
        assert [word["score"] for word in one] == pytest.approx(scores, rel=1e-5)


@pytest.mark.parametrize("strategy", ["simple", "first"])
def test_neighbours_of_one_tag_are_grouped(strategy, tagger):
    pipe = pipeline("token-classification", model=tagger, aggregation_strategy=strategy)
    tags = [word["entity"] for word in pipeline("token-classification", model=tagger)(TEXT)]
    changes = sum(one != other for one, other in zip(tags, tags[1:], strict=False))
    assert len(pipe(TEXT)) == changes + 1


def test_features_are_the_models(tmp_path):
    folder = save(tmp_path / "elmo", ElmoModel)
    features = np.array(pipeline("feature-extraction", model=folder)(TEXT))
    model = ElmoModel.from_pretrained(folder).eval()
    batch = ElmoTokenizer.from_pretrained(folder)([TEXT], return_tensors="pt")
    with torch.inference_mode():
        expected = model(**batch).last_hidden_state
    np.testing.assert_allclose(features, expected.numpy(), rtol=1e-6, atol=1e-7)
    # in a batch, rows of zeros follow a shorter text's words
    pipe = pipeline("feature-extraction", model=folder, batch_size=2)
    short, _ = map(np.array, pipe(["Stocks", TEXT]))
    assert short.shape == features.shape and not short[0, 1:].any() and short[0, 0].any()


def test_classes_of_texts(tmp_path):
    folder = save(tmp_path / "classes", ElmoForSequenceClassification, id2label={0: "-", 1: "+"})
    pipe = pipeline("text-classification", model=folder)
    alone, together = pipe([TEXT, "Up ."]), pipe([TEXT, "Up ."], batch_size=2)
    model = ElmoForSequenceClassification.from_pretrained(folder).eval()
    batch = ElmoTokenizer.from_pretrained(folder)([TEXT, "Up ."], padding=True, return_tensors="pt")
    best = model(**batch).logits.argmax(dim=-1).tolist()
    assert [one["label"] for one in alone] == ["-+"[number] for number in best]
    assert [one["score"] for one in alone] == pytest.approx([one["score"] for one in together])


def run_elsewhere(code: str, home, installed: bool) -> list:
    """What a fresh process prints that may only have transformers."""
    start = "import elmo_hf" if installed else "import sys; sys.modules['elmo_hf'] = None"
    done = subprocess.run(
        [sys.executable, "-c", f"{start}\nfrom transformers import pipeline\n{code}"],
        env=os.environ | {"HF_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.program
@pytest.mark.parametrize("installed", [True, False])
def test_a_published_tagger_needs_the_flag_or_the_package(installed, tagger, tmp_path):
    pipe = pipeline("token-classification", model=tagger)
    texts = [TEXT, "Up ."]
    expected = [pipe(texts), pipe([WORDS], is_split_into_words=True)]
    add_code(tagger)
    flag = "" if installed else ", trust_remote_code=True"
    code = f"""
import json
pipe = pipeline("token-classification", model={tagger!r}{flag})
found = [pipe({texts!r}, batch_size=2), pipe([{WORDS!r}], is_split_into_words=True)]
found += [pipeline("ner", model={tagger!r}{flag})({texts!r})]
print(json.dumps(found, default=float))
"""
    found = run_elsewhere(code, tmp_path / "home", installed)
    for mine, theirs in zip([*expected, expected[0]], found, strict=True):
        for one, other in zip(mine, theirs, strict=True):
            for word, same in zip(one, other, strict=True):
                assert same == word | {"score": pytest.approx(float(word["score"]), rel=1e-5)}


@pytest.mark.program
def test_what_is_published_and_no_tagger_is_not_taken_for_one(tmp_path):
    folder = save(tmp_path / "classes", ElmoForSequenceClassification, id2label={0: "-", 1: "+"})
    [expected] = pipeline("text-classification", model=folder)(TEXT)
    add_code(folder)
    code = f"""
import json
found = [
    pipeline("text-classification", model={folder!r}, trust_remote_code=True)({TEXT!r}),
    pipeline("feature-extraction", model={folder!r}, trust_remote_code=True)({TEXT!r}),
]
print(json.dumps(found))
"""
    [[same], [features]] = run_elsewhere(code, tmp_path / "home", installed=False)
    assert same == expected | {"score": pytest.approx(expected["score"])}
    assert len(features) == len(WORDS)
    config = json.loads((tmp_path / "classes" / "config.json").read_text())
    assert "custom_pipelines" not in config


BERT = """
import json, sys
from transformers import pipeline

if sys.argv[1] == "with":
    import elmo_hf
pipe = pipeline("token-classification", model=sys.argv[2], aggregation_strategy="simple")
plain = pipeline("ner", model=sys.argv[2])
texts = ["stocksy fell", "stocks"]
found = [pipe(texts), plain(texts), type(pipe).__name__, type(pipe).__module__]
print(json.dumps(found, default=float))
"""


@pytest.mark.program
def test_other_models_pipelines_do_not_change(tmp_path):
    """A tiny, random BERT in a fresh process, before and after `import elmo_hf`."""
    torch.manual_seed(0)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "stocks", "##y", "fell"]
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        id2label={0: "B-X", 1: "I-X", 2: "O"},
    )
    BertForTokenClassification(config).save_pretrained(tmp_path / "bert")
    numbers = {word: number for number, word in enumerate(words)}
    BertTokenizer(numbers).save_pretrained(tmp_path / "bert")
    found = []
    for how in ("without", "with"):
        command = [sys.executable, "-c", BERT, how, tmp_path / "bert"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]
    assert found[0][2] == "TokenClassificationPipeline" and found[0][1][0]
