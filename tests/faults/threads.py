"""Trials of objects that threads share: sixteen threads get what one thread gets."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from faults.judge import Outcome, failure, judge_exception
from helpers.tiny import WIDTH, tiny_config
from transformers import pipeline

from elmo_hf import ElmoEmbedder, ElmoForTokenClassification, ElmoModel, ElmoTagger, ElmoTokenizer

THREADS = 16
CALLS = 200
WORDS = [f"word{number}" for number in range(200)]
Sentences = list[list[str]]
Call = Callable[[Sentences], Any]


def model_call(prepared: bool) -> Call:
    torch.manual_seed(0)
    model = ElmoModel(tiny_config()).eval()
    tokenizer = ElmoTokenizer(max_characters_per_token=WIDTH)
    if prepared:
        model.prepare_for_inference()

    @torch.inference_mode()
    def call(sentences: Sentences) -> list[np.ndarray]:
        batch = tokenizer(sentences, is_split_into_words=True, padding=True, return_tensors="pt")
        return [part.numpy() for part in model(**batch, output_hidden_states=True).hidden_states]

    return call


def tagger_folder(folder: Path) -> str:
    torch.manual_seed(0)
    ElmoForTokenClassification(tiny_config(num_labels=5)).save_pretrained(folder)
    ElmoTokenizer(max_characters_per_token=WIDTH).save_pretrained(folder)
    return str(folder)


def embedder_call(folder: Path) -> Call:
    torch.manual_seed(0)
    embedder = ElmoEmbedder(ElmoModel(tiny_config()).eval())

    def call(sentences: Sentences) -> list[np.ndarray]:
        return list(embedder.embed(sentences))

    return call


def tokenizer_call(folder: Path) -> Call:
    tokenizer = ElmoTokenizer(max_characters_per_token=WIDTH)
    return lambda sentences: [np.array(tokenizer(" ".join(one))["input_ids"]) for one in sentences]


def tagger_call(folder: Path) -> Call:
    tagger = ElmoTagger(tagger_folder(folder))
    return lambda sentences: [(one.tags, np.array(one.scores)) for one in tagger.tag(sentences)]


def pipeline_call(folder: Path) -> Call:
    tag = pipeline("token-classification", tagger_folder(folder), device="cpu")

    def call(sentences: Sentences) -> list:
        found = [tag(" ".join(one)) for one in sentences]
        return [[(one["word"], one["entity"]) for one in some] for some in found]

    return call


SHARED: dict[str, Callable[[Path], Call]] = {
    "ElmoEmbedder": embedder_call,
    "ElmoTokenizer": tokenizer_call,
    "ElmoModel": lambda folder: model_call(prepared=False),
    "ElmoModel prepared": lambda folder: model_call(prepared=True),
    "ElmoTagger": tagger_call,
    "pipeline": pipeline_call,
}


def draw_calls(draw: Random, count: int, sentences: int = 3) -> list[Sentences]:
    """Batches whose words are partly the same, so that caches are hit and missed."""
    return [
        [draw.choices(WORDS, k=draw.randint(1, 9)) for _ in range(sentences)] for _ in range(count)
    ]


def wrong_calls(call: Call, batches: Sequence[Sentences], threads: int = THREADS) -> int:
    """How many calls get something else in threads than alone."""
    alone = [call(batch) for batch in batches]
    with ThreadPoolExecutor(threads) as pool:
        together = list(pool.map(call, batches))
    return sum(not same(one, other) for one, other in zip(together, alone, strict=True))


def same(one: Any, other: Any) -> bool:
    """Bit by bit, but for the last bits of vectors, which depend on what a cache held before."""
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        scale = np.abs(other).max(initial=0)
        return one.shape == other.shape and np.allclose(one, other, rtol=0, atol=1e-6 * scale)
    return bool(one == other)


class Threads:
    """One shared object; every trial makes it anew."""

    def __init__(self, name: str, folder: Path):
        self.make, self.folder = SHARED[name], folder

    def trial(self, draw: Random, number: int) -> tuple[Outcome, str]:
        text = f"{CALLS} calls in {THREADS} threads"
        try:
            call = self.make(self.folder / "shared")
            wrong = wrong_calls(call, draw_calls(draw, CALLS))
        except Exception as error:
            outcome = judge_exception(error)
            return (outcome if outcome.failed else failure("an error", outcome.text)), text
        return failure("wrong in threads", f"{wrong} wrong") if wrong else Outcome(
            "equal", ""
        ), text
