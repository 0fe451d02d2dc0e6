"""The streams that the LSTMs read, by hand."""

import pytest
import torch

from elmo_hf import packing


@pytest.mark.parametrize("hide", [False, True], ids=["hash", "colliding-hash"])
def test_distinct_rows_are_found_even_when_hashes_collide(hide, monkeypatch):
    rows = torch.tensor([[1, 2], [3, 4], [1, 2], [0, 0], [3, 4]])
    if hide:
        monkeypatch.setattr(packing, "row_hashes", lambda rows: torch.zeros(len(rows)).long())
    distinct, number = packing.distinct_rows(rows)
    assert torch.equal(distinct[number], rows)
    assert len(distinct) == (5 if hide else 3)


def test_packing_of_two_sentences_by_hand():
    found = packing.ElmoPacking.of(torch.tensor([[1, 0], [1, 1]]).bool())
    assert found.batch_sizes == [2, 2, 2, 1]
    assert found.order.tolist() == [1, 0]
    # <S> <S> | w1 w0 | w2 </S> | </S>   where w0 is the first sentence's word
    assert found.tokens.tolist() == [3, 3, 1, 0, 2, 4, 4]
    assert found.reverse.tolist() == [6, 5, 4, 3, 2, 1, 0]
    assert found.reverse[found.reverse].tolist() == list(range(7))
    assert found.cells.tolist() == [4, 0, 5, 1, 6, 2, 7]
