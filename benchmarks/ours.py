"""One measurement of elmo_hf in a process of its own; ends with one line of JSON.

    python benchmarks/ours.py embed --model elmo --text sentences.txt --sentences 256 --batch 32
    python benchmarks/ours.py train --model elmo --text sentences.txt --sentences 128 --batch 32

`embed` goes from words to vectors, tokenisation included, no sentence twice, with
`prepare_for_inference`. `corpus` does so with `ElmoEmbedder`, which batches and remembers words
as it likes, all layers. `train` is forward and backward of a tagger with 17 labels on the unfrozen
biLM: no optimizer, random labels, no dropout. `compare.py` calls this and the peers in turn.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmo_hf import ElmoEmbedder, ElmoForTokenClassification, ElmoModel, ElmoTokenizer
from elmo_hf.matrix_products import product


def read_sentences(path: Path, count: int) -> list[list[str]]:
    with path.open(encoding="utf-8") as lines:
        return [line.split() for line in lines if line.strip()][:count]


def product_peak(size: int = 1536, rounds: int = 9) -> float:
    """Floating-point operations per second of a large matrix product on this machine, just now."""
    # by whichever library the model uses
    a, b = torch.randn(1, size, size), torch.randn(1, size, size)
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        product(a, b)
        times.append(time.perf_counter() - started)
    return 2 * size**3 / statistics.median(times)


def lstm_operations(config, tokens: int) -> float:
    """Floating-point operations of the biLSTM's own products, each token multiplied by itself."""
    inputs = 2 * config.projection_size * 4 * config.cell_size
    projection = config.cell_size * config.projection_size if config.use_cell_projection else 0
    return 2.0 * (inputs + projection) * 2 * config.num_hidden_layers * tokens


def batches(sentences: list, size: int, by_length: bool) -> list[list]:
    if by_length:
        sentences = sorted(sentences, key=len)
    return [sentences[start : start + size] for start in range(0, len(sentences), size)]


def corpus(args, sentences: list[list[str]]) -> dict:
    started = time.perf_counter()
    embedder = ElmoEmbedder(args.model)
    load_seconds = time.perf_counter() - started
    embedder.embed(sentences[:2])
    # without the two sentences' words
    embedder.forget_words()
    started = time.perf_counter()
    for _ in embedder.embed_stream(sentences):
        pass
    seconds = time.perf_counter() - started
    # the last boundary of either direction is not read
    figures = measures(embedder.model.config, sentences, 1, seconds, load_seconds)
    if args.out:
        few = embedder.embed(sentences[:16])
        np.savez(args.out, **{f"s{i}": layers for i, layers in enumerate(few)})
    return figures


def measures(
    config, sentences: list[list[str]], boundaries: int, seconds: float, load_seconds: float
) -> dict:
    """Times, and the share of the machine's peak that the biLSTM's products come to."""
    figures = {"seconds": seconds, "load_seconds": load_seconds}
    figures["product_peak_gflops"] = product_peak() / 1e9
    tokens = sum(map(len, sentences)) + boundaries * len(sentences)
    operations = lstm_operations(config, tokens)
    figures["share_of_peak"] = operations / seconds / 1e9 / figures["product_peak_gflops"]
    return figures


def embed(args, sentences: list[list[str]]) -> dict:
    started = time.perf_counter()
    model = ElmoModel.from_pretrained(args.model)
    load_seconds = time.perf_counter() - started
    if not args.plain:
        model.prepare_for_inference()
    model.eval()
    tokenizer = ElmoTokenizer.from_pretrained(args.model)

    def run(batch, **options):
        words = tokenizer(batch, is_split_into_words=True, padding=True, return_tensors="pt")
        with torch.inference_mode():
            return model(**words, **options)

    run(sentences[:2])
    started = time.perf_counter()
    for batch in batches(sentences, args.batch, args.sort):
        run(batch)
    seconds = time.perf_counter() - started
    figures = measures(model.config, sentences, 2, seconds, load_seconds)
    if args.out:
        # in one batch, as users run it, while the peer reads them one by one
        few = sentences[:16]
        layers = torch.stack(run(few, output_hidden_states=True).hidden_states)
        arrays: dict[str, Any] = {
            f"s{i}": layers[:, i, : len(s)].numpy() for i, s in enumerate(few)
        }
        np.savez(args.out, **arrays)
    return figures


def train(args, sentences: list[list[str]]) -> dict:
    model = ElmoForTokenClassification.from_pretrained(
        args.model, num_labels=17, classifier_dropout=0.0
    ).train()
    tokenizer = ElmoTokenizer.from_pretrained(args.model)
    groups = batches(sentences, args.batch, args.sort)
    started = 0.0
    for number, batch in enumerate([groups[0], *groups]):
        if number == 1:
            started = time.perf_counter()
        words = tokenizer(batch, is_split_into_words=True, padding=True, return_tensors="pt")
        labels = torch.randint(17, words["attention_mask"].shape)
        labels[words["attention_mask"] == 0] = -100
        model(**words, labels=labels).loss.backward()
        model.zero_grad()
    return {"seconds": time.perf_counter() - started}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["corpus", "embed", "train"])
    parser.add_argument("--model", type=Path, required=True, help="an ELMo folder")
    parser.add_argument("--text", type=Path, required=True, help="one tokenised sentence per line")
    parser.add_argument("--sentences", type=int, default=256, help="how many of its lines to use")
    parser.add_argument("--batch", type=int, default=32, help="sentences per batch")
    parser.add_argument("--sort", action="store_true", help="batch sentences of like length")
    parser.add_argument("--plain", action="store_true", help="without prepare_for_inference")
    parser.add_argument("--out", type=Path, help="an .npz file for the first sentences' layers")
    args = parser.parse_args()
    sentences = read_sentences(args.text, args.sentences)
    figures = {"corpus": corpus, "embed": embed, "train": train}[args.command](args, sentences)
    words = sum(map(len, sentences))
    print(json.dumps({**figures, "words": words, "words_per_second": words / figures["seconds"]}))


if __name__ == "__main__":
    main()
