"""Models for other runtimes: ONNX files, and the network in a form that exporters can trace."""

from elmo_hf.export.onnx import write_model, write_onnx
from elmo_hf.export.padded import PaddedElmo

__all__ = ["PaddedElmo", "write_model", "write_onnx"]
