# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Sentence boundaries of padded batches, and masks, as AllenNLP's functions handle them."""

from typing import Any

import torch

from elmo_hf.standin.settings import is_version_2


def make_mask(is_word: torch.Tensor) -> torch.Tensor:
    """A mask of the kind that AllenNLP's version has: numbers before 1.0, truth values since."""
    return is_word if is_version_2() else is_word.long()


def add_sentence_boundary_token_ids(
    tensor: torch.Tensor, mask: torch.Tensor, sentence_begin_token: Any, sentence_end_token: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """
    Puts one token before each sentence and one after it; (batch, words) and (batch, words, size)
    become two longer. The words of a sentence are those at its beginning.
    """
    if tensor.dim() not in (2, 3):
        raise ValueError(
            f"The tensor has {tensor.dim()} dimensions, but sentences have 2 or 3: (batch, words) "
            "or (batch, words, size)."
        )
    lengths = mask.sum(dim=1).long()
    batch = torch.arange(len(tensor), device=tensor.device)
    longer = tensor.new_zeros(tensor.shape[0], tensor.shape[1] + 2, *tensor.shape[2:])
    longer[:, 1:-1] = tensor
    longer[:, 0] = as_token(sentence_begin_token, tensor)
    longer[batch, lengths + 1] = as_token(sentence_end_token, tensor)
    is_word = longer != 0 if tensor.dim() == 2 else (longer > 0).any(dim=-1)
    return longer, make_mask(is_word)


def as_token(token: Any, tensor: torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(token).to(tensor)


def remove_sentence_boundaries(
    tensor: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """
    The inverse: (batch, words + 2, size) and its mask become two shorter, with zeros after the
    words of each sentence.
    """
    lengths = mask.sum(dim=1) - 2
    columns = torch.arange(tensor.shape[1] - 2, device=tensor.device)
    is_word = columns < lengths.unsqueeze(1)
    # not a product: what is beside the words need not be a number
    words = tensor[:, 1:-1].masked_fill(~is_word.unsqueeze(-1), 0)
    return words, make_mask(is_word)
