"""The perplexity of a biLM of ours as simple_elmo's own test counts it; the last line is JSON.

    python benchmarks/perplexity.py --model our-elmo --heldout valid.txt

There are 32 rows that read on from zeros, each pulling the next sentence when it needs one, all of
them cut where the first row finds none.
"""

import argparse
import heapq
import json
import math
from pathlib import Path

import torch

from elmo_hf import ElmoForPreTraining
from elmo_hf.pretraining.batches import encode_tokens, known_words, number_tokens
from elmo_hf.word_vocabulary import BEGIN, END

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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True, help="a folder of run_pretrain.py")
    parser.add_argument("--heldout", type=Path, required=True, help="one tokenised sentence a line")
    args = parser.parse_args()
    print(json.dumps(perplexity(args.model, args.heldout)))


if __name__ == "__main__":
    main()
