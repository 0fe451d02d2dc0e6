r"""Pretrain an ELMo biLM on plain text: from scratch, or on from a converted or earlier model.

    accelerate launch examples/run_pretrain.py --train_file 'corpus/*.txt' \
        --validation_file valid.txt --test_file test.txt --preset small --output_dir my-elmo

The text has one tokenised sentence a line. Kill the run whenever you like: the same command goes on
from the last checkpoint and ends with the same weights. The folder it leaves behind loads with
`ElmoModel.from_pretrained` and `ElmoForPreTraining.from_pretrained`, and `elmo-hf export` takes it
to AllenNLP, simple_elmo and bilm-tf.

Perplexities are measured with the full softmax on held-out text, each direction for itself; the
loss shown while training is over sampled words, with dropout, and is labelled "sampled".
"""

import argparse
import json
import math
import time
from collections import Counter
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from tqdm.auto import tqdm

from elmo_hf import ElmoConfig, ElmoForPreTraining, ElmoModel, ElmoState
from elmo_hf.cli import run
from elmo_hf.hub.bundled import find_model
from elmo_hf.pretraining.corpus import (
    Corpus,
    DatasetCorpus,
    PackedStream,
    find_files,
    size_of,
    stream_batch,
)
from elmo_hf.pretraining.curve import draw_pretraining
from elmo_hf.pretraining.weight_average import WeightAverage
from elmo_hf.training.checkpoints import Checkpoints, save_model
from elmo_hf.training.run import Help, training_run
from elmo_hf.word_vocabulary import WordVocabulary

PRESETS = {
    # Peters et al. 2018
    "paper": {"hidden_dropout": 0.1},
    # the smallest model that AllenNLP published
    "small": {
        "hidden_dropout": 0.1,
        "cell_size": 1024,
        "projection_size": 128,
        "num_highway_layers": 1,
    },
    # for a first try on a laptop
    "tiny": {
        "hidden_dropout": 0.1,
        "char_filters": [[1, 32], [2, 32], [3, 64], [4, 128]],
        "cell_size": 256,
        "projection_size": 64,
        "num_highway_layers": 1,
        "num_negative_samples": 1024,
    },
}
RECIPES = {
    # AdamW, a warm-up, then a cosine down to a half; what is kept is a mean of late weights, which
    # needs no lower rate: down to a tenth, its perplexity was 2 % higher
    "adamw": {"learning_rate": 5e-3, "max_grad_norm": 1.0, "averaged_part": 0.125},
    # bilm-tf's: Adagrad at a constant rate; its loss is summed over the window before clipping
    "bilm": {"learning_rate": 0.2, "max_grad_norm": 10.0, "averaged_part": 0.0},
}
# A row forgets its state once in so many windows. bilm-tf's never do, and then memory cells may
# come to rest, early in training, at values that no fresh start ever reaches: fed with the state of
# its training, such a model had a perplexity of 250, and from zeros one of 340.
WINDOWS_UNTIL_FRESH = 50
EVALUATION_ROWS = 32
EVALUATION_STEPS = 50


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=Help)
    data = parser.add_argument_group("data")
    data.add_argument("--train_file", help="text, or a glob in quotes; .gz is read too")
    data.add_argument("--validation_file", help="held-out text, read after every epoch")
    data.add_argument("--test_file", help="held-out text, read at the end")
    data.add_argument("--dataset_name", help="instead of files: a dataset of the Hub or a folder")
    data.add_argument("--dataset_config_name", help="which of its configurations")
    data.add_argument("--text_column", default="text", help="its column of sentences")
    data.add_argument("--vocab_file", type=Path, help="default: the words of the training text")
    model = parser.add_argument_group("model")
    model.add_argument("--preset", choices=PRESETS, default="small", help="a shape")
    model.add_argument(
        "--config_overrides", type=Path, help="a JSON file of ElmoConfig fields over the preset"
    )
    model.add_argument(
        "--model_name_or_path",
        type=find_model,
        help="go on from this model; without --vocab_file, with its softmax",
    )
    training = parser.add_argument_group("training")
    training.add_argument("--recipe", choices=RECIPES, default="adamw", help="optimiser and rates")
    training.add_argument("--learning_rate", type=float, help="default: the recipe's")
    training.add_argument("--num_train_epochs", type=int, default=10, help="times to read the text")
    training.add_argument("--max_train_steps", type=int, help="instead of epochs")
    training.add_argument(
        "--per_device_train_batch_size", type=int, default=32, help="rows of text"
    )
    training.add_argument("--window_size", type=int, default=20, help="words a row reads at a step")
    training.add_argument("--warmup_steps", type=int, default=200, help="of adamw")
    training.add_argument("--weight_decay", type=float, default=0.01, help="of adamw")
    training.add_argument("--checkpointing_steps", type=int, default=500, help="between them")
    training.add_argument("--seed", type=int, default=42, help="of everything random")
    training.add_argument("--report_to", help="a tracker of accelerate, such as tensorboard")
    training.add_argument("--output_dir", type=Path, required=True, help="of model and checkpoints")
    args = parser.parse_args()
    if (args.train_file is None) == (args.dataset_name is None):
        parser.error("give --train_file or --dataset_name")
    for name, value in RECIPES[args.recipe].items():
        if getattr(args, name, None) is None:
            setattr(args, name, value)
    return args


