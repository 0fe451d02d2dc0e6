# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Optional libraries: which of our extras installs each, and one message if it is missing."""

import importlib
from typing import Any

EXTRAS = {
    "accelerate": "train",
    "datasets": "train",
    "evaluate": "train",
    "h5py": "conversion",
    "matplotlib": "plot",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
    "pyarrow": "train",
    "pyspark": "spark",
    "ray": "ray",
    "sacremoses": "moses",
    "seqeval": "ner",
    "spacy": "spacy",
}


def require(module: str, purpose: str) -> Any:
    """
    Imports a module that may need an extra. `purpose` begins the message of the error if the
    library is missing, as in "Writing hdf5".
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        library = (error.name or module).partition(".")[0]
        if library not in EXTRAS:
            raise
        raise ImportError(
            f"{purpose} requires {library}: pip install 'elmo_hf[{EXTRAS[library]}]'"
        ) from error
