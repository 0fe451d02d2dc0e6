"""The formats of published weights: one module each, all of them turned into the same `Weights`."""

from elmo_hf.conversion.formats import (
    allennlp_archive,
    bilm_hdf5,
    many_langs,
    tensorflow_checkpoint,
    tensorflow_hub,
)
from elmo_hf.conversion.formats._format import Mix, TaggerHead, WeightFormat, Weights

# the first that recognises the files of a model opens them
FORMATS: tuple[WeightFormat, ...] = (
    many_langs.FORMAT,
    tensorflow_hub.FORMAT,
    tensorflow_checkpoint.FORMAT,
    bilm_hdf5.FORMAT,
    allennlp_archive.FORMAT,
)

__all__ = ["FORMATS", "Mix", "TaggerHead", "WeightFormat", "Weights"]
