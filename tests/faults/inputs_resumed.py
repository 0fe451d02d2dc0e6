"""What an interrupted run left for the next one: chunks, cached layers, checkpoints."""

import pickle
import shutil
from collections.abc import Iterator
from fnmatch import fnmatch
from io import BytesIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from accelerate import Accelerator
from datasets import Dataset
from faults.children import call_program
from faults.corruptions import missing
from faults.crafted import Trap
from faults.inputs_texts import SENTENCES, TAGGED, write_model, write_tagged
from faults.kind import Command, Damage, Files, Kind, digest, read_files, write_files
from faults.programs import Pretrain, Tagger, TrainerTagger
from helpers.tiny import tiny_config

from elmo_hf import ElmoEmbedder, ElmoModel, ElmoTokenizer
from elmo_hf.embedding import EmbeddingJob
from elmo_hf.system.checksums import NAME, write_checksums
from elmo_hf.tagging.feature_cache import FeatureCache
from elmo_hf.text import text_source
from elmo_hf.training.checkpoints import Checkpoints
from elmo_hf.training.identity import describe_run

IDENTITY = describe_run("campaign", ElmoModel(tiny_config()), {}, {}, 1)


class Chunks(Kind):
    """The chunks of `elmo-hf embed`: all of them done, but not yet put together."""

    name = "embed chunks"
    output = "out.npy"
    kept = ("out.npy", "out.offsets.npy")
    targets = (".out.npy.parts/*",)
    crafts = (missing(".out.npy.parts/*"),)
    resumes = True

    def make(self, variant: int) -> None:
        write_model()
        # two chunks
        lines = [SENTENCES[(number + variant) % 2] for number in range(1100)]
        Path("text.txt").write_text("\n".join(lines))
        job = self.job()
        with job.locked():
            job.embed_chunks(text_source("text.txt"))
        (job.parts / "lock").unlink(missing_ok=True)

    def job(self) -> EmbeddingJob:
        return EmbeddingJob(ElmoEmbedder("model"), Path(self.output), layers="top")

    def run(self) -> Any:
        self.job().write(text_source("text.txt"))
        return self.result(Path(self.output))

    def arguments(self, output: str) -> list[str]:
        model = ["--model", "model", "--layers", "top"]
        return ["elmo-hf", "embed", "text.txt", *model, "--output", output]

    def result(self, output: Path) -> Any:
        names = (output, output.with_name("out.offsets.npy"))
        return [digest(name.read_bytes()) for name in names]


class Features(Kind):
    """The cached layers of a frozen biLM, complete."""

    name = "cached layers"
    in_command = False
    output = "out"
    kept = ("out", "out/*", "features/*")
    targets = ("features/*",)
    crafts = (missing("features/*"),)
    resumes = True
    atomic = False

    def make(self, variant: int) -> None:
        write_model(hidden_dropout=0.0)
        # two chunks
        write_tagged("conllu", "train.conllu", variant, 300)
        write_tagged("conllu", "dev.conllu")
        self.leave()

    def leave(self) -> None:
        self.fill()

    def fill(self) -> FeatureCache:
        model = ElmoModel.from_pretrained("model").eval()
        words = [[word for word, _ in TAGGED[number % 3]] for number in range(300)]
        cache = FeatureCache(Path("features"), model, Dataset.from_dict({"tokens": words}), "train")
        width = model.config.max_characters_per_token
        cache.fill(Accelerator(cpu=True), ElmoTokenizer(max_characters_per_token=width), "train")
        return cache

    def run(self) -> Any:
        return digest(np.array(self.fill().values))

    def arguments(self, output: str) -> list[str]:
        files = ["--train_file", "train.conllu", "--validation_file", "dev.conllu"]
        sizes = ["--num_train_epochs", "1", "--task_lstm_size", "4", "--cache_dir", "features"]
        model = ["--model_name_or_path", "model"]
        return ["run_pos.py", *files, *model, *sizes, "--output_dir", output]

    def result(self, output: Path) -> Any:
        return digest((output / "model.safetensors").read_bytes())


class TrainingFeatures(Features):
    """The same as they are left by the training script."""

    name = "cached layers of run_pos"
    in_process, in_command = False, True

    def leave(self) -> None:
        assert call_program(self.arguments(self.output)) == 0
        for name in read_files(Path(self.output)):
            (Path(self.output) / name).unlink()


class UnfinishedFeatures(Features):
    """Half of the layers: the run was killed in the second chunk."""

    name = "unfinished layers"

    def leave(self) -> None:
        write, calls = FeatureCache.write, []

        def killed(*arguments: Any) -> None:
            calls.append(1)
            if len(calls) > 1:
                raise KeyboardInterrupt
            write(*arguments)

        with patch.object(FeatureCache, "write", killed):
            try:
                self.fill()
            except KeyboardInterrupt:
                return


class Counter:
    """A state besides weights and optimizer."""

    def __init__(self) -> None:
        self.step = 0

    def state_dict(self) -> dict:
        return {"step": self.step, "history": [float(self.step)]}

    def load_state_dict(self, state: dict) -> None:
        self.step = state["step"]