def read_corpus(
    args: argparse.Namespace, split: str, quiet: bool, counts: Counter | None = None
) -> Corpus | DatasetCorpus | None:
    """Counts the text of a split; None where none was named."""
    if args.dataset_name is not None:
        from datasets import load_dataset, load_from_disk

        if Path(args.dataset_name, "dataset_dict.json").exists():
            dataset = load_from_disk(args.dataset_name)
        else:
            dataset = load_dataset(args.dataset_name, args.dataset_config_name)
        if split not in dataset:
            return None
        with tqdm(total=len(dataset[split]), desc=f"count {split}", disable=quiet) as bar:
            return DatasetCorpus(dataset[split], args.text_column, counts, bar.update)
    pattern = getattr(args, f"{split}_file")
    if pattern is None:
        return None
    files = find_files(pattern)
    with tqdm(
        total=size_of(files), desc=f"count {split}", unit="B", unit_scale=True, disable=quiet
    ) as bar:
        return Corpus(files, counts, bar.update)


def make_model(args: argparse.Namespace, vocabulary: WordVocabulary | None) -> ElmoForPreTraining:
    """A new model, or the one to go on from; its softmax is new if the vocabulary is."""
    if args.model_name_or_path is not None and vocabulary is None:
        return ElmoForPreTraining.from_pretrained(args.model_name_or_path)
    assert vocabulary is not None
    words = vocabulary.config_fields()
    if args.model_name_or_path is not None:
        config = ElmoConfig.from_pretrained(args.model_name_or_path, **words)
        model = ElmoForPreTraining(config)
        read = ElmoModel.from_pretrained(args.model_name_or_path).state_dict()
        own = {name: part for name, part in read.items() if not name.startswith("mixes.")}
        model.elmo.load_state_dict(own)
    else:
        overrides = {}
        if args.config_overrides is not None:
            overrides = json.loads(args.config_overrides.read_text(encoding="utf-8"))
        model = ElmoForPreTraining(ElmoConfig(**PRESETS[args.preset] | overrides | words))
    model.vocabulary = vocabulary
    return model


def needs_counting(args: argparse.Namespace) -> bool:
    """Whether the training text itself gives the vocabulary."""
    if args.vocab_file is not None:
        return False
    if args.model_name_or_path is None:
        return True
    architectures = ElmoConfig.from_pretrained(args.model_name_or_path).architectures or []
    return "ElmoForPreTraining" not in architectures


