"""The README.md of a converted model."""

from huggingface_hub import ModelCard, ModelCardData

from elmo_hf import ElmoModel

TEMPLATE = """---
{{ card_data }}
---

# ELMo, converted for transformers

Deep contextualised word representations ([Peters et al. 2018](https://arxiv.org/abs/1802.05365)),
converted from the bilm-tf / AllenNLP hdf5 layout by elmo_hf.

```python
from elmo_hf import ElmoModel, ElmoTokenizer

tokenizer = ElmoTokenizer.from_pretrained("this-folder-or-repository")
model = ElmoModel.from_pretrained("this-folder-or-repository")
batch = tokenizer([["The", "river", "bank", "."]], is_split_into_words=True, return_tensors="pt")
vectors = model(**batch).last_hidden_state  # (1, 4, {{ hidden_size }})
```

## Where it comes from

| | |
|---|---|
| weights | `{{ weight_file }}`, SHA-256 `{{ weight_sha256 }}` |
| options | `{{ options_file }}`, SHA-256 `{{ options_sha256 }}` |
| converted by | {{ converted_by }} |
| parameters | {{ parameters }} |
| largest relative error against an independent numpy implementation | {{ error }} |

The weights keep the licence under which their authors published them.

## Limits

The model reads words, not sub-words: split text as the training text was split (Moses-like tokens
for the published English models) and do not lowercase it. The layer weights (`mixes`) are equal
until a task learns them.
"""


def model_card(model: ElmoModel, error: float) -> str:
    card = ModelCard.from_template(
        ModelCardData(
            library_name="transformers", tags=["elmo"], pipeline_tag="feature-extraction"
        ),
        template_str=TEMPLATE,
        hidden_size=model.config.hidden_size,
        parameters=f"{model.num_parameters():,}",
        error=f"{error:.1e}",
        **(model.config.provenance or {}),
    )
    return str(card)
