"""Train a tagger on ELMo with datasets and accelerate: parts of speech, names, any tags of words.

    accelerate launch examples/run_pos.py --model_name_or_path my-elmo \
        --train_file train.conllu --validation_file dev.conllu --test_file test.conllu \
        --output_dir my-tagger

Without files it trains on the sample beside this script. Files may be CoNLL-U, CoNLL columns,
word/TAG text, JSON lines or parquet, told apart by what is in them. The biLM is frozen, so its
layers are worked out once, kept on disk, and later epochs train the head alone; `--finetune_bilm`
trains all of it. Kill the run whenever you like: the same command goes on and ends with the same
weights.

`--output_dir` gets the model, `all_results.json`, predictions as CoNLL-U, and `report.html`.
"""

import argparse
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from checkpoints import Checkpoints, save_model
from datasets import Dataset
from feature_cache import FeatureCache
from memory import keep_freed_memory
from pos_report import write_report
from tagged_batches import Batches
from tagged_data import load_from_hub, load_tagged, number_tags
from tagger_card import write_card
from tagging_figures import count_tags, describe, measure, most_frequent, scalars, write_conllu
from tqdm.auto import tqdm
from transformers.utils import logging
from word_vectors import read_word_vectors

from elmo_hf import ElmoConfig, ElmoForTokenClassification, ElmoTokenizer
from elmo_hf.cli import run
from elmo_hf.publish import publish

HERE = Path(__file__).resolve().parent
SPLITS = ("train", "validation", "test")
SAMPLE = {
    "train": HERE / "sample" / "train.conllu",
    "validation": HERE / "sample" / "dev.conllu",
    "test": HERE / "sample" / "test.conllu",
}
# the figure that chooses the best epoch
GOAL = {"pos": "accuracy", "ner": "f1"}
# sentences a process tags at once
EVALUATION_SIZE = 64


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = parser.add_argument_group("data")
    for split in SPLITS:
        data.add_argument(f"--{split}_file", type=Path, help="default: the sample's")
    data.add_argument("--dataset_name", help="instead of files: a dataset of the Hub")
    data.add_argument("--dataset_config_name", help="which of its configurations")
    data.add_argument("--token_column", help="the words' column; default: the likeliest")
    data.add_argument("--tag_column", help="the tags' column, by name or number; likewise")
    data.add_argument("--task", choices=GOAL, default="pos", help="ner counts spans by seqeval")
    data.add_argument("--max_train_samples", type=int, help="use fewer sentences, for a try")
    data.add_argument("--cache_dir", type=Path, help="of the biLM's layers; default OUTPUT_DIR")
    data.add_argument("--no_feature_cache", action="store_true", help="read the text every epoch")
    model = parser.add_argument_group("model")
    model.add_argument("--model_name_or_path", required=True, help="an ELMo folder or Hub name")
    model.add_argument("--finetune_bilm", action="store_true", help="train the biLM as well")
    model.add_argument(
        "--layers",
        default="mix",
        help="what of the biLM the head reads: mix (default), top, mean, a number, or all "
        "layers side by side",
    )
    model.add_argument("--num_mixes", type=int, default=1, help="how many mixes (default 1)")
    model.add_argument(
        "--mix_after_lstm", action="store_true", help="the last mix joins after the task BiLSTM"
    )
    model.add_argument(
        "--task_lstm_size", type=int, default=200, help="of the task BiLSTM; 0 for a linear head"
    )
    model.add_argument("--word_vectors", type=Path, help="a text file of GloVe or word2vec")
    model.add_argument("--elmo_dropout", type=float, default=0.0, help="on ELMo's vectors")
    model.add_argument("--dropout", type=float, default=0.5, help="before the classifier")
    training = parser.add_argument_group("training")
    training.add_argument("--num_train_epochs", type=int, default=40)
    training.add_argument("--patience", type=int, default=8, help="epochs without a better one")
    training.add_argument(
        "--words_per_batch", type=int, default=300, help="of sentences of about one length"
    )
    training.add_argument(
        "--per_device_train_batch_size", type=int, help="instead: sentences, of any length"
    )
    training.add_argument("--gradient_accumulation_steps", type=int, default=1)
    training.add_argument("--learning_rate", type=float, default=3e-3, help="of the head")
    training.add_argument("--bilm_learning_rate", type=float, default=3e-4)
    training.add_argument("--weight_decay", type=float, default=0.01)
    training.add_argument("--mix_l2", type=float, default=0.001, help="L2 on the mix weights")
    training.add_argument("--max_grad_norm", type=float, default=1.0)
    training.add_argument("--warmup_ratio", type=float, default=0.05)
    training.add_argument("--mixed_precision", choices=["no", "fp16", "bf16"], help="of accelerate")
    training.add_argument("--checkpointing_steps", type=int, help="default: after every epoch")
    training.add_argument("--seed", type=int, default=42)
    training.add_argument("--report_to", help="a tracker of accelerate, such as tensorboard")
    training.add_argument("--output_dir", type=Path, required=True)
    hub = parser.add_argument_group("hub")
    hub.add_argument("--push_to_hub", action="store_true", help="as `elmo-hf push` does")
    hub.add_argument("--hub_model_id", help="the repository, as in me/elmo-pos")
    hub.add_argument("--license", default="other", help="of your weights, for the model card")
    args = parser.parse_args()
    if args.push_to_hub and not args.hub_model_id:
        parser.error("--push_to_hub needs --hub_model_id")
    files = [getattr(args, f"{split}_file") for split in SPLITS]
    if any(files) and (args.train_file is None or args.validation_file is None):
        parser.error("give both --train_file and --validation_file")
    if args.dataset_name and any(files):
        parser.error("give files or --dataset_name")
    if args.mix_after_lstm and args.num_mixes < 2:
        parser.error("--mix_after_lstm needs --num_mixes 2 or more")
    return args


