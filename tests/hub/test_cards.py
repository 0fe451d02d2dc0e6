"""Names out of files are text in a card: they cannot become tables, code, HTML or facts."""

import re

import pytest
from helpers.tiny import tiny_config
from huggingface_hub import ModelCard

from elmo_hf import ElmoForTokenClassification, ElmoModel
from elmo_hf.hub import tagger_card
from elmo_hf.hub.cards import code, converted_card, plain, plain_card

HOSTILE = [
    "a\nlicense: mit\n---\n# Title",
    "a | b",
    "<img src=x onerror=alert(1)>",
    "`code` ``",
    "[link](https://example.org)",
    "quote\" ' \\",
    "a\r\n\u2028b\x1b[31m",
    "*bold* &lt;",
]


def test_plain_text_and_code():
    assert plain("NOUN B-PER my-model $ # ,") == "NOUN B-PER my-model $ # ,"
    assert plain("_a_ ~~b~~") == "\\_a\\_ \\~\\~b\\~\\~"
    assert plain("http://a www.b") == "http:&#47;&#47;a www&#46;b"
    assert plain("<b>|`*\\ \n x") == "&lt;b&gt;\\|\\`\\*\\\\ x"
    assert code("weights.hdf5") == "`weights.hdf5`"
    assert code("a|b\n`c``") == "``` a\\|b `c`` ```"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_tagger_card_is_what_it_would_be_with_plain_names(name):
    labels = {0: "A", 1: re.sub(r"[\x00-\x1f]", " ", name)}
    config = tiny_config(id2label=labels, label2id={label: n for n, label in labels.items()})
    results = {"test_accuracy": 0.5, "test_baseline_accuracy": 0.25}
    text = tagger_card(
        ElmoForTokenClassification(config),
        title=name,
        base=name,
        data=name,
        sentences=3,
        results=results,
        goal="accuracy",
        licence="cc-by-4.0",
    )
    card = ModelCard(text)
    assert card.data.license == "cc-by-4.0" and card.data.library_name == "transformers"
    [result] = card.data.eval_results
    assert result.metric_value == 0.5 and "\n" not in result.dataset_name
    body = re.sub(r"^```.*?^```", "", card.text, flags=re.M | re.S)
    assert [line for line in body.splitlines() if line.startswith("#")][1:] == ["## Limits"]
    rows = [line for line in body.splitlines() if line.startswith("|")]
    assert len(rows) == 3 and {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {4}
    # what is neither code nor escaped
    bare = re.sub(r"(`+) .*? \1|`[^`]*`", "", re.sub(r"\\.", "", body))
    assert "<img" not in bare and "](https://example" not in bare and "\x1b" not in text


@pytest.mark.parametrize("name", HOSTILE)
def test_the_table_of_a_converted_model_keeps_its_form(name):
    files = {"weight_file": name, "options_file": name, "converted_by": name}
    config = tiny_config(provenance={**files, "weight_sha256": "0", "options_sha256": "1"})
    text = ModelCard(converted_card(ElmoModel(config), 1e-7)).text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 7 and {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_snippet_of_a_plain_card_is_python(name):
    text = ModelCard(plain_card(name, name)).text
    [snippet] = re.findall(r"```python\n(.*?)\n```", text, re.S)
    assert len(snippet.splitlines()) == 4
    compile(snippet, "card", "exec")
