"""Make the bundled model and all its figures: one command, which resumes.

    python examples/bundled_model/make.py --data corpora --output_dir outputs/bundled

Every step is a command of its own, which is printed and can be run alone; its result is a file. A
step whose result is there is skipped, and an interrupted training resumes: repeat the command to go
on. To make a step anew, remove its result, and the results of the steps that use it.

Nothing in the package changes. In the end `outputs/bundled/table.md` has the figures, beside those
of the model that was in the package and of a random biLM, and `outputs/bundled/model` is the new
folder `elmo_hf/bundled_model`. `--list` shows all steps.
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from elmo_hf import bundled_model
from elmo_hf.system import new_folder, run_program

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent
VOCABULARY_SIZE = 100_000
# each of them reads with one thread
PROCESSES = 2
PRETRAINING = ["--num_train_epochs", "1", "--checkpointing_steps", "1000"]
LINEAR = ["--task_lstm_size", "0", "--dropout", "0"]
# the heads that are trained on English, by the names of their folders
HEADS = {
    "layer-0": [*LINEAR, "--layers", "0"],
    "layer-1": [*LINEAR, "--layers", "1"],
    "layer-2": [*LINEAR, "--layers", "2"],
    "mix": LINEAR,
    "all-layers": [*LINEAR, "--layers", "all"],
    "bilstm": ["--num_train_epochs", "12", "--patience", "4"],
    "finetuned": ["--finetune_bilm", "--num_train_epochs", "8"],
}
# those that are measured on raw text as well
ON_RAW_TEXT = ("mix", "all-layers", "bilstm", "finetuned")
# other tasks: a corpus, and what else to pass
OTHERS = {
    "names": ("wnut17", ["--task", "ner"]),
    "vietnamese": ("ud_vietnamese_vtb", []),
    "vietnamese-finetuned": (
        "ud_vietnamese_vtb",
        ["--finetune_bilm", "--num_train_epochs", "25"],
    ),
}
# the training, validation and test file of each corpus
TAGGED = {
    "ud_english_ewt": [f"en_ewt-ud-{split}.conllu" for split in ("train", "dev", "test")],
    "ud_vietnamese_vtb": [f"vi_vtb-ud-{split}.conllu" for split in ("train", "dev", "test")],
    "wnut17": ["wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"],
}
ENGLISH = "ud_english_ewt"
HELD_OUT = ("wikitext-2-test", "ewt-dev", "prose-test")


class Step(NamedTuple):
    """A command, and the file that is there when it has succeeded."""

    result: Path
    command: list[str]


def program(path: Path, *arguments: object) -> list[str]:
    """A command that runs one of the scripts."""
    return [sys.executable, str(path), *map(str, arguments)]


def launched(path: Path, *arguments: object) -> list[str]:
    """The same in several processes on this machine's CPU."""
    launcher = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu"]
    launcher += ["--num_machines", "1", "--num_processes", str(PROCESSES)]
    launcher += ["--mixed_precision", "no", "--dynamo_backend", "no"]
    return [*launcher, str(path), *map(str, arguments)]


def elmo_hf(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "elmo_hf", *map(str, arguments)]


def make_model(data: Path, output: Path) -> Iterator[Step]:
    """From text to the packed biLM."""
    text, vocabulary, bilm = output / "text", output / "vocabulary.txt", output / "bilm"
    train = text / "train" / "*.txt"
    yield Step(
        text / "sources.tsv",
        program(HERE / "prepare_text.py", "--data", data, "--output_dir", text),
    )
    size = ["--max-size", VOCABULARY_SIZE]
    yield Step(
        vocabulary, elmo_hf("vocab", train, "--split", "english", *size, "--output", vocabulary)
    )
    texts = ["--train_file", train, "--validation_file", text / "ewt-dev.txt"]
    shape = ["--config_overrides", HERE / "bilm.json", "--vocab_file", vocabulary]
    yield Step(
        bilm / "all_results.json",
        launched(
            EXAMPLES / "run_pretrain.py",
            *texts,
            *("--split", "english"),
            *shape,
            *PRETRAINING,
            *("--output_dir", bilm),
        ),
    )
    yield Step(
        output / "model" / "model.safetensors",
        program(HERE / "pack.py", "bilm", bilm, "--folder", output / "model"),
    )
    held_out = [text / f"{name}.txt" for name in HELD_OUT]
    yield Step(
        output / "perplexity.json",
        program(
            HERE / "measure_perplexity.py",
            bilm,
            *held_out,
            "--output_file",
            output / "perplexity.json",
        ),
    )