def load_splits(args: argparse.Namespace) -> tuple[dict[str, Dataset], list[str]]:
    """The sentences with the numbers of their tags, and the tags."""
    if args.dataset_name:
        columns = (args.token_column, args.tag_column)
        splits = load_from_hub(args.dataset_name, args.dataset_config_name, args.task, *columns)
        names = dict.fromkeys(splits, args.dataset_name)
    else:
        files = {split: getattr(args, f"{split}_file") for split in SPLITS}
        files = SAMPLE if not any(files.values()) else files
        names = {split: str(file) for split, file in files.items() if file is not None}
        splits = {
            split: load_tagged(Path(file), args.task, args.token_column, args.tag_column)
            for split, file in names.items()
        }
    missing = {"train", "validation"} - splits.keys()
    if missing:
        raise ValueError(f"{args.dataset_name} has no split named {' or '.join(sorted(missing))}.")
    labels = sorted({tag for tags in splits["train"]["tags"] for tag in tags})
    if args.max_train_samples is not None:
        count = min(args.max_train_samples, len(splits["train"]))
        splits["train"] = splits["train"].select(range(count))
    numbers = {label: number for number, label in enumerate(labels)}
    numbered = {
        split: number_tags(splits[split], names[split], numbers)
        for split in SPLITS
        if split in splits
    }
    return numbered, labels


def make_model(
    args: argparse.Namespace, labels: list[str], train: Dataset
) -> ElmoForTokenClassification:
    """Pretrained biLM, new head."""
    vectors = None
    if args.word_vectors is not None:
        known = {word for tokens in train["tokens"] for word in tokens}
        words, vectors = read_word_vectors(args.word_vectors, known)
    layer = int(args.layers) if args.layers.isdigit() else args.layers
    config = ElmoConfig.from_pretrained(
        args.model_name_or_path,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        output_layer="mix" if layer == "all" else layer,
        concatenate_layers=layer == "all",
        num_output_representations=args.num_mixes,
        mix_after_task_lstm=args.mix_after_lstm,
        task_lstm_size=args.task_lstm_size,
        output_dropout=args.elmo_dropout,
        classifier_dropout=args.dropout,
        num_word_vectors=0 if vectors is None else len(vectors),
        word_vector_size=0 if vectors is None else vectors.shape[1],
    )
    if not args.finetune_bilm:
        # what is frozen should be the same in every epoch
        config.hidden_dropout = 0.0
    model = ElmoForTokenClassification.from_pretrained(args.model_name_or_path, config=config)
    if vectors is not None and model.word_vectors is not None:
        tokenizer = ElmoTokenizer(max_characters_per_token=config.max_characters_per_token)
        rows = tokenizer([words], is_split_into_words=True, return_tensors="pt")["input_ids"][0]
        model.word_vectors.fill(rows, vectors)
    if not args.finetune_bilm:
        model.freeze_bilm()
    return model


