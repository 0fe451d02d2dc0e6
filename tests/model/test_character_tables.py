"""Tables instead of convolutions over a word's characters: the same values and gradients."""

import torch
from torch import nn

from elmo_hf.character_tables import LargestSum, make_tables, pool_characters


def test_tables_replace_convolutions():
    """Words of every length, windows that tie, and a word that fills its row."""
    torch.manual_seed(0)
    width, num_characters = 8, 6
    padding = num_characters - 1
    embeddings = nn.Embedding(num_characters, 4).double()
    convolutions = [nn.Conv1d(4, 5, span).double() for span in (1, 2, 3)]
    words = [[1], [1, 1, 1, 1], [2, 1, 2, 1, 2], [3, 4, 3, 1, 2, 4, 1, 3], [4]]
    rows = torch.tensor([word + [padding] * (width - len(word)) for word in words])
    groups = [(rows[:3], 5), (rows[3:], 8)]
    tables = make_tables(embeddings.weight, [conv.weight for conv in convolutions])
    biases = [conv.bias for conv in convolutions]
    found = pool_characters(tables, biases, num_characters, groups)
    embedded = embeddings(rows).transpose(1, 2)
    expected = torch.cat([conv(embedded).amax(dim=-1) for conv in convolutions], dim=1)
    torch.testing.assert_close(found, expected)
    weights = [embeddings.weight, *(w for conv in convolutions for w in conv.parameters())]
    goal = torch.randn_like(found)
    for one, other in zip(
        torch.autograd.grad((found * goal).sum(), weights),
        torch.autograd.grad((expected * goal).sum(), weights),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_only_the_winning_window_learns():
    table = torch.tensor([[1.0], [5.0], [2.0]], requires_grad=True)
    windows = torch.tensor([[[0], [1], [2]], [[2], [0], [2]]])  # the second word's windows tie
    LargestSum.apply(table, windows).sum().backward()
    assert table.grad.tolist() == [[0.0], [1.0], [1.0]]