def measure_model(data: Path, output: Path, name: str) -> Iterator[Step]:
    """All taggers on one biLM, which is a folder of the output, and the senses of its words."""
    model, folder = output / name, output / "figures" / name
    senses = folder / "senses"
    yield Step(
        senses / "senses.json",
        program(
            EXAMPLES / "word_senses.py",
            *("--model_name_or_path", model),
            *("--output_dir", senses),
        ),
    )
    runs = {head: (ENGLISH, options) for head, options in HEADS.items()} | OTHERS
    for run, (corpus, options) in runs.items():
        files = [data / corpus / file for file in TAGGED[corpus]]
        splits = zip(("--train_file", "--validation_file", "--test_file"), files, strict=True)
        yield Step(
            folder / run / "all_results.json",
            program(
                EXAMPLES / "run_pos.py",
                *("--model_name_or_path", model),
                *(part for split in splits for part in split),
                # a frozen biLM reads a corpus once for all its heads
                *("--cache_dir", output / "features"),
                *options,
                *("--output_dir", folder / run),
            ),
        )
        for split, gold in zip(("dev", "test"), files[1:], strict=True):
            if run in ON_RAW_TEXT:
                figures = folder / run / f"raw-{split}.json"
                tagger = ["--model", folder / run, "--output", figures]
                yield Step(figures, elmo_hf("evaluate", gold, "--raw", *tagger))


def all_steps(data: Path, output: Path) -> Iterator[Step]:
    yield from make_model(data, output)
    yield from measure_model(data, output, "model")
    for task, run in (("upos", "bilstm"), ("ner", "names")):
        packing = ["--task", task, "--folder", output / "model"]
        yield Step(
            output / "model" / f"{task}.safetensors",
            program(HERE / "pack.py", "tagger", output / "figures" / "model" / run, *packing),
        )
    yield Step(
        output / "untrained" / "config.json",
        program(
            EXAMPLES / "random_model.py",
            *("--model_name_or_path", output / "model"),
            *("--output_dir", output / "untrained"),
        ),
    )
    for name in ("untrained", "before"):
        yield from measure_model(data, output, name)
    yield Step(
        output / "model" / "README.md",
        program(HERE / "write_figures.py", output),
    )


def keep_model_before(folder: Path) -> None:
    """A copy of the model in the package, which the new one is to replace."""
    if folder.exists():
        return
    with new_folder(folder, overwrite=False) as building:
        for path in Path(bundled_model()).iterdir():
            (building / path.name).write_bytes(path.read_bytes())


def run(step: Step, heading: str) -> None:
    print(f"\n{heading} {shlex.join(step.command)}", flush=True)
    started = time.monotonic()
    # the launcher asks for this instead of GPUs
    environment = os.environ | {"ACCELERATE_USE_CPU": "true"}
    code = subprocess.run(step.command, env=environment, check=False).returncode
    if code or not step.result.exists():
        raise ValueError(
            f"The step that makes {str(step.result)!r} failed; repair what it complains of, and "
            "repeat the command."
        )
    print(f"done in {(time.monotonic() - started) / 60:.1f} minutes", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of the corpora")
    parser.add_argument("--output_dir", type=Path, required=True, help="where everything is made")
    parser.add_argument("--list", action="store_true", help="show all steps and do nothing")
    args = parser.parse_args()
    steps = list(all_steps(args.data.resolve(), args.output_dir.resolve()))
    if not args.list:
        keep_model_before(args.output_dir / "before")
    for number, step in enumerate(steps, start=1):
        heading = f"[{number}/{len(steps)}]"
        if args.list:
            done = "done" if step.result.exists() else "    "
            print(heading, done, shlex.join(step.command))
        elif not step.result.exists():
            run(step, heading)


if __name__ == "__main__":
    run_program(main)
