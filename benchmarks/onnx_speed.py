"""The ONNX file of a model beside the model: size, words per second, and what int8 would give.

    python benchmarks/onnx_speed.py --model elmo --text sentences.txt --output onnx.json

Words in, all layers out, tokenisation included: torch with `prepare_for_inference`, onnxruntime on
the float32 export, and onnxruntime on the same file with its products' weights in int8
(`quantize_dynamic`). All three in one process, alternating; medians of the rounds, and for int8
the cosines of the words' vectors with torch's, layer by layer.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime
import torch
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
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, help="a JSON file for all of the figures")
    args = parser.parse_args()
    sentences = read_sentences(args.text, args.sentences)
    tokenizer = ElmoTokenizer.from_pretrained(args.model)
    report: dict = {"sentences": len(sentences), "rounds": args.rounds, "batches": {}}

    def encode(batch: list[list[str]]) -> dict[str, torch.Tensor]:
        return dict(tokenizer(batch, is_split_into_words=True, padding=True, return_tensors="pt"))

    with TemporaryDirectory() as folder:
        whole, small = Path(folder) / "float32.onnx", Path(folder) / "int8.onnx"
        write_onnx(PaddedElmo(ElmoModel.from_pretrained(args.model)), whole)
        write_int8(whole, small)
        report["megabytes"] = {file.stem: file.stat().st_size / 1e6 for file in (whole, small)}
        sides = {
            "torch": in_torch(ElmoModel.from_pretrained(args.model).prepare_for_inference()),
            "float32": in_onnxruntime(whole),
            "int8": in_onnxruntime(small),
        }
    for size in args.batch:
        groups = batches(sentences, size, by_length=False)
        speeds: dict[str, list[float]] = {name: [] for name in sides}
        for run in sides.values():
            run(encode(groups[0]))
        for _ in range(args.rounds):
            for name, run in sides.items():
                started = time.perf_counter()
                for group in groups:
                    run(encode(group))
                seconds = time.perf_counter() - started
                speeds[name].append(sum(map(len, sentences)) / seconds)
        report["batches"][size] = {name: statistics.median(all_) for name, all_ in speeds.items()}
        print(size, {name: round(speed) for name, speed in report["batches"][size].items()})
    found = []
    for group in batches(sentences, 32, by_length=False):
        words = encode(group)
        mask = words["attention_mask"].bool().numpy()
        found.append(cosines(sides["torch"](words), sides["int8"](words), mask))
    together = np.concatenate(found, axis=1)
    report["int8_cosine"] = {
        "mean": together.mean(axis=1).tolist(),
        "lowest": together.min(axis=1).tolist(),
    }
    print(json.dumps({name: report[name] for name in ("megabytes", "int8_cosine")}))
    if args.output:
        args.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
