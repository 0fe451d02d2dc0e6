"""The formats of published weights: one module each, all of them turned into the same `Weights`."""

from elmo_hf.conversion.formats import bilm_hdf5, many_langs
from elmo_hf.conversion.formats._format import Mix, WeightFormat, Weights

# the first that recognises the files of a model opens them
FORMATS: tuple[WeightFormat, ...] = (many_langs.FORMAT, bilm_hdf5.FORMAT)

__all__ = ["FORMATS", "Mix", "WeightFormat", "Weights"]
