"""The ONNX file of a model beside the model: size, words per second, and what int8 would give.

    python benchmarks/onnx_speed.py --batch 32 --text sentences.txt

Words in, all layers out, tokenisation included: torch with `prepare_for_inference`, onnxruntime on
the float32 export, and onnxruntime on the same file with its products' weights in int8
(`quantize_dynamic`). All three alternate in one process. For int8 the last figures are the cosines
of the words' vectors with torch's, the mean and the lowest of all layers.
"""

import argparse
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime
import torch
from measuring import alternate, report, timed
from onnxruntime.quantization import QuantType, quantize_dynamic
from ours import batches, read_sentences

from elmo_hf import ElmoModel, ElmoTokenizer
from elmo_hf.export.onnx import INPUTS, write_onnx
from elmo_hf.export.padded import PaddedElmo
from elmo_hf.hub.bundled import find_model

# (batch, layers, words, hidden_size) of a batch's words
Layers = Callable[[dict[str, torch.Tensor]], np.ndarray]


def in_torch(model: ElmoModel) -> Layers:
    def run(words: dict[str, torch.Tensor]) -> np.ndarray:
        with torch.inference_mode():
            layers = model(**words, output_hidden_states=True).hidden_states
        return torch.stack(layers, dim=1).numpy()

    return run


def in_onnxruntime(file: Path) -> Layers:
    session = onnxruntime.InferenceSession(file)

    def run(words: dict[str, torch.Tensor]) -> np.ndarray:
        return session.run(["hidden_states"], {name: words[name].numpy() for name in INPUTS})[0]

    return run


def write_int8(whole: Path, small: Path) -> None:
    """All products, those of the time loops included; convolutions stay."""
    model = onnx.load(whole)
    # the quantiser infers them anew, and would stumble over transposed weights
    del model.graph.value_info[:]
    quantize_dynamic(
        model,
        small,
        op_types_to_quantize=["MatMul", "Gemm"],
        per_channel=True,
        weight_type=QuantType.QInt8,
        extra_options={"EnableSubgraph": True},
    )


def cosines(ours: np.ndarray, theirs: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Of the vectors of every word, (layers, words)."""
    norms = np.linalg.norm(ours, axis=-1) * np.linalg.norm(theirs, axis=-1)
    found = (ours * theirs).sum(-1) / np.maximum(norms, 1e-12)
    return found.transpose(1, 0, 2)[:, mask]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=find_model, default="bundled")
    parser.add_argument("--text", type=Path, required=True, help="one tokenised sentence per line")
    parser.add_argument("--sentences", type=int, default=256, help="how many of its lines to use")
    parser.add_argument("--batch", type=int, default=32, help="sentences per batch")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    sentences = read_sentences(args.text, args.sentences)
    groups = batches(sentences, args.batch, by_length=False)
    tokenizer = ElmoTokenizer.from_pretrained(args.model)

    def encode(batch: list[list[str]]) -> dict[str, torch.Tensor]:
        return dict(tokenizer(batch, is_split_into_words=True, padding=True, return_tensors="pt"))

    def read_all(layers: Layers) -> None:
        for group in groups:
            layers(encode(group))

    with TemporaryDirectory() as folder:
        whole, small = Path(folder) / "float32.onnx", Path(folder) / "int8.onnx"
        write_onnx(PaddedElmo(ElmoModel.from_pretrained(args.model)), whole)
        write_int8(whole, small)
        sizes = {file.stem: file.stat().st_size / 1e6 for file in (whole, small)}
        layers = {
            "torch": in_torch(ElmoModel.from_pretrained(args.model).prepare_for_inference()),
            "onnx float32": in_onnxruntime(whole),
            "onnx int8": in_onnxruntime(small),
        }
    for run in layers.values():
        run(encode(groups[0]))
    words = sum(map(len, sentences))
    sides = {name: timed(partial(read_all, run), words) for name, run in layers.items()}
    figures = alternate(sides, args.rounds)
    for stem, megabytes in sizes.items():
        figures[f"onnx {stem}"]["megabytes"] = [megabytes]
    found = compare_vectors(layers["torch"], layers["onnx int8"], map(encode, groups))
    figures["onnx int8"] |= {
        "mean_cosine": [float(found.mean())],
        "lowest_cosine": [float(found.min())],
    }
    report(figures)


def compare_vectors(ours: Layers, theirs: Layers, encoded: Iterable) -> np.ndarray:
    """The cosines of all words' vectors, (layers, words)."""
    found = []
    for words in encoded:
        mask = words["attention_mask"].bool().numpy()
        found.append(cosines(ours(words), theirs(words), mask))
    return np.concatenate(found, axis=1)


if __name__ == "__main__":
    main()