def make_optimizer(
    args: argparse.Namespace, model: ElmoForPreTraining, device: torch.device
) -> torch.optim.Optimizer:
    # one pass over the weights; elsewhere torch chooses by itself
    fused = True if device.type == "cpu" else None
    if args.recipe == "bilm":
        return torch.optim.Adagrad(
            model.parameters(), lr=args.learning_rate, initial_accumulator_value=1.0, fused=fused
        )
    decay = [weight for weight in model.parameters() if weight.dim() > 1]
    rest = [weight for weight in model.parameters() if weight.dim() <= 1]
    groups = [
        {"params": decay, "weight_decay": args.weight_decay},
        {"params": rest, "weight_decay": 0},
    ]
    return torch.optim.AdamW(groups, lr=args.learning_rate, fused=fused)


def learning_rate(args: argparse.Namespace, step: int, num_steps: int) -> float:
    """A function of the step alone, so that a resumed run needs no schedule of its own."""
    if args.recipe == "bilm":
        return args.learning_rate
    warmup = min(args.warmup_steps, num_steps // 10)
    if step < warmup:
        return args.learning_rate * (step + 1) / warmup
    progress = (step - warmup) / max(1, num_steps - warmup)
    return args.learning_rate * (0.5 + 0.25 * (1 + math.cos(math.pi * progress)))


def start_afresh(state: ElmoState | None, step: int, rows: range) -> ElmoState | None:
    """The state with zeros for the rows whose turn it is; by number, whoever reads them."""
    if state is None:
        return None
    fresh = [at for at, row in enumerate(rows) if (step + row) % WINDOWS_UNTIL_FRESH == 0]
    for part in state.values():
        part[fresh] = 0
    return state


class Progress:
    """What a run is made of besides weights, optimiser and random generators."""

    def __init__(self, accelerator: Accelerator, streams: list[PackedStream]):
        self.accelerator, self.streams = accelerator, streams
        self.step = 0
        self.seconds = 0.0
        # what the LSTMs remember of the rows of this process
        self.state: ElmoState | None = None
        self.best: float | None = None
        self.history: list[dict] = []

    def state_dict(self) -> dict:
        """All rows of all processes."""

        def gather(parts: dict) -> dict:
            device = self.accelerator.device
            return {
                name: self.accelerator.gather(part.to(device).contiguous()).cpu()
                for name, part in parts.items()
            }

        return {
            "step": self.step,
            "seconds": self.seconds,
            "best": self.best,
            "history": self.history,
            "streams": [gather(stream.state_dict()) for stream in self.streams],
            "state": gather(dict(self.state)) if self.state is not None else None,
        }

    def load_state_dict(self, saved: dict) -> None:
        self.step, self.seconds = saved["step"], saved["seconds"]
        self.best, self.history = saved["best"], saved["history"]
        for stream, state in zip(self.streams, saved["streams"], strict=True):
            stream.load_state_dict(state)
        if saved["state"] is not None:
            rows, device = self.streams[0].rows, self.accelerator.device
            own = {name: part[rows.start : rows.stop] for name, part in saved["state"].items()}
            self.state = ElmoState(**{name: part.to(device) for name, part in own.items()})


def make_streams(
    accelerator: Accelerator,
    corpus: Corpus | DatasetCorpus,
    rows: int,
    steps: int,
    seed: int | None = None,
) -> list[PackedStream]:
    """Both directions' streams, with so many rows for each process."""
    start = accelerator.process_index * rows
    mine, num_rows = range(start, start + rows), rows * accelerator.num_processes
    return [
        PackedStream(corpus, num_rows, steps, backward, seed, mine) for backward in (False, True)
    ]


@torch.inference_mode()
def evaluate(
    accelerator: Accelerator, model: ElmoForPreTraining, corpus: Corpus | DatasetCorpus, name: str
) -> dict[str, float]:
    """Perplexity by the full softmax, every word and sentence end counted once; state carried."""
    model.prepare_for_inference()
    rows = math.ceil(EVALUATION_ROWS / accelerator.num_processes)
    streams = make_streams(accelerator, corpus, rows, EVALUATION_STEPS)
    sums = torch.zeros(2, 2, dtype=torch.double, device=accelerator.device)
    state = None
    words = math.ceil(corpus.num_predictions / accelerator.num_processes)
    with tqdm(
        total=words, desc=name, unit="w", leave=False, disable=not accelerator.is_main_process
    ) as bar:
        while True:
            try:
                batch = next_batch(accelerator, model, streams)
            except StopIteration:
                break
            output = model(**batch, state=state)
            state = output.state
            for number, suffix in enumerate(("", "_backward")):
                count = (batch[f"labels{suffix}"] >= 0).sum()
                loss = output.loss_backward if suffix else output.loss_forward
                sums[number] += torch.stack([loss * count, count])
            bar.update(int(count))
    # a process whose rows ended earlier simply adds nothing more
    losses, counts = accelerator.reduce(sums, "sum").unbind(1)
    forward, backward = (losses / counts).tolist()
    return {
        f"{name}_perplexity": math.exp((forward + backward) / 2),
        f"{name}_perplexity_forward": math.exp(forward),
        f"{name}_perplexity_backward": math.exp(backward),
    }


def next_batch(
    accelerator: Accelerator, model: ElmoForPreTraining, streams: list[PackedStream]
) -> dict[str, torch.Tensor]:
    width = model.config.max_characters_per_token
    batch = stream_batch(streams[0], streams[1], model.known_words(), width)
    return {name: part.to(accelerator.device) for name, part in batch.items()}


def train(args: argparse.Namespace, accelerator: Accelerator) -> None:
    quiet = not accelerator.is_main_process
    counts: Counter | None = Counter() if needs_counting(args) else None
    corpus = read_corpus(args, "train", quiet, counts)
    if corpus is None:
        raise ValueError(f"The dataset {args.dataset_name!r} has no split named train.")
    held_out = {name: read_corpus(args, name, quiet) for name in ("validation", "test")}
    vocabulary = None
    if args.vocab_file is not None:
        vocabulary = WordVocabulary.load(args.vocab_file)
    elif counts is not None:
        vocabulary = WordVocabulary.of_counts(counts)
    # the first process's weights become everyone's; each draws its own negatives and dropout
    set_seed(args.seed, device_specific=True)
    bare = make_model(args, vocabulary)
    model, optimizer = accelerator.prepare(bare, make_optimizer(args, bare, accelerator.device))

    batch_size = args.per_device_train_batch_size
    streams = make_streams(accelerator, corpus, batch_size, args.window_size, args.seed)
    num_rows = streams[0].num_rows
    epoch_steps = math.ceil(corpus.num_predictions / (num_rows * args.window_size))
    num_steps = args.max_train_steps or args.num_train_epochs * epoch_steps
    progress = Progress(accelerator, streams)
    average = WeightAverage(bare, args.averaged_part)
    accelerator.register_for_checkpointing(progress, average)
    checkpoints = Checkpoints(accelerator, args.output_dir)
    resumed = checkpoints.resume()
    if not quiet:
        negatives = bare.num_negatives
        print(
            f"{corpus.num_words:,} words in {corpus.num_sentences:,} sentences, "
            f"{len(bare.known_words()):,} in the vocabulary, {bare.num_parameters():,} parameters; "
            f"{num_steps:,} steps of {num_rows} x {args.window_size} words, "
            + ("full softmax" if negatives is None else f"{negatives:,} negative samples")
            + (f"; going on from step {progress.step:,}" if resumed else "")
        )

    # words a second are those of the text, without the boundaries
    words_per_step = num_rows * args.window_size * corpus.num_words / corpus.num_predictions
    scale = args.window_size if args.recipe == "bilm" else 1
    recent: list[torch.Tensor] = []
    with tqdm(total=num_steps, initial=progress.step, unit="step", disable=quiet) as bar:
        while progress.step < num_steps:
            model.train()
            started = time.perf_counter()
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(args, progress.step, num_steps)
            state = start_afresh(progress.state, progress.step, streams[0].rows)
            output = model(**next_batch(accelerator, bare, streams), state=state)
            accelerator.backward(scale * output.loss)
            accelerator.clip_grad_norm_(model.parameters(), args.max_grad_norm)
            optimizer.step()
            optimizer.zero_grad()
            progress.state = output.state.detach()
            progress.step += 1
            average.update(progress.step)
            recent.append(output.loss.detach())
            ends_epoch = progress.step % epoch_steps == 0 or progress.step == num_steps
            if len(recent) == 20 or ends_epoch:
                loss = accelerator.reduce(torch.stack(recent).mean(), "mean").item()
                recent.clear()
                speed = progress.step * words_per_step / max(progress.seconds, 1e-9)
                bar.set_postfix(sampled_loss=f"{loss:.3f}", words_per_s=f"{speed:.0f}")
                accelerator.log({"train_loss_sampled": loss}, step=progress.step)
                progress.history.append({"step": progress.step, "train_loss_sampled": loss})
            bar.update()
            progress.seconds += time.perf_counter() - started
            if ends_epoch and held_out["validation"] is not None:
                with average.in_place():
                    figures = evaluate(accelerator, bare, held_out["validation"], "validation")
                    perplexity = figures["validation_perplexity"]
                    is_best = progress.best is None or perplexity < progress.best
                    if is_best and not quiet:
                        save_model(bare, args.output_dir)
                progress.best = perplexity if is_best else progress.best
                accelerator.log(figures, step=progress.step)
                progress.history.append({"step": progress.step, **figures})
                if not quiet:
                    epoch = progress.step / epoch_steps
                    bar.write(f"epoch {epoch:.4g}: " + describe(figures))
            if progress.step % args.checkpointing_steps == 0 or ends_epoch:
                checkpoints.save(progress.step)
    with average.in_place():
        finish(args, accelerator, bare, progress, held_out["test"], progress.step * words_per_step)


def describe(figures: dict[str, float]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in figures.items())


def finish(
    args: argparse.Namespace,
    accelerator: Accelerator,
    model: ElmoForPreTraining,
    progress: Progress,
    test: Corpus | DatasetCorpus | None,
    words: float,
) -> None:
    """Keeps the best epoch, tests it, and leaves figures and a curve behind."""
    if progress.best is None:
        if accelerator.is_main_process:
            save_model(model, args.output_dir)
    else:
        accelerator.wait_for_everyone()
        best = ElmoForPreTraining.from_pretrained(args.output_dir)
        model.load_state_dict(best.state_dict())
    results = {
        "train_steps": progress.step,
        "train_words": round(words),
        "train_seconds": progress.seconds,
        "train_words_per_second": words / progress.seconds,
    }
    if progress.best is not None:
        results["validation_perplexity"] = progress.best
    if test is not None:
        results |= evaluate(accelerator, model, test, "test")
        accelerator.log({"test_perplexity": results["test_perplexity"]}, step=progress.step)
    if accelerator.is_main_process:
        text = json.dumps(results, indent=2) + "\n"
        (args.output_dir / "all_results.json").write_text(text, encoding="utf-8")
        draw_pretraining(progress.history, args.output_dir / "curve.png")
        print(describe({name: value for name, value in results.items() if "perplexity" in name}))
        print(f"saved in {args.output_dir}")


def main() -> None:
    args = parse_args()
    with training_run(args, "elmo-pretraining") as accelerator:
        train(args, accelerator)


if __name__ == "__main__":
    run(main)
