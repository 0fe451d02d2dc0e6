# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The code that a published model carries, for people who have not installed this package.

With `trust_remote_code=True` transformers runs it from the repository; who has the package loads
its own classes, whatever lies there.
"""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from transformers.dynamic_module_utils import get_relative_import_files
from transformers.utils import PushToHubMixin

if TYPE_CHECKING:
    # transformers keeps with a model the modules that it finds named so: then it has all of them,
    # and can be published again by who has not installed this package
    from .pipeline_elmo import ElmoTokenClassificationPipeline  # noqa: F401
    from .tokenization_elmo import ElmoTokenizer  # noqa: F401

AUTO_CLASSES = {
    "AutoConfig": "configuration_elmo.ElmoConfig",
    "AutoModel": "modeling_elmo.ElmoModel",
    "AutoModelForPreTraining": "modeling_elmo.ElmoForPreTraining",
    "AutoModelForSequenceClassification": "modeling_elmo.ElmoForSequenceClassification",
    "AutoModelForTokenClassification": "modeling_elmo.ElmoForTokenClassification",
}
# for `pipeline(...)` with a tagger, by both names of the task; the others' own serve as they are
TAGGING = {
    "impl": "pipeline_elmo.ElmoTokenClassificationPipeline",
    "pt": ["AutoModelForTokenClassification"],
}
TAGGER_PIPELINES = {"token-classification": TAGGING, "ner": TAGGING}
AUTO_TOKENIZER = {"AutoTokenizer": ["tokenization_elmo.ElmoTokenizer", None]}


def add_code(folder: str | Path) -> None:
    """Puts the modules of all Auto classes into a model folder, and says so in its files."""
    module, folder = Path(__file__).parent / "modeling_elmo.py", Path(folder)
    for source in (module, *map(Path, get_relative_import_files(module))):
        shutil.copyfile(source, folder / source.name)
    additions = {
        "config": {"auto_map": AUTO_CLASSES},
        "tokenizer_config": {"auto_map": AUTO_TOKENIZER},
    }
    for name, more in additions.items():
        file = folder / f"{name}.json"
        if file.exists():
            settings = json.loads(file.read_text(encoding="utf-8")) | more
            if "ElmoForTokenClassification" in settings.get("architectures", []):
                settings["custom_pipelines"] = TAGGER_PIPELINES
            # a link of the folder's own is replaced, never written through
            file.unlink()
            file.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


class PushesCode(PushToHubMixin):
    """Has `push_to_hub` take the code along."""

    def _upload_modified_files(self, working_dir, *args, **kwargs):
        add_code(working_dir)
        return super()._upload_modified_files(working_dir, *args, **kwargs)
