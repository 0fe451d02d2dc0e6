# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The code that is published with a model, for people who have not installed this package.

With `trust_remote_code=True` transformers runs it from the repository. Where the package is
installed, its own classes are used instead, whatever the repository contains.
"""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from transformers.utils import PushToHubMixin

if TYPE_CHECKING:
    # transformers saves with a model the modules that are imported in this form. With these lines
    # it saves all of them, whichever class it starts from, and a model that was loaded by
    # `trust_remote_code` can be published again.
    from .modeling_elmo import ElmoModel  # noqa: F401
    from .pipeline_elmo import ElmoTokenClassificationPipeline  # noqa: F401
    from .tokenization_elmo import ElmoTokenizer  # noqa: F401

# Every file that is published with a model: what `modeling_elmo` imports, directly or not. They
# stay flat in this folder, because transformers follows imports within one folder only. A test
# compares the list with the imports, so that no file joins it unnoticed.
PUBLISHED_FILES = (
    "bilm_elmo.py",
    "character_tables.py",
    "characters.py",
    "configuration_elmo.py",
    "crf_constraints.py",
    "crf_elmo.py",
    "dictionaries.py",
    "english_splitting.py",
    "extras.py",
    "initial_weights.py",
    "language_model_elmo.py",
    "layers_elmo.py",
    "matrix_products.py",
    "modeling_elmo.py",
    "outputs_elmo.py",
    "packing.py",
    "pipeline_elmo.py",
    "pooling.py",
    "prepared_weights.py",
    "private_interfaces.py",
    "recurrence.py",
    "recurrence_batched.py",
    "recurrence_exportable.py",
    "recurrence_interface.py",
    "recurrence_kernels.py",
    "recurrence_plain.py",
    "recurrence_pointwise.py",
    "recurrence_steps.py",
    "recurrence_prepared.py",
    "recurrence_training.py",
    "remote_code.py",
    "softmax_elmo.py",
    "text_lines.py",
    "text_splitting.py",
    "tokenization_elmo.py",
    "word_encoding.py",
    "word_vocabulary.py",
)

AUTO_CLASSES = {
    "AutoConfig": "configuration_elmo.ElmoConfig",
    "AutoModel": "modeling_elmo.ElmoModel",
    "AutoModelForPreTraining": "modeling_elmo.ElmoForPreTraining",
    "AutoModelForSequenceClassification": "modeling_elmo.ElmoForSequenceClassification",
    "AutoModelForTokenClassification": "modeling_elmo.ElmoForTokenClassification",
}
# for `pipeline(...)` with a tagger, under both names of the task; other tasks need nothing special
TAGGING = {
    "impl": "pipeline_elmo.ElmoTokenClassificationPipeline",
    "pt": ["AutoModelForTokenClassification"],
}
TAGGER_PIPELINES = {"token-classification": TAGGING, "ner": TAGGING}
AUTO_TOKENIZER = {"AutoTokenizer": ["tokenization_elmo.ElmoTokenizer", None]}


def add_code(folder: str | Path) -> None:
    """Adds the modules of all Auto classes to a model folder, and names them in its files."""
    here, folder = Path(__file__).parent, Path(folder)
    for name in PUBLISHED_FILES:
        shutil.copyfile(here / name, folder / name)
    additions = {
        "config": {"auto_map": AUTO_CLASSES},
        "tokenizer_config": {"auto_map": AUTO_TOKENIZER},
    }
    for name, more in additions.items():
        file = folder / f"{name}.json"
        if file.exists():
            settings = json.loads(file.read_text(encoding="utf-8")) | more
            classes = settings.get("architectures") or []
            if name == "config" and "ElmoForTokenClassification" in classes:
                settings["custom_pipelines"] = TAGGER_PIPELINES
            # a symbolic link is replaced, never written through
            file.unlink()
            file.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


class PushesCode(PushToHubMixin):
    """Makes `push_to_hub` upload the code as well."""

    def _upload_modified_files(self, working_dir, *args, **kwargs):
        add_code(working_dir)
        return super()._upload_modified_files(working_dir, *args, **kwargs)
