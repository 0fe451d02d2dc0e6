# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""A model folder goes to the Hub: weights, configuration, tokenizer, card, and the code."""

from pathlib import Path
from tempfile import TemporaryDirectory

from huggingface_hub import HfApi, ModelCard, ModelCardData
from huggingface_hub.errors import (
    HfHubHTTPError,
    HFValidationError,
    LocalTokenNotFoundError,
)

from elmo_hf.configuration_elmo import ElmoConfig
from elmo_hf.remote_code import AUTO_CLASSES, add_code

# what a model needs; checkpoints, caches and reports of a training run stay at home
PUBLISHED = (
    "config.json",
    "*.safetensors",
    "*.safetensors.index.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "lm_vocabulary.txt",
    "README.md",
    "all_results.json",
)
# what the Hub files a model under
PIPELINE_TAGS = {
    "ElmoModel": "feature-extraction",
    "ElmoForTokenClassification": "token-classification",
    "ElmoForSequenceClassification": "text-classification",
}


def publish(folder: str | Path, repo: str, private: bool = False) -> str:
    """Creates the repository if need be, uploads in one commit, and returns its address."""
    folder = Path(folder)
    if not (folder / "config.json").exists():
        raise FileNotFoundError(f"{str(folder)!r} is no model folder: it has no config.json.")
    index = folder / "model.safetensors.index.json"
    if index.exists() and "../" in index.read_text(encoding="utf-8"):
        raise ValueError(
            f"{str(folder)!r} has a part of its weights in another folder; load the model and push "
            "what `save_pretrained` makes of it."
        )
    api = HfApi()
    with TemporaryDirectory() as name:
        staging = Path(name)
        for pattern in PUBLISHED:
            for file in folder.glob(pattern):
                (staging / file.name).symlink_to(file.resolve())
        add_code(staging)
        if not (staging / "README.md").exists():
            (staging / "README.md").write_text(plain_card(folder, repo), encoding="utf-8")
        try:
            # who may not write learns it here, in a sentence, before anything is sent
            api.whoami()
            address = api.create_repo(repo, private=private, exist_ok=True)
            api.upload_folder(folder_path=staging, repo_id=address.repo_id)
        except (HfHubHTTPError, LocalTokenNotFoundError) as error:
            response = getattr(error, "response", None)
            if response is None or response.status_code in (401, 403):
                raise PermissionError(
                    f"The Hub lets nobody write to {repo!r} with this token, or without one; log "
                    "in with `hf auth login`, or set HF_TOKEN to a token that may write."
                ) from None
            raise OSError(f"The Hub did not take {repo!r}: {first_line(error)}.") from error
        except HFValidationError:
            # a name that no repository may have; it says so
            raise
        except Exception as error:
            # a connection that breaks has an exception of the client's own
            raise OSError(
                f"The push to {repo!r} was interrupted ({first_line(error)}); nothing there has "
                "changed, and the same command tries again."
            ) from error
    return str(address)


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def plain_card(folder: Path, repo: str) -> str:
    """For a folder that has no card of its own."""
    [kind] = (ElmoConfig.from_pretrained(folder).architectures or ["ElmoModel"])[:1]
    names = {path.rpartition(".")[2]: name for name, path in AUTO_CLASSES.items()}
    auto = names.get(kind, "AutoModel")
    data = ModelCardData(
        library_name="transformers", tags=["elmo"], pipeline_tag=PIPELINE_TAGS.get(kind)
    )
    text = f"""---
{data.to_yaml()}
---

# {repo}

An ELMo model ([Peters et al. 2018](https://arxiv.org/abs/1802.05365)) of class `{kind}`.

```python
from transformers import {auto}, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{repo}", trust_remote_code=True)
model = {auto}.from_pretrained("{repo}", trust_remote_code=True)
```
"""
    return str(ModelCard(text))
