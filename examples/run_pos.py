r"""Train a tagger on ELMo with datasets and accelerate: parts of speech, names, any tags of words.

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
from contextlib import nullcontext
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from datasets import Dataset
from tqdm.auto import tqdm

from elmo_hf import ElmoConfig, ElmoForTokenClassification, ElmoTokenizer
from elmo_hf.cli import run
from elmo_hf.hub.cards import tagger_card
from elmo_hf.hub.publish import publish
from elmo_hf.tagging.batches import Batches, to_device
from elmo_hf.tagging.evaluation import Judge
from elmo_hf.tagging.feature_cache import FeatureCache
from elmo_hf.tagging.figures import count_tags, describe, scalars, write_conllu
from elmo_hf.tagging.report import write_report
from elmo_hf.tagging.settings import GOAL, parse_args
from elmo_hf.tagging.tagged_data import BUNDLED, load_splits
from elmo_hf.tagging.word_vectors import read_word_vectors
from elmo_hf.training.checkpoints import Checkpoints, save_model
from elmo_hf.training.run import training_run


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
    batches: Batches,
    judge: Judge,
) -> Progress:
    """Epoch after epoch until none is better; the best model is left in the output folder."""
    model, optimizer = accelerator.prepare(bare, make_optimizer(args, bare))
    progress = Progress()
    accelerator.register_for_checkpointing(progress)
    checkpoints = Checkpoints(accelerator, args.output_dir)
    checkpoints.resume()
    quiet = not accelerator.is_main_process
    while progress.epoch < args.num_train_epochs and not progress.is_over(args.patience):
        steps = batches.plan(args, accelerator.num_processes, progress.epoch)
        model.train()
        label = f"epoch {progress.epoch + 1}"
        with tqdm(total=len(steps), initial=progress.step, desc=label, disable=quiet) as bar:
            while progress.step < len(steps):
                # in the middle of the step: neither the first nor the last counts for nothing
                done = (progress.epoch + (progress.step + 0.5) / len(steps)) / args.num_train_epochs
                for group in optimizer.param_groups:
                    group["lr"] = group["top"] * rate(args, done)
                loss = learn(args, accelerator, model, optimizer, batches, steps[progress.step])
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


def main() -> None:
    args = parse_args(__doc__)
    with training_run(
        "elmo-tagging", args.output_dir, args.report_to, args.mixed_precision, args
    ) as accelerator:
        train_tagger(args, accelerator)


def train_tagger(args: argparse.Namespace, accelerator: Accelerator) -> None:
    # 1. read the sentences; the first process makes the files that the others map
    with accelerator.main_process_first():
        splits, labels = load_splits(args)

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
    judge = Judge(accelerator, args.task, labels, count_tags(splits["train"]), batches)
    progress = train(args, accelerator, model, batches["train"], judge)

    # 5. test the best epoch and leave everything behind
    accelerator.wait_for_everyone()
    best = ElmoForTokenClassification.from_pretrained(args.output_dir)
    model.load_state_dict(best.state_dict())
    results = {"train_loss": progress.history[progress.best_epoch - 1]["train_loss"]}
    for split in [split for split in splits if split != "train"]:
        results |= judge(model, split)
        goal = GOAL[args.task]
        results[f"{split}_baseline_{goal}"] = judge.baseline(split)[goal]
    if accelerator.is_main_process:
        finish(args, splits, model, progress, results, judge.predictions)


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
    data = args.dataset_name or Path(args.train_file or BUNDLED["train"]).name
    about = (base, data, len(splits["train"]), results, GOAL[args.task], args.license)
    card = tagger_card(model, args.output_dir.resolve().name, *about)
    (args.output_dir / "README.md").write_text(card, encoding="utf-8")
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