class Progress:
    """What a run is made of besides weights, optimiser and random generators."""

    def __init__(self) -> None:
        self.epoch = self.step = 0
        # of the steps of this epoch
        self.losses: list[float] = []
        self.best: float | None = None
        self.best_epoch = 0
        self.history: list[dict] = []

    def end_epoch(self, figures: dict, score: float) -> None:
        self.history.append(figures)
        self.epoch, self.step, self.losses = self.epoch + 1, 0, []
        if self.best is None or score > self.best:
            self.best, self.best_epoch = score, self.epoch

    def is_over(self, patience: int) -> bool:
        return self.epoch - self.best_epoch >= patience

    def state_dict(self) -> dict:
        return dict(vars(self))

    def load_state_dict(self, state: dict) -> None:
        vars(self).update(state)


def make_optimizer(args: argparse.Namespace, model: ElmoForTokenClassification):
    """AdamW with a rate of its own for the biLM."""
    bilm = {
        id(w) for w in (*model.elmo.token_encoder.parameters(), *model.elmo.layers.parameters())
    }
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    groups = [
        {"params": [w for w in trained if id(w) not in bilm], "top": args.learning_rate},
        {"params": [w for w in trained if id(w) in bilm], "top": args.bilm_learning_rate},
    ]
    groups = [group for group in groups if group["params"]]
    return torch.optim.AdamW(groups, lr=args.learning_rate, weight_decay=args.weight_decay)


def rate(args: argparse.Namespace, done: float) -> float:
    """The share of the learning rate when so much of all epochs is done: up, then down to 0."""
    if done < args.warmup_ratio:
        return done / args.warmup_ratio
    return (1 - done) / (1 - args.warmup_ratio)


def train(
    args: argparse.Namespace,
    accelerator: Accelerator,
    bare: ElmoForTokenClassification,
    batches: dict[str, Batches],
    judge: Callable[[ElmoForTokenClassification, str], dict],
) -> Progress:
    """Epoch after epoch until none is better; the best model is left in the output folder."""
    model, optimizer = accelerator.prepare(bare, make_optimizer(args, bare))
    progress = Progress()
    accelerator.register_for_checkpointing(progress)
    checkpoints = Checkpoints(accelerator, args.output_dir)
    checkpoints.resume()
    quiet = not accelerator.is_main_process
    while progress.epoch < args.num_train_epochs and not progress.is_over(args.patience):
        steps = batches["train"].plan(args, accelerator.num_processes, progress.epoch)
        model.train()
        label = f"epoch {progress.epoch + 1}"
        with tqdm(total=len(steps), initial=progress.step, desc=label, disable=quiet) as bar:
            while progress.step < len(steps):
                # in the middle of the step: neither the first nor the last counts for nothing
                done = (progress.epoch + (progress.step + 0.5) / len(steps)) / args.num_train_epochs
                for group in optimizer.param_groups:
                    group["lr"] = group["top"] * rate(args, done)
                loss = learn(
                    args, accelerator, model, optimizer, batches["train"], steps[progress.step]
                )
                progress.losses.append(loss)
                progress.step += 1
                bar.update()
                bar.set_postfix(loss=f"{loss:.4f}")
                if args.checkpointing_steps and progress.step % args.checkpointing_steps == 0:
                    checkpoints.save(progress.epoch * len(steps) + progress.step)
        figures = judge(bare, "validation")
        score = figures[f"validation_{GOAL[args.task]}"]
        loss = sum(progress.losses) / len(progress.losses)
        progress.end_epoch({"train_loss": loss, **figures}, score)
        accelerator.log({"train_loss": loss, **scalars(figures)}, step=progress.epoch)
        if not quiet:
            bar.write(f"epoch {progress.epoch}: train loss {loss:.4f}, " + describe(figures))
            if progress.best_epoch == progress.epoch:
                save_model(bare, args.output_dir)
        checkpoints.save(progress.epoch * len(steps))
    return progress


