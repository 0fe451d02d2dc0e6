# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Model cards: the README.md of a converted model, of a tagger, and of any other model."""

import json
import re
import shlex
from collections.abc import Sequence
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from elmo_hf.configuration_elmo import ElmoConfig
from elmo_hf.hub.download import Origin
from elmo_hf.modeling_elmo import ElmoForTokenClassification, ElmoModel, ElmoPreTrainedModel
from elmo_hf.remote_code import AUTO_CLASSES

PAPER = "[Peters et al. 2018](https://arxiv.org/abs/1802.05365)"
# how the Hub classifies a model
PIPELINE_TAGS = {
    "ElmoModel": "feature-extraction",
    "ElmoForTokenClassification": "token-classification",
    "ElmoForSequenceClassification": "text-classification",
}


def converted_card(
    model: ElmoModel,
    error: float,
    notes: Sequence[str] = (),
    whole: ElmoPreTrainedModel | None = None,
    origin: Origin | None = None,
) -> str:
    """
    For a model converted from published weights; `error` is its largest one against the reference,
    and `notes` are sentences about its origin. `whole` is the biLM with its head, if it has one,
    and `origin` the published model that was downloaded, if one was.
    """
    source = model.config.provenance or {}
    is_tagger = isinstance(whole, ElmoForTokenClassification)
    rows = {
        **original_files(source),
        "converted by": plain(source["converted_by"]),
        "parameters": f"{model.num_parameters():,}",
        "largest relative error against an independent numpy implementation": f"{error:.1e}",
    }
    if whole is not None and is_tagger:
        usage = f"{describe_tagger(whole.config, 'its biLM')}\n\n{TAGGER_SNIPPET}"
    else:
        layer = model.config.aligned_layer
        what = f"(1, 4, {model.config.hidden_size})"
        usage = VECTORS_SNIPPET.format(
            what=what if layer is None else f"{what}: layer {layer}, mapped"
        )
    return card(
        "ElmoForTokenClassification" if is_tagger else "ElmoModel",
        "ELMo, converted for transformers",
        f"""\
Deep contextualised word representations ({PAPER}), converted by elmo_hf from the files
below.

{usage}
## Origin

{table(["", ""], [[name, fact] for name, fact in rows.items()])}

{published_section(origin) if origin else ""}\
{bullets(notes)}The weights keep the licence under which their authors published them.

## Limits

The model reads words, not sub-words. Split text as the training text was split (Moses-like tokens
for the published English models), and do not lowercase it. {about_output(model)}
""",
    )


def published_section(origin: Origin) -> str:
    """What the registry says of a model, and where its files were found."""
    model = origin.model
    facts = {
        "published model": f"{code(model.name)}: {plain(model.title)}",
        "licence": plain(model.licence),
        "citation": plain(model.citation),
        "page": plain(model.page),
        "notes": plain(model.notes),
    }
    files = [
        [code(one.path.name), plain(one.url or "put there by hand"), code(one.sha256)]
        for one in origin.files
    ]
    return f"""\
{table(["", ""], [[name, fact] for name, fact in facts.items() if fact])}

{table(["downloaded file", "from", "SHA-256"], files)}

"""


def about_output(model: ElmoModel) -> str:
    """What `last_hidden_state` is, in the card of a biLM."""
    layer = model.config.aligned_layer
    if layer is not None:
        return (
            f"`last_hidden_state`\nis layer {layer}, mapped into the space of the languages it was "
            "aligned with;\n`hidden_states` are not mapped. `ElmoEmbedder` and `elmo-hf embed` "
            "map the layer\nwherever they return it, and no other: compare languages by "
            f"`layers={layer}`."
        )
    learned = [part for mix in model.mixes for part in mix.parameters()]
    if any(part.unique().tolist() not in ([0.0], [1.0]) for part in learned):
        return "The layer weights (`mixes`) are those\nthat the original task has learned."
    return "The layer weights (`mixes`) are equal\nuntil a task learns them."


def original_files(source: dict[str, Any]) -> dict[str, str]:
    """The files of a converted model with their hashes, by what they are."""
    names = {
        "weight_file": "weights",
        "options_file": "options",
        "alignment_file": "map of a layer",
    }
    return {
        names.get(kind, kind.removesuffix("_file").replace("_", " ")): (
            f"{code(name)}, SHA-256 {code(source[kind.removesuffix('_file') + '_sha256'])}"
        )
        for kind, name in source.items()
        if kind.endswith("_file")
    }


def bullets(notes: Sequence[str]) -> str:
    """Sentences as a list with a blank line after it; nothing without any."""
    return "".join(f"- {plain(note)}\n" for note in notes) + ("\n" if notes else "")


