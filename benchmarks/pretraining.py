"""Pretraining beside simple_elmo, which runs bilm-tf's code: speed, and perplexity as it counts.

    python benchmarks/pretraining.py speed --peer PEER --train train.txt --output speed.json
    python benchmarks/pretraining.py perplexity --model our-elmo --heldout valid.txt

`PEER` is a program with `PEER simple_elmo pretrain --train FILE --heldout FILE --work DIR` that
ends with a line of JSON. `speed` takes the first words of the text and alternates; `perplexity`
counts as the peer's test does: 32 rows that read on from zeros, each pulling the next sentence when
it needs one, all of them cut where the first row finds none.
"""

import argparse
import heapq
import json
import math
import statistics
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from compare import last_line, run

from elmo_hf import ElmoForPreTraining
from elmo_hf.pretraining.batches import encode_tokens, known_words, number_tokens
from elmo_hf.word_vocabulary import BEGIN, END

SCRIPT = Path(__file__).parents[1] / "examples" / "run_pretrain.py"
# the peer's model, as fields of ElmoConfig
SHAPE = {
    "char_filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256]],
    "num_highway_layers": 1,
    "cell_size": 512,
    "projection_size": 64,
    "hidden_dropout": 0.1,
    "num_negative_samples": 1024,
}
ROWS = 32


def rows_of_peer(sentences: list[list[str]]) -> tuple[list[list[list[str]]], int]:
    """What each row reads, and how many steps the peer's test takes."""
    rows: list[list[list[str]]] = [[] for _ in range(ROWS)]
    free = [(0, row) for row in range(ROWS)]
    for sentence in sentences:
        time, row = heapq.heappop(free)
        rows[row].append(sentence)
        heapq.heappush(free, (time + len(sentence) + 1, row))
    return rows, free[0][0]


@torch.inference_mode()
def perplexity(folder: Path, heldout: Path, steps: int = 50) -> dict[str, float]:
    model = ElmoForPreTraining.from_pretrained(folder).prepare_for_inference()
    sentences = [line.split() for line in heldout.read_text(encoding="utf-8").splitlines()]
    rows, length = rows_of_peer([words for words in sentences if words])
    tokens, targets = {}, {}
    for name, turn in (("", False), ("_backward", True)):
        read = [
            [[END, *reversed(words), BEGIN] if turn else [BEGIN, *words, END] for words in row]
            for row in rows
        ]
        tokens[name] = [[t for s in row for t in s[:-1]][:length] for row in read]
        targets[name] = [[t for s in row for t in s[1:]][:length] for row in read]
    total, state = 0.0, None
    for start in range(0, length, steps):
        size = min(steps, length - start)
        batch = {}
        for name in tokens:
            some = [row[start : start + size] for row in tokens[name]]
            goal = [row[start : start + size] for row in targets[name]]
            batch[f"input_ids{name}"] = encode_tokens(some, size, model.word_rows)
            batch[f"labels{name}"] = number_tokens(goal, size, known_words(model))
        output = model(**batch, state=state)
        state = output.state
        total += output.loss.item() * size
    return {"perplexity": math.exp(total / length), "predictions": 2 * ROWS * length}


def first_words(text: Path, count: int, target: Path) -> tuple[int, int]:
    """Whole sentences of about `count` words; returns how many words and sentences they are."""
    lines, words = [], 0
    with text.open(encoding="utf-8") as source:
        for line in source:
            if words >= count:
                break
            lines.append(line)
            words += len(line.split())
    target.write_text("".join(lines), encoding="utf-8")
    return words, len(lines)


def speed(args) -> dict:
    figures: dict[str, list[float]] = {"elmo_hf": [], "simple_elmo": []}
    with TemporaryDirectory() as name:
        folder = Path(name)
        text, shape = folder / "train.txt", folder / "shape.json"
        words, sentences = first_words(args.train, args.words, text)
        shape.write_text(json.dumps(SHAPE))
        heldout = folder / "heldout.txt"
        first_words(args.train, 2000, heldout)
        for number in range(args.rounds):
            ours = folder / f"ours-{number}"
            command = [sys.executable, SCRIPT, "--train_file", text, "--config_overrides", shape]
            command += ["--recipe", "bilm", "--num_train_epochs", 1, "--output_dir", ours]
            run([*command, "--checkpointing_steps", 10**9])
            results = json.loads((ours / "all_results.json").read_text())
            # simple_elmo's figure is of places in the text, the beginnings of sentences included
            places = (words + sentences) / words
            figures["elmo_hf"].append(results["train_words_per_second"] * places)
            if args.peer:
                work = folder / f"peer-{number}"
                command = [args.peer, "simple_elmo", "pretrain", "--train", text]
                printed = last_line([*command, "--heldout", heldout, "--work", work])
                figures["simple_elmo"].append(printed["tokens_per_second"])
            print(
                {side: round(speeds[-1]) for side, speeds in figures.items() if speeds}, flush=True
            )
    medians = {side: statistics.median(speeds) for side, speeds in figures.items() if speeds}
    result = {
        "words": words,
        "rounds": args.rounds,
        "places_per_second": figures,
        "medians": medians,
    }
    if args.peer:
        result["our_ratio"] = medians["elmo_hf"] / medians["simple_elmo"]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["speed", "perplexity"])
    parser.add_argument("--peer", type=Path, help="a program that runs the peer")
    parser.add_argument("--train", type=Path, help="for speed: one tokenised sentence per line")
    parser.add_argument("--words", type=int, default=200_000, help="for speed: how many to read")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", type=Path, help="for perplexity: a folder of run_pretrain.py")
    parser.add_argument(
        "--heldout", type=Path, help="for perplexity: one tokenised sentence per line"
    )
    parser.add_argument("--output", type=Path, help="a JSON file for the figures")
    args = parser.parse_args()
    result = speed(args) if args.command == "speed" else perplexity(args.model, args.heldout)
    print(json.dumps(result))
    if args.output is not None:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