def learn(
    args: argparse.Namespace,
    accelerator: Accelerator,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Batches,
    parts: list[list[int]],
) -> float:
    """
    One step: the loss summed over the words of all processes and all parts, divided by the number
    of these words.
    """
    words = sum(batches.lengths[number] for part in parts for number in part)
    total = 0.0
    for number, part in enumerate(parts, start=1):
        mine = part[accelerator.process_index :: accelerator.num_processes]
        batch = to_device(batches.collate(mine), accelerator.device)
        with nullcontext() if number == len(parts) else accelerator.no_sync(model):
            loss = model(**batch, num_items_in_batch=words).loss
            mixes = accelerator.unwrap_model(model).elmo.mixes
            penalty = args.mix_l2 * sum(mix.scalars.square().sum() for mix in mixes) / len(parts)
            # the gradients of several processes are averaged, but this is a sum
            accelerator.backward(accelerator.num_processes * loss + penalty)
        total += accelerator.reduce(loss.detach(), "sum").item()
    accelerator.clip_grad_norm_(model.parameters(), args.max_grad_norm)
    optimizer.step()
    optimizer.zero_grad()
    return total


def to_device(batch: dict[str, torch.Tensor], device: torch.device) -> dict[str, torch.Tensor]:
    """What the model reads, where it reads it."""
    return {name: part.to(device) for name, part in batch.items() if name != "numbers"}


@torch.inference_mode()
def tag(
    accelerator: Accelerator, model: ElmoForTokenClassification, batches: Batches, name: str
) -> tuple[list[list[int]], list[list[float]], float]:
    """For every sentence the tags' numbers and how sure they are, and the mean loss of a word."""
    model.prepare_for_inference()
    order = sorted(range(len(batches.lengths)), key=lambda number: batches.lengths[number])
    loader = torch.utils.data.DataLoader(
        order, batch_size=EVALUATION_SIZE, collate_fn=batches.collate
    )
    loader = accelerator.prepare(loader)
    tags: list[list[int]] = [[] for _ in order]
    sure: list[list[float]] = [[] for _ in order]
    loss = 0.0
    for batch in tqdm(loader, desc=name, leave=False, disable=not accelerator.is_main_process):
        logits = model(**to_device(batch, accelerator.device)).logits.float()
        chances, guesses = logits.softmax(dim=-1).max(dim=-1)
        costs = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), batch["labels"], reduction="none"
        )
        parts = (guesses, chances, costs, batch["attention_mask"])
        padded = [accelerator.pad_across_processes(part, dim=1) for part in parts]
        # of the last batch, what was only there to make it whole is dropped again
        gathered = accelerator.gather_for_metrics((batch["numbers"], *padded))
        for number, guess, chance, cost, mask in zip(
            *(part.cpu() for part in gathered), strict=True
        ):
            live = mask.bool()
            tags[number], sure[number] = guess[live].tolist(), chance[live].tolist()
            loss += cost[live].double().sum().item()
    return tags, sure, loss / max(1, sum(batches.lengths))


