# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Endless rows of text without padding, as training reads them, that can resume anywhere.

A corpus is shuffled and dealt to the rows of a batch like a pack of cards. Its blocks are put into
a new order for every epoch, a few blocks at a time make a pile, and the sentences of each pile are
shuffled and numbered. When a row runs dry, the next pile is dealt:

    blocks        | 5    0    3    | 6    2    7    | 1    4
    sentences     | 0  1  2  3  4  | 5  6  7  8  9  | 10 11 ...
    row 0 of 3    | 0        3     |    6        9  |
    row 1         |    1        4  |       7        | 10
    row 2         |       2        | 5        8     |    11

Sentence n goes to row n % 3, so a row that has finished f sentences is reading sentence
row + 3 * f. This count, and the place inside that sentence, is all that a stream has to save. Say
the rows have finished 3, 1 and 1 sentences:

    row 0 is reading 9, row 1 is reading 4, row 2 is reading 5

To resume, all piles from that of the lowest of these sentences (4) to that of the highest (9) are
dealt again, and each row drops what it has finished: 0, 3 and 6; 1; and 2.
"""

import functools
import math
import random
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from elmo_hf.pretraining.corpus import BlockCorpus, Sentence, words_of
from elmo_hf.word_vocabulary import BEGIN, END

if TYPE_CHECKING:
    from accelerate import Accelerator

# How many blocks, from anywhere in the corpus, are shuffled together. Neighbours alone would not
# do: a model that read one part of a text last had a perplexity almost 10 % higher on the rest.
BLOCKS_IN_PILE = 1 << 6


# A large corpus has many blocks, and resuming counts the sentences of every pile before.
@functools.lru_cache(maxsize=2)
def order_of_blocks(count: int, seed: int | None, epoch: int) -> list[int]:
    """The order in which an epoch reads the blocks; without a seed, that of the corpus."""
    order = list(range(count))
    if seed is not None:
        random.Random(f"{seed} epoch {epoch}").shuffle(order)
    return order


class PackedStream:
    """
    Rows of text in one reading direction, sentence after sentence without padding.

    `num_rows` counts the rows of all processes, and `rows` are those that this stream reads (all by
    default): what a row reads depends on the seed and on `num_rows`, not on how many processes
    share the rows. Each batch has `steps` tokens per row. Both directions deal the same sentences
    to the same rows: their batches then have many words in common, and every distinct word is
    encoded once. Without a seed the corpus is read once, in its own order.
    """

    def __init__(
        self,
        corpus: BlockCorpus,
        num_rows: int,
        steps: int,
        backward: bool = False,
        seed: int | None = None,
        rows: range | None = None,
    ):
        self.corpus, self.num_rows, self.steps = corpus, num_rows, steps
        self.backward, self.seed = backward, seed
        self.rows = range(num_rows) if rows is None else rows
        self.piles_in_epoch = math.ceil(len(corpus.blocks) / BLOCKS_IN_PILE)
        self.piles_dealt = 0
        # per row: how many sentences it has finished, the sentences dealt to it that it has not,
        # and its place in the first of these
        self.finished = [0 for _ in self.rows]
        self.waiting: list[deque[Sentence]] = [deque() for _ in self.rows]
        self.positions = [0 for _ in self.rows]
        # the tokens of that first sentence, once they are needed
        self.tokens: list[list[str]] = [[] for _ in self.rows]

    def deal(self) -> bool:
        """Deals the next pile to the rows; False if the corpus has been read."""
        if self.seed is None and self.piles_dealt == self.piles_in_epoch:
            return False
        for waiting, sentences in zip(self.waiting, self.shares(self.piles_dealt), strict=True):
            waiting.extend(sentences)
        self.piles_dealt += 1
        return True

    def shares(self, pile: int) -> Iterator[list[Sentence]]:
        """The sentences of a pile that each row gets; piles are numbered over all epochs."""
        epoch, place = divmod(pile, self.piles_in_epoch)
        start = place * BLOCKS_IN_PILE
        order = order_of_blocks(len(self.corpus.blocks), self.seed, epoch)
        sentences = self.corpus.read(order[start : start + BLOCKS_IN_PILE])
        if self.seed is not None:
            random.Random(f"{self.seed} {pile}").shuffle(sentences)
        first = self.sentences_before(pile)
        for row in self.rows:
            yield sentences[(row - first) % self.num_rows :: self.num_rows]

    def sentences_before(self, pile: int) -> int:
        """How many sentences all piles before this one have: the number of its first sentence."""
        epoch, place = divmod(pile, self.piles_in_epoch)
        order = order_of_blocks(len(self.corpus.blocks), self.seed, epoch)
        dealt = order[: place * BLOCKS_IN_PILE]
        in_this_epoch = sum(self.corpus.blocks[block].sentences for block in dealt)
        return epoch * self.corpus.num_sentences + in_this_epoch

    def __iter__(self) -> Iterator[tuple[list[list[str]], list[list[str]]]]:
        return self

    def __next__(self) -> tuple[list[list[str]], list[list[str]]]:
        """
        For each row, `steps` tokens and the tokens that follow them; fewer where a row has ended.
        When all rows have ended, StopIteration.
        """
        batch = [self.next_of_row(number) for number in range(len(self.rows))]
        inputs, targets = [row[0] for row in batch], [row[1] for row in batch]
        if not any(inputs):
            raise StopIteration
        return inputs, targets

    def next_of_row(self, number: int) -> tuple[list[str], list[str]]:
        inputs: list[str] = []
        targets: list[str] = []
        waiting = self.waiting[number]
        while len(inputs) < self.steps:
            if not waiting:
                if not self.deal():
                    break
                continue
            tokens = self.tokens[number] = self.tokens[number] or self.split(waiting[0])
            position = self.positions[number]
            end = min(position + self.steps - len(inputs), len(tokens) - 1)
            inputs += tokens[position:end]
            targets += tokens[position + 1 : end + 1]
            self.positions[number] = end
            # the last token of a sentence is only ever predicted
            if end == len(tokens) - 1:
                waiting.popleft()
                self.finished[number] += 1
                self.positions[number], self.tokens[number] = 0, []
        return inputs, targets

    def split(self, sentence: Sentence) -> list[str]:
        words = words_of(sentence)
        return [END, *reversed(words), BEGIN] if self.backward else [BEGIN, *words, END]

    def state_dict(self) -> dict[str, torch.Tensor]:
        """How far each row is; the states of several processes may be concatenated."""
        return {
            "finished": torch.tensor(self.finished),
            "position": torch.tensor(self.positions),
        }

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Resumes from the state of all rows; the module's picture shows how."""
        own = slice(self.rows.start, self.rows.stop)
        self.finished = state["finished"][own].tolist()
        self.positions = state["position"][own].tolist()
        self.waiting, self.tokens = [deque() for _ in self.rows], [[] for _ in self.rows]
        current = [
            row + finished * self.num_rows
            for row, finished in zip(self.rows, self.finished, strict=True)
        ]
        self.piles_dealt = self.pile_with(min(current))
        first = self.sentences_before(self.piles_dealt)
        while self.sentences_before(self.piles_dealt) <= max(current):
            self.deal()
        for row, waiting, sentence in zip(self.rows, self.waiting, current, strict=True):
            first_of_row = first + (row - first) % self.num_rows
            for _ in range(first_of_row, sentence, self.num_rows):
                waiting.popleft()

    def pile_with(self, sentence: int) -> int:
        """The number of the pile that has the sentence with this number."""
        pile = sentence // self.corpus.num_sentences * self.piles_in_epoch
        while self.sentences_before(pile + 1) <= sentence:
            pile += 1
        return pile


def make_streams(
    accelerator: "Accelerator",
    corpus: BlockCorpus,
    rows: int,
    steps: int,
    seed: int | None = None,
) -> list[PackedStream]:
    """The forward and the backward stream of this process, with `rows` rows for each process."""
    start = accelerator.process_index * rows
    own, num_rows = range(start, start + rows), rows * accelerator.num_processes
    return [
        PackedStream(corpus, num_rows, steps, backward, seed, own) for backward in (False, True)
    ]
