"""Products by oneDNN: the values of torch's own, from any layout that the callers have."""

import pytest
import torch

from elmo_hf import matrix_products
from elmo_hf.matrix_products import product

SIZES = {
    "one row": (1, 64, 256),
    "wide": (7, 300, 20),
    "tall": (130, 5, 33),
    "square": (64, 64, 64),
}


def pair(rows: int, columns: int, dtype: torch.dtype, layout: str) -> torch.Tensor:
    if layout == "transposed":
        return torch.randn(2, columns, rows, dtype=dtype).transpose(1, 2)
    if layout == "slice":
        return torch.randn(2, rows + 3, columns, dtype=dtype)[:, 2:-1]
    return torch.randn(2, rows, columns, dtype=dtype)


@pytest.fixture
def by_onednn(monkeypatch):
    monkeypatch.setattr(matrix_products, "MANY", 0)


@pytest.mark.parametrize("adds", [False, True], ids=["alone", "added"])
@pytest.mark.parametrize("layout", ["contiguous", "slice", "transposed"])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.usefixtures("by_onednn")
def test_values_are_those_of_torch(sizes, layout, adds):
    rows, inner, columns = sizes
    left = pair(rows, inner, torch.float32, layout)
    right = pair(inner, columns, torch.float32, layout)
    more = pair(rows, columns, torch.float32, "slice") if adds else None
    before = None if more is None else more.clone()
    assert matrix_products.use_onednn(left, right)
    expected = left.double() @ right.double()
    if more is not None:
        expected += more
    found = product(left, right, more)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4)
    if before is not None:
        assert torch.equal(more, before)


@pytest.mark.usefixtures("by_onednn")
def test_double_precision_stays_with_torch():
    left, right = torch.randn(2, 3, 4).double(), torch.randn(2, 4, 5).double()
    assert not matrix_products.use_onednn(left, right)
    torch.testing.assert_close(product(left, right), left @ right)


def test_small_products_stay_with_torch():
    small, large = torch.randn(2, 4, 8), torch.randn(2, 512, 512)
    assert not matrix_products.use_onednn(small, small.transpose(1, 2))
    assert matrix_products.use_onednn(large, large)