class Checkpoint(Kind):
    """Two checkpoints of a training, read back by the class that writes them."""

    name = "checkpoints"
    in_command = False
    targets = ("out/checkpoint-*",)
    kept = ("out/*",)
    resumes = True
    atomic = False

    @property
    def crafts(self) -> Any:
        return (missing("out/checkpoint-*"), trap, hostile_state)

    def make(self, variant: int) -> None:
        checkpoints, model, optimizer, counter = self.begin()
        for step in (1, 2):
            model.weight.grad = torch.full_like(model.weight, step + variant)
            optimizer.step()
            counter.step = step
            torch.rand(1)
            checkpoints.save(step)

    def begin(self) -> tuple[Checkpoints, torch.nn.Module, Any, Counter]:
        torch.manual_seed(0)
        accelerator = Accelerator(cpu=True)
        model = torch.nn.Linear(4, 4)
        model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters()))
        counter = Counter()
        Path("out").mkdir(exist_ok=True)
        checkpoints = Checkpoints(accelerator, Path("out"), IDENTITY, counter)
        return checkpoints, model, optimizer, counter

    def run(self) -> Any:
        checkpoints, model, optimizer, counter = self.begin()
        checkpoints.resume()
        random = digest(torch.get_rng_state().numpy())
        weights = [digest(part.detach().numpy()) for part in model.parameters()]
        return counter.step, random, weights, str(optimizer.state_dict())

    def doubt(self, result: Any, in_process: bool) -> str | None:
        """The newest, the one before it, or a new beginning, but no mixture."""
        if result[0] == 0:
            return None
        before = dict(read_files(Path()))
        older = [name for name in before if name.startswith("out/checkpoint-2/")]
        for name in older:
            Path(name).unlink()
        if older:
            Path("out/checkpoint-2").rmdir()
        alone = self.run()
        write_files(Path(), before)
        return None if result[0] == 1 and alone == result else "a mixture of states"


def pickled(files: Files) -> Iterator[str]:
    endings = ("*.pkl", "*.pt", "*.pth", "*.bin")
    return (name for name in sorted(files) if any(fnmatch(name, ending) for ending in endings))


def with_checksums(files: Files, name: str) -> Files:
    """Gives a changed checkpoint new checksums, as an attacker would."""
    inside = {Path(other).name: data for other, data in files.items() if is_beside(other, name)}
    if NAME not in inside:
        return files
    with TemporaryDirectory() as folder:
        write_files(Path(folder), inside)
        write_checksums(Path(folder))
        made = (Path(folder) / NAME).read_bytes()
    return files | {f"{Path(name).parent.as_posix()}/{NAME}": made}


def is_beside(one: str, other: str) -> bool:
    return Path(one).parent == Path(other).parent


def trap(files: Files, draw: Random) -> Damage:
    """A pickle that runs code, with the right checksum."""
    name = draw.choice([name for name in pickled(files) if "checkpoint-" in name])
    if draw.random() < 0.5:
        data = pickle.dumps(Trap())
    else:
        store = BytesIO()
        torch.save({"state": Trap()}, store)
        data = store.getvalue()
    return Damage(with_checksums(files | {name: data}, name), f"{name}: a trap", must_fail=True)


def hostile_state(files: Files, draw: Random) -> Damage:
    """A well-formed state of other content, with the right checksum."""
    name = draw.choice([name for name in pickled(files) if "checkpoint-" in name])
    values = [None, [], {}, [{}], [{"step": "x"}], torch.zeros(2), 1, [None, None], [{"step": -1}]]
    store = BytesIO()
    value = draw.choice(values)
    torch.save(value, store)
    changed = with_checksums(files | {name: store.getvalue()}, name)
    # an error is permanent, and a plausible state is loaded
    return Damage(changed, f"{name}: {value!r}", must_fail=False, legal=True)


class InterruptedTraining(Kind):
    """The output folder of an interrupted training: repeated, it ends with the same weights."""

    targets = ("out/checkpoint-*",)
    kept = ("*",)
    resumes = True
    atomic = False
    in_process = False
    crafts = (missing("out/checkpoint-*"), trap)

    def __init__(self, program: Command):
        self.program, self.name = program, f"checkpoints of {program.name}"
        self.patience, self.weight = program.patience, program.weight

    def make(self, variant: int) -> None:
        self.program.make(variant)
        assert call_program(self.arguments("out")) == 0
        # as if it had been killed before it saved the last one
        newest = max(Path("out").glob("checkpoint-*"), key=lambda path: int(path.name[11:]))
        shutil.rmtree(newest)
        Path("out/all_results.json").unlink()

    def arguments(self, output: str) -> list[str]:
        return self.program.arguments(output)

    def result(self, output: Path) -> Any:
        return self.program.result(output)


CHECKPOINTS: list[Kind] = [
    Checkpoint(),
    *(InterruptedTraining(program) for program in (Pretrain(), Tagger(), TrainerTagger())),
]