def main() -> None:
    args = parse_args()
    keep_freed_memory()
    # their bars would break ours, and a new head is no news
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    args.output_dir.mkdir(parents=True, exist_ok=True)
    accelerator = Accelerator(
        mixed_precision=args.mixed_precision, log_with=args.report_to, project_dir=args.output_dir
    )
    if args.report_to is not None:
        settings = {name: str(value) for name, value in vars(args).items()}
        accelerator.init_trackers("elmo-tagging", config=settings)

    # 1. read the sentences; the first process makes the files that the others map
    with accelerator.main_process_first():
        splits, labels = load_splits(args)
    counts = count_tags(splits["train"])

    # 2. put a new head on the pretrained biLM; the seed is for its weights and for dropout
    set_seed(args.seed, device_specific=True)
    model = make_model(args, labels, splits["train"]).to(accelerator.device)
    tokenizer = ElmoTokenizer(max_characters_per_token=model.config.max_characters_per_token)

    # 3. let a frozen biLM read everything once
    caches: dict[str, FeatureCache | None] = dict.fromkeys(splits)
    if not args.finetune_bilm and not args.no_feature_cache:
        folder = args.cache_dir or args.output_dir / "features"
        for split, dataset in splits.items():
            cache = caches[split] = FeatureCache(folder, model.elmo, dataset, split)
            cache.fill(accelerator, tokenizer, f"biLM reads {split}")
    batches = {
        split: Batches(dataset, tokenizer, caches[split], model.word_vectors is not None)
        for split, dataset in splits.items()
    }

    # 4. train, and judge every epoch by the held-out sentences
    predictions: dict[str, tuple] = {}

    def judge(model: ElmoForTokenClassification, split: str) -> dict:
        numbers, sure, loss = tag(accelerator, model, batches[split], split)
        tags = [[labels[number] for number in row] for row in numbers]
        predictions[split] = (tags, sure)
        figures = {"loss": loss, **measure(args.task, splits[split], tags, counts)}
        return {f"{split}_{name}": value for name, value in figures.items()}

    progress = train(args, accelerator, model, batches, judge)

    # 5. test the best epoch and leave everything behind
    accelerator.wait_for_everyone()
    best = ElmoForTokenClassification.from_pretrained(args.output_dir)
    model.load_state_dict(best.state_dict())
    results = {"train_loss": progress.history[progress.best_epoch - 1]["train_loss"]}
    for split in [split for split in splits if split != "train"]:
        results |= judge(model, split)
        guess = measure(args.task, splits[split], most_frequent(counts, splits[split]), counts)
        results[f"{split}_baseline_{GOAL[args.task]}"] = guess[GOAL[args.task]]
    if accelerator.is_main_process:
        finish(args, splits, model, progress, results, predictions)
    # together, and the model before the group it talks through: the other way round may hang
    accelerator.wait_for_everyone()
    accelerator.free_memory()
    accelerator.end_training()


def finish(
    args: argparse.Namespace,
    splits: dict[str, Dataset],
    model: ElmoForTokenClassification,
    progress: Progress,
    results: dict,
    predictions: dict[str, tuple],
) -> None:
    results |= {"best_epoch": progress.best_epoch, "epochs": progress.epoch}
    text = json.dumps(dict(sorted(results.items())), indent=2) + "\n"
    (args.output_dir / "all_results.json").write_text(text, encoding="utf-8")
    for split, (tags, _) in predictions.items():
        write_conllu(args.output_dir / f"predictions-{split}.conllu", splits[split], tags)
    base = Path(args.model_name_or_path).name
    data = args.dataset_name or Path(args.train_file or SAMPLE["train"]).name
    about = (base, data, len(splits["train"]), results, GOAL[args.task], args.license)
    write_card(args.output_dir, model, *about)
    page = write_report(args.output_dir, model, splits, progress.history, results, predictions)
    goal = GOAL[args.task]
    for split in ("validation", "test"):
        if f"{split}_{goal}" in results:
            print(
                f"{split:10} {goal} {results[f'{split}_{goal}']:.4f}   most frequent tags "
                f"{results[f'{split}_baseline_{goal}']:.4f}"
            )
    print(f"saved in {args.output_dir}; look at {page}")
    if args.push_to_hub:
        print(f"pushed to {publish(args.output_dir, args.hub_model_id)}")


if __name__ == "__main__":
    run(main)
