"""simple_elmo, which runs bilm-tf's code on TensorFlow 2; the last line printed is JSON.

`embed` goes from words to vectors, in a session that is kept: neither making it nor simple_elmo's
warm-up is timed. `pretrain` trains a biLM for one epoch; the speed is that of the steps alone, from
the end of the first to the end of the last but one, without building the graph and without
saving. With `--heldout`, perplexity is measured as well.
"""

import argparse
import collections
import contextlib
import io
import json
import logging
import os
import re
import time
from pathlib import Path

# before TensorFlow is imported
os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf  # noqa: E402
from simple_elmo import ElmoModel  # noqa: E402
from simple_elmo.data import BidirectionalLMDataset, LMDataset  # noqa: E402
from simple_elmo.training import load_options_latest_checkpoint, load_vocab, test, train  # noqa: E402

SPECIAL_WORDS = ("<S>", "</S>", "<UNK>")


def embed(args):
    with args.text.open(encoding="utf-8") as lines:
        sentences = [line.split() for line in lines if line.strip()][: args.sentences]
    started = time.perf_counter()
    model = ElmoModel()
    model.load(str(args.model), max_batch_size=args.batch)
    load_seconds = time.perf_counter() - started
    # adds what it computes to the graph, which a session of ours needs
    model.get_elmo_vectors(sentences[:2], warmup=False)
    with tf.compat.v1.Session() as session:
        session.run(tf.compat.v1.global_variables_initializer())
        model.get_elmo_vectors(sentences[:2], warmup=False, session=session)
        started = time.perf_counter()
        model.get_elmo_vectors(sentences, warmup=False, session=session)
        seconds = time.perf_counter() - started
    words = sum(map(len, sentences))
    return {
        "seconds": seconds,
        "load_seconds": load_seconds,
        "words": words,
        "words_per_second": words / seconds,
    }


def end_quietly(get_sentence):
    """Its generator ends by raising StopIteration, an error since Python 3.7: end it instead."""

    def sentences(dataset):
        # what Python makes of StopIteration
        with contextlib.suppress(RuntimeError):
            yield from get_sentence(dataset)

    return sentences


class TimedDataset(BidirectionalLMDataset):
    """Notes when each batch is asked for: a step ends where the next one begins."""

    def iter_batches(self, *sizes):
        self.times = []
        batches = super().iter_batches(*sizes)
        while True:
            self.times.append(time.perf_counter())
            batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def seconds_per_step(self):
        """Without the first step, in which TensorFlow prepares the graph, and without the last."""
        if len(self.times) < 3:
            raise SystemExit("The text is too short: a speed needs at least three steps.")
        return (self.times[-1] - self.times[1]) / (len(self.times) - 2)


def write_vocabulary(path, counts, size):
    """The words from the most frequent on, filled up to `size` with words that never occur."""
    words = [word for word, _ in counts.most_common() if word not in SPECIAL_WORDS]
    words = [*SPECIAL_WORDS, *words]
    words += [f"filler{number}" for number in range(size - len(words))]
    path.write_text("\n".join(words) + "\n", encoding="utf-8")


def pretrain(args):
    tf.compat.v1.disable_eager_execution()
    tf.compat.v1.disable_v2_behavior()
    LMDataset.get_sentence = end_quietly(LMDataset.get_sentence)
    with args.train.open(encoding="utf-8") as lines:
        sentences = [line.split() for line in lines if line.strip()]
    counts = collections.Counter(word for words in sentences for word in words)
    args.work.mkdir(parents=True, exist_ok=True)
    vocabulary = args.work / "vocab.txt"
    write_vocabulary(vocabulary, counts, args.vocabulary)
    options = json.loads(args.options.read_text())
    vocab = load_vocab(str(vocabulary), options["char_cnn"]["max_characters_per_token"])
    words = counts.total()
    options |= {"n_epochs": 1, "n_train_tokens": words, "n_tokens_vocab": vocab.size}
    dataset = TimedDataset(str(args.train), vocab, test=False, shuffle_on_load=True)
    with contextlib.redirect_stdout(io.StringIO()):
        train(options, dataset, 1, str(args.work), str(args.work))
    places = options["batch_size"] * options["unroll_steps"]
    # a sentence has one place more than words, for its beginning
    share = words / (words + len(sentences))
    figures = {"words_per_second": share * places / dataset.seconds_per_step()}
    if args.heldout:
        figures["perplexity"] = perplexity(args, vocab)
    return figures


def perplexity(args, vocab):
    """Of the checkpoint in `--work`, as simple_elmo's own test counts it."""
    tf.compat.v1.reset_default_graph()
    options, checkpoint = load_options_latest_checkpoint(str(args.work))
    heldout = BidirectionalLMDataset(str(args.heldout), vocab, test=True, shuffle_on_load=False)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        test(options, checkpoint, heldout, batch_size=32)
    found = re.findall(r"perplexity\D+([0-9.]+)", printed.getvalue(), flags=re.IGNORECASE)
    return float(found[-1])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("embed")
    command.add_argument("--model", type=Path, required=True, help="options.json and model.hdf5")
    command.add_argument("--text", type=Path, required=True, help="one tokenised sentence per line")
    command.add_argument("--sentences", type=int, default=256, help="how many of its lines to use")
    command.add_argument("--batch", type=int, default=32, help="sentences per batch")
    command.set_defaults(run=embed)
    command = commands.add_parser("pretrain")
    command.add_argument("--train", type=Path, required=True, help="one tokenised sentence a line")
    command.add_argument("--options", type=Path, required=True, help="bilm-tf's options, as JSON")
    command.add_argument("--work", type=Path, required=True, help="a folder for the checkpoint")
    command.add_argument("--heldout", type=Path, help="a text whose perplexity is measured")
    command.add_argument("--vocabulary", type=int, default=0, help="fill it up to so many words")
    command.set_defaults(run=pretrain)
    logging.disable(logging.INFO)
    args = parser.parse_args()
    print(json.dumps(args.run(args)))


if __name__ == "__main__":
    main()
