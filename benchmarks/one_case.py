"""One measurement of one checkout of elmo_hf, in a process of its own; see `old_and_new.py`.

    PYTHONPATH=CHECKOUT python benchmarks/one_case.py CASE --models FOLDER --text sentences.txt

The last line printed is JSON: the seconds of the fastest repeat. It uses only names that every
version of the package has.
"""

import argparse
import json
import runpy
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

import elmo_hf
from elmo_hf import (
    ElmoConfig,
    ElmoEmbedder,
    ElmoForPreTraining,
    ElmoForTokenClassification,
    ElmoModel,
    ElmoTokenizer,
)

# Fields of ElmoConfig; the filters and the other fields of both published sizes are the defaults.
SIZES: dict[str, dict[str, Any]] = {
    "small": {"cell_size": 1024, "projection_size": 128, "num_highway_layers": 1},
    "original": {"cell_size": 4096, "projection_size": 512, "num_highway_layers": 2},
}
LABELS, LM_WORDS, NEGATIVES, LM_STEPS = 17, 10_000, 1024, 20
# A case's work per repeat, and how often it is repeated after one repeat that is not measured.
Case = tuple[Callable[[], object], int]


def make_models(folder: Path) -> None:
    """Random weights of the published sizes."""
    for name, size in SIZES.items():
        torch.manual_seed(0)
        ElmoModel(ElmoConfig(**size)).save_pretrained(folder / name)
        ElmoTokenizer().save_pretrained(folder / name)
    config = ElmoConfig(
        **SIZES["small"], lm_vocab_size=LM_WORDS, num_negative_samples=NEGATIVES, hidden_dropout=0.1
    )
    ElmoForPreTraining(config).save_pretrained(folder / "pretraining")
    ElmoTokenizer().save_pretrained(folder / "pretraining")


def embedding(size: str, batch: int, count: int, repeats: int):
    """The model on words, tokenised and padded batch by batch."""

    def prepare(models: Path, sentences: list[list[str]]) -> Case:
        model = ElmoModel.from_pretrained(models / size).prepare_for_inference()
        tokenizer = ElmoTokenizer.from_pretrained(models / size)

        @torch.inference_mode()
        def work() -> None:
            for start in range(0, count, batch):
                some = sentences[start : min(start + batch, count)]
                model(
                    **tokenizer(some, is_split_into_words=True, padding=True, return_tensors="pt")
                )

        return work, repeats

    return prepare


def corpus(models: Path, sentences: list[list[str]]) -> Case:
    """`ElmoEmbedder`, each repeat with a new one, which remembers no words."""
    repeats, count = 4, 384
    embedders = [ElmoEmbedder(str(models / "small")) for _ in range(repeats + 1)]
    return lambda: embedders.pop().embed(sentences[:count]), repeats


def tagger_step(models: Path, sentences: list[list[str]]) -> Case:
    """Forward, backward and an update of all weights."""
    model = ElmoForTokenClassification.from_pretrained(models / "small", num_labels=LABELS).train()
    tokenizer = ElmoTokenizer.from_pretrained(models / "small")
    batch = tokenizer(sentences[:32], is_split_into_words=True, padding=True, return_tensors="pt")
    labels = torch.randint(LABELS, batch["attention_mask"].shape)
    labels[batch["attention_mask"] == 0] = -100
    return training_step(model, dict(**batch, labels=labels)), 5


def pretraining_step(models: Path, sentences: list[list[str]]) -> Case:
    """Both directions of 32 rows of text, sampled softmax, and an update of all weights."""
    model = ElmoForPreTraining.from_pretrained(models / "pretraining").train()
    tokenizer = ElmoTokenizer.from_pretrained(models / "pretraining")
    words = [word for sentence in sentences for word in sentence]
    rows = [words[start : start + LM_STEPS] for start in range(0, 32 * LM_STEPS, LM_STEPS)]
    inputs = {}
    for suffix, some in (("", rows), ("_backward", [row[::-1] for row in rows])):
        encoded = tokenizer(some, is_split_into_words=True, return_tensors="pt")
        inputs[f"input_ids{suffix}"] = encoded["input_ids"]
        inputs[f"labels{suffix}"] = torch.randint(LM_WORDS, (32, LM_STEPS))
    return training_step(model, inputs), 5


def training_step(model, inputs: dict) -> Callable[[], None]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def work() -> None:
        model(**inputs).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return work


def program(name: str, *arguments: str):
    """
    A whole program, from reading its files to writing its results: a script of the checkout, or
    `elmo-hf` with a command. `TEXT`, `SMALL` and `OUTPUT` in its arguments are a text, a model and
    a new file or folder.
    """

    def prepare(models: Path, sentences: list[list[str]]) -> Case:
        text = models / "sentences.txt"
        text.write_text("".join(" ".join(words) + "\n" for words in sentences), encoding="utf-8")
        examples = Path(elmo_hf.__file__).resolve().parents[1] / "examples"

        def work() -> None:
            with TemporaryDirectory() as folder, redirect_stderr(StringIO()):
                places = {"TEXT": text, "SMALL": models / "small", "OUTPUT": Path(folder, "o.npy")}
                sys.argv = [name, *(str(places.get(part, part)) for part in arguments)]
                with redirect_stdout(StringIO()), suppress(SystemExit):
                    if name == "elmo-hf":
                        runpy.run_module("elmo_hf", run_name="__main__")
                    else:
                        runpy.run_path(str(examples / name), run_name="__main__")
                if not places["OUTPUT"].exists():
                    raise RuntimeError(f"{name} has written nothing.")

        return work, 2

    return prepare


# The number behind a size is that of the sentences in a batch.
CASES = {
    "small-32": embedding("small", 32, count=160, repeats=5),
    "small-1": embedding("small", 1, count=40, repeats=5),
    "original-32": embedding("original", 32, count=32, repeats=3),
    "original-1": embedding("original", 1, count=6, repeats=3),
    "corpus": corpus,
    "tagger-step": tagger_step,
    "pretraining-step": pretraining_step,
    "elmo-hf-embed": program("elmo-hf", "embed", "TEXT", "--model", "SMALL", "--output", "OUTPUT"),
    "run_pos": program("run_pos.py", "--output_dir", "OUTPUT", "--num_train_epochs", "5"),
    "run_pretrain": program(
        *("run_pretrain.py", "--train_file", "TEXT", "--output_dir", "OUTPUT", "--preset", "tiny"),
        *("--max_train_steps", "60", "--checkpointing_steps", "20"),
    ),
}


def measure(case: str, models: Path, text: Path) -> float:
    lines = text.read_text(encoding="utf-8").splitlines()
    torch.manual_seed(0)
    work, repeats = CASES[case](models, [line.split() for line in lines if line.split()])
    times = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    # the first repeat warms up
    return min(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=["make-models", *CASES])
    parser.add_argument("--models", type=Path, required=True, help="a folder for the models")
    parser.add_argument("--text", type=Path, help="one tokenised sentence per line")
    args = parser.parse_args()
    result = {"package": str(Path(elmo_hf.__file__).resolve().parent)}
    if args.case == "make-models":
        make_models(args.models)
        print(json.dumps(result))
    else:
        print(json.dumps({**result, "seconds": measure(args.case, args.models, args.text)}))


if __name__ == "__main__":
    main()
