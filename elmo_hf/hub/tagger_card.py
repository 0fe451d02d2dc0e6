"""The README.md of a trained tagger: for the Hub's machines, and for people."""

from pathlib import Path

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from elmo_hf import ElmoForTokenClassification

TEMPLATE = """---
{{ card_data }}
---

# {{ title }}

A tagger on [ELMo](https://arxiv.org/abs/1802.05365): {{ labels|length }} tags
({{ labels|join(", ") }}), {{ head }} on {{ base }}, trained with elmo_hf's `run_pos.py` on
{{ sentences }} sentences of {{ data }}.

| | {{ goal }} | most frequent tag of each word |
|---|---|---|
{% for row in rows -%}
| {{ row.split }} | {{ "%.2f"|format(row.score) }} % | {{ "%.2f"|format(row.baseline) }} % |
{% endfor %}
```python
from transformers import AutoModelForTokenClassification, AutoTokenizer

name = "this-repository"
tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=True)
model = AutoModelForTokenClassification.from_pretrained(name, trust_remote_code=True)
words = ["Will", "you", "book", "the", "book", "?"]
batch = tokenizer([words], is_split_into_words=True, return_tensors="pt")
tags = [model.config.id2label[n] for n in model(**batch).logits[0].argmax(-1).tolist()]
```

With elmo_hf installed, `elmo-hf tag --model {{ title }} text.txt` tags files of any size.

## Limits

It reads words as its training text splits them, a sentence at a time, and knows the language and
the kind of text it was trained on. Weights trained here are under the licence above; the biLM below
them keeps its own.
"""


def write_card(
    folder: Path,
    model: ElmoForTokenClassification,
    base: str,
    data: str,
    sentences: int,
    results: dict,
    goal: str,
    licence: str,
) -> None:
    splits = [split for split in ("validation", "test") if f"{split}_{goal}" in results]
    card_data = ModelCardData(
        library_name="transformers",
        license=licence,
        tags=["elmo", "token-classification"],
        pipeline_tag="token-classification",
        metrics=[goal],
        model_name=folder.resolve().name,
        eval_results=[
            EvalResult(
                task_type="token-classification",
                dataset_type="local",
                dataset_name=data,
                dataset_split=split,
                metric_type=goal,
                metric_value=results[f"{split}_{goal}"],
            )
            for split in splits
        ],
    )
    size = model.config.task_lstm_size
    card = ModelCard.from_template(
        card_data,
        template_str=TEMPLATE,
        title=folder.resolve().name,
        labels=sorted(model.config.id2label.values()),
        head=f"a BiLSTM of 2 x {size} and a linear layer" if size else "a linear layer",
        base=base,
        data=data,
        sentences=f"{sentences:,}",
        goal=goal,
        rows=[
            {
                "split": split,
                "score": 100 * results[f"{split}_{goal}"],
                "baseline": 100 * results[f"{split}_baseline_{goal}"],
            }
            for split in splits
        ],
    )
    (folder / "README.md").write_text(str(card), encoding="utf-8")