def tagger_card(
    model: ElmoForTokenClassification,
    title: str,
    base: str,
    data: str,
    sentences: int,
    results: dict[str, Any],
    goal: str,
    licence: str,
) -> str:
    """
    For a trained tagger.

    `title` is the tagger's name, `base` the biLM's and `data` that of the training data;
    `sentences` is the number of training sentences. `results` has the scores `<split>_<goal>` and
    `<split>_baseline_<goal>` of the splits that were evaluated, where `goal` names the metric.
    """
    splits = [split for split in ("validation", "test") if f"{split}_{goal}" in results]
    scores = [
        [split, *(percent(results[f"{split}_{kind}"]) for kind in (goal, f"baseline_{goal}"))]
        for split in splits
    ]
    return card(
        "ElmoForTokenClassification",
        title,
        f"""\
{describe_tagger(model.config, base)} It was trained with elmo_hf on {sentences:,} sentences of
{plain(data)}.

{table(["", goal, "most frequent tag of each word"], scores)}

{TAGGER_SNIPPET}
With elmo_hf installed, {code(f"elmo-hf tag --model {shlex.quote(title)}")} tags files of any size.

## Limits

The tagger reads one sentence at a time, split into words as its training data is, and knows the
language and the kind of text that it was trained on. The licence above covers the weights trained
here; the biLM keeps its own.
""",
        license=licence,
        metrics=[goal],
        model_name=one_line(title),
        eval_results=[evaluation(data, split, goal, results) for split in splits],
    )


def evaluation(data: str, split: str, goal: str, results: dict[str, Any]) -> EvalResult:
    """A score in the form that the Hub lists."""
    return EvalResult(
        task_type="token-classification",
        dataset_type="local",
        dataset_name=one_line(data),
        dataset_split=split,
        metric_type=goal,
        metric_value=results[f"{split}_{goal}"],
    )


def bundled_tagger_card(config: ElmoConfig, task: str, bilm: ModelCard) -> str:
    """For a tagger on the bundled biLM, whose own card gives licence, data and figures."""
    facts = bilm.data.to_dict()
    about_bilm = bilm.text.strip().partition("\n")[2].strip()
    return card(
        "ElmoForTokenClassification",
        f"{task.upper()} tagger on the bundled model of elmo_hf",
        f"""\
{describe_tagger(config, "the bundled biLM of elmo_hf")}

{TAGGER_SNIPPET}
## The bundled model

{about_bilm}
""",
        **{name: facts[name] for name in ("license", "language", "datasets") if name in facts},
    )


def plain_card(kind: str, repository: str) -> str:
    """For a model of this class, in a folder without a card."""
    names = {path.rpartition(".")[2]: name for name, path in AUTO_CLASSES.items()}
    auto = names.get(kind, "AutoModel")
    name = json.dumps(one_line(repository))
    return card(
        kind,
        repository,
        f"""\
An ELMo model ({PAPER}) of class {code(kind)}.

```python
from transformers import {auto}, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained({name}, trust_remote_code=True)
model = {auto}.from_pretrained({name}, trust_remote_code=True)
```
""",
    )


def card(kind: str, title: str, text: str, **facts: Any) -> str:
    """The frame of every card: facts for the Hub's machines, then a title and text for people."""
    data = ModelCardData(
        library_name="transformers",
        tags=["elmo"],
        pipeline_tag=PIPELINE_TAGS.get(kind),
        **facts,
    )
    return str(ModelCard(f"---\n{data.to_yaml()}\n---\n\n# {plain(title)}\n\n{text}"))


VECTORS_SNIPPET = """\
```python
from elmo_hf import ElmoModel, ElmoTokenizer

tokenizer = ElmoTokenizer.from_pretrained("this-folder-or-repository")
model = ElmoModel.from_pretrained("this-folder-or-repository")
batch = tokenizer([["The", "river", "bank", "."]], is_split_into_words=True, return_tensors="pt")
vectors = model(**batch).last_hidden_state  # {what}
```
"""
TAGGER_SNIPPET = """\
```python
from transformers import pipeline

tagger = pipeline("token-classification", model="this-repository", trust_remote_code=True)
for word in tagger("Will you book the book ?"):
    print(word["word"], word["entity"], word["score"])
```
"""


def describe_tagger(config: ElmoConfig, base: str) -> str:
    labels = sorted(plain(label) for label in (config.id2label or {}).values())
    size = config.task_lstm_size
    head = f"a BiLSTM of 2 x {size} and a linear layer" if size else "a linear layer"
    head += " under a CRF" if config.classifier_decoder == "crf" else ""
    return (
        f"A tagger on [ELMo](https://arxiv.org/abs/1802.05365) with {len(labels)} tags\n"
        f"({', '.join(labels)}): {head} on {plain(base)}."
    )


def one_line(text: object) -> str:
    """A name out of files as one line, whatever is in it."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())


def plain(text: object) -> str:
    """A name out of files as plain text of Markdown, also in a table, without code or HTML."""
    quoted = re.sub(r"([\\`*_~\[\]|])", r"\\\1", one_line(text).replace("&", "&amp;"))
    quoted = quoted.replace("<", "&lt;").replace(">", "&gt;")
    # an address would become a link
    return quoted.replace("://", ":&#47;&#47;").replace("www.", "www&#46;")


def code(text: object) -> str:
    """A name out of files as code in a line or a table; more quotes than it has enclose it."""
    content = one_line(text).replace("|", "\\|")
    quotes = "`" * (1 + max(map(len, re.findall("`+", content)), default=0))
    space = " " if len(quotes) > 1 or not content else ""
    return f"{quotes}{space}{content}{space}{quotes}"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def percent(share: float) -> str:
    return f"{100 * share:.2f} %"
