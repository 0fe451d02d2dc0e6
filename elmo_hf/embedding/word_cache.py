# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Word vectors of the token encoder that are kept, because frequent words come again."""

from collections.abc import Sequence
from threading import RLock

import torch

from elmo_hf.modeling_elmo import ElmoModel
from elmo_hf.prepared_weights import WeightCopy
from elmo_hf.tokenization_elmo import ElmoTokenizer

# bytes of word vectors that are kept
CACHE_SIZE = 1 << 28


class WordCache:
    """
    The token encoder's output for the words seen lately.

    The cache is emptied when it is full and when a weight has changed.
    """

    def __init__(self, model: ElmoModel, tokenizer: ElmoTokenizer, size: int = CACHE_SIZE):
        self.model, self.tokenizer, self.size = model, tokenizer, size
        self.capacity = max(1, size // (4 * model.config.projection_size))
        # one embedder may serve several threads
        self.lock = RLock()
        self.clear()

    def clear(self) -> None:
        with self.lock:
            self._clear()

    def _clear(self) -> None:
        self.seen = WeightCopy(*self.model.token_encoder.parameters())
        self.numbers: dict[str, int] = {}
        # the first two rows are `<S>` and `</S>`
        self.vectors = self.encode(torch.tensor(self.model.config.boundary_rows))

    @torch.inference_mode()
    def encode(self, rows: torch.Tensor) -> torch.Tensor:
        return self.model.token_encoder(rows.to(self.model.device))

    def look_up(self, words: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """
        Vectors, (rows, projection_size), and for each word, then `<S>` and `</S>`, the number of
        its row.
        """
        with self.lock:
            return self._look_up(words)

    def _look_up(self, words: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.seen.matches(*self.model.token_encoder.parameters()):
            self.clear()
        new = [word for word in dict.fromkeys(words) if word not in self.numbers]
        if self.numbers and len(self.numbers) + 2 + len(new) > self.capacity:
            self.clear()
            new = list(dict.fromkeys(words))
        if new:
            self.add(new)
        # only the rows that are needed: the first layer multiplies them all
        wanted = [self.numbers[word] for word in words]
        rows, number = torch.tensor([*wanted, 0, 1]).unique(return_inverse=True)
        device = self.vectors.device
        return self.vectors[rows.to(device)], number.to(device)

    def add(self, words: Sequence[str]) -> None:
        ids = self.tokenizer([words], is_split_into_words=True, return_tensors="pt")["input_ids"]
        used = len(self.numbers) + 2
        end = used + len(words)
        if end > len(self.vectors):
            # room for as many again, so that few additions copy everything
            rows = max(end, min(2 * end, self.capacity))
            room = self.vectors.new_empty(rows, self.vectors.shape[1])
            room[:used] = self.vectors[:used]
            self.vectors = room
        self.vectors[used:end] = self.encode(ids[0])
        # last: a batch that did not fit into memory is tried again, and its words must be new then
        self.numbers.update({word: used + number for number, word in enumerate(words)})
