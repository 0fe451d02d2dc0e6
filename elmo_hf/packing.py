# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Where the live words of a padded batch are in the streams that the LSTMs read.

Inside the model there is no padding. The live tokens of a batch lie in two streams, one per reading
direction, time step by time step and longest sentence first, so that each step multiplies only the
rows of sentences that are still running. Each distinct word of a batch is encoded once.
"""

from bisect import bisect_left
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class ElmoPacking:
    """
    A stream lists the first token of every sentence, then the second of every sentence that has
    one, and so on, longest sentence first, with `<S>` and `</S>`. The backward stream does the same
    with each sentence reversed, so both directions have as many live rows at each step.
    """

    # live rows at each time step
    batch_sizes: list[int]
    # (batch,) the sentences, longest first
    order: torch.Tensor
    # (words,) position of each live word in the flattened (batch, words) grid
    words: torch.Tensor
    # (tokens,) what is at each position of the forward stream: the number of a live word, or
    # len(words) for `<S>` and len(words) + 1 for `</S>`
    tokens: torch.Tensor
    # (tokens,) the same for the backward stream
    backward_tokens: torch.Tensor
    # (tokens,) the same token's position in the backward stream; its own inverse
    reverse: torch.Tensor
    # (tokens,) the same token's position in the flattened (batch, words + 2) grid with boundaries
    cells: torch.Tensor
    # (pairs,) all positions whose sentence goes on, and the position of the token that comes next
    current: torch.Tensor
    following: torch.Tensor

    @classmethod
    def of(cls, mask: torch.Tensor, to_the_end: bool = True) -> "ElmoPacking":
        """
        The packing of the words where `mask` (batch, words) is set; padding may be anywhere.

        The last token of a stream, forward `</S>` and backward `<S>`, does not influence any word.
        Without `to_the_end` it is not read, and the values at `<S>` are meaningless.
        """
        # On the host: the time loop needs the sizes there, and the arithmetic is tiny.
        device, mask = mask.device, mask.cpu()
        lengths = mask.sum(dim=1)
        words = mask.flatten().nonzero().squeeze(1)
        order = lengths.argsort(descending=True, stable=True)
        lasts = lengths[order] + 1  # the time of `</S>`
        ends = lasts if to_the_end else lasts - 1
        num_steps = int(ends[0]) + 1
        ascending = ends.flip(0).tolist()
        batch_sizes = [len(mask) - bisect_left(ascending, time) for time in range(num_steps)]

        time, rank = (torch.arange(num_steps).unsqueeze(1) <= ends).nonzero(as_tuple=True)
        sentence, last = order[rank], lasts[rank]  # (tokens,)
        starts = torch.tensor([0, *batch_sizes]).cumsum(0)
        is_begin, is_end = time == 0, time == last
        reversed_time = last - time
        if not to_the_end:
            reversed_time[is_begin] = 0
        reverse = starts[reversed_time] + rank

        first_word = lengths.cumsum(0) - lengths
        tokens = first_word[sentence] + time - 1
        tokens[is_begin], tokens[is_end] = len(words), len(words) + 1
        backward_tokens = tokens[reverse]
        backward_tokens[is_begin] = len(words) + 1

        columns = boundary_columns(mask, lengths, sentence, is_begin, is_end)
        is_word = ~(is_begin | is_end)
        columns[is_word] = words[tokens[is_word]] % max(mask.shape[1], 1) + 1
        cells = sentence * (mask.shape[1] + 2) + columns

        current = (time < ends[rank]).nonzero().squeeze(1)
        following = starts[time[current] + 1] + rank[current]

        indices = (order, words, tokens, backward_tokens, reverse, cells, current, following)
        return cls(batch_sizes, *(index.to(device) for index in indices))

    @classmethod
    def of_streams(cls, batch: int, steps: int, device: torch.device) -> "ElmoPacking":
        """The packing of rows that are streams already: nothing to add, nothing to reverse."""
        everyone = torch.arange(batch * steps, device=device)
        return cls(
            batch_sizes=[batch] * steps,
            order=everyone[:batch],
            words=everyone,
            tokens=everyone,
            backward_tokens=everyone,
            reverse=everyone,
            cells=everyone,
            current=everyone[:0],
            following=everyone[:0],
        )

    def join(self, forward: torch.Tensor, backward: torch.Tensor) -> torch.Tensor:
        """Both directions' streams side by side, as a forward stream."""
        return torch.cat([forward, backward[self.reverse.to(backward.device)]], dim=-1)

    def unpack(
        self, stream: torch.Tensor, grid_shape: torch.Size, boundaries: bool
    ) -> torch.Tensor:
        """A forward stream (tokens, size) as (batch, words, size), zeros where there is no word."""
        batch, words = grid_shape
        if boundaries:
            grid = stream.new_zeros(batch * (words + 2), stream.shape[1])
            return grid.index_copy(0, self.cells, stream).view(batch, words + 2, -1)
        is_word = self.tokens < len(self.words)
        grid = stream.new_zeros(batch * words, stream.shape[1])
        positions = self.words[self.tokens[is_word]]
        return grid.index_copy(0, positions, stream[is_word]).view(batch, words, stream.shape[1])


def boundary_columns(
    mask: torch.Tensor,
    lengths: torch.Tensor,
    sentence: torch.Tensor,
    is_begin: torch.Tensor,
    is_end: torch.Tensor,
) -> torch.Tensor:
    """
    The columns of `<S>`, just before its sentence's first word, and of `</S>`, just after the
    last one, in a grid with two more columns; 0 for all other tokens.
    """
    width = mask.shape[1]
    numbers = torch.arange(width).expand_as(mask)
    first = numbers.masked_fill(~mask, width).amin(dim=1) if width else lengths
    last = numbers.masked_fill(~mask, -1).amax(dim=1) if width else lengths - 1
    columns = torch.zeros_like(sentence)
    columns[is_begin] = first.masked_fill(lengths == 0, 0)[sentence[is_begin]]
    columns[is_end] = last[sentence[is_end]] + 2
    return columns


def row_hashes(rows: torch.Tensor) -> torch.Tensor:
    """One number for each row of character ids: polynomials that wrap around at 64 bits."""
    # the base is odd and has no other meaning
    powers = [pow(0x9E3779B97F4A7C15, power, 1 << 64) for power in range(1, rows.shape[-1] + 1)]
    signed = [power - (1 << 64) if power >> 63 else power for power in powers]
    return ((rows + 1) * torch.tensor(signed, device=rows.device)).sum(dim=-1)


def distinct_rows(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """
    The distinct rows of `rows` (n, characters), and for each row its number among them.

    Sorting one hash per row is far cheaper than sorting rows. If two different rows share a hash,
    which is checked, every row counts as distinct, so the result is always right.
    """
    hashes = row_hashes(rows)
    values, number = hashes.unique(return_inverse=True)
    everyone = torch.arange(len(rows), device=rows.device)
    distinct = rows[torch.empty_like(values).scatter_(0, number, everyone)]
    if torch.equal(distinct[number], rows):
        return distinct, number
    return rows, everyone


def select_rows(rows: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """`rows[index]`, with a cheaper gradient."""
    return nn.functional.embedding(index, rows)
