"""Tests of sparse torch tensors with stand-ins; tests/live tests real tensors."""

import sys
import types

import numpy as np
import pytest

import recometer as rm
from recometer.errors import DataWarning

EDGES = np.array([[0, 0, 1, 2], [1, 3, 0, 2]])


def rows(data):
    users = np.repeat(np.arange(data.n_users), np.diff(data.indptr))
    return [*zip(users.tolist(), data.items.tolist(), strict=True)]


class Tensor:
    """A stand-in for sparse tensors, and for the dense tensors inside them."""

    device = types.SimpleNamespace(type="cpu")

    def __init__(self, array=None, layout="strided", shape=(3, 5), **parts):
        self.array, self.layout, self.shape = array, f"torch.{layout}", shape
        self.dtype = "torch.float32"
        for name, part in parts.items():
            setattr(self, name, lambda part=part: Tensor(np.asarray(part)))

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.array


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor(layout="sparse_coo", _indices=EDGES, _values=[4.0, 5, 3, 1]),
        Tensor(
            layout="sparse_csr",
            crow_indices=[0, 2, 3, 4],
            col_indices=[1, 3, 0, 2],
            values=[4.0, 5, 3, 1],
        ),
        Tensor(
            layout="sparse_csc",
            ccol_indices=[0, 1, 2, 3, 4, 4],
            row_indices=[1, 0, 2, 0],
            values=[3.0, 4, 1, 5],
        ),
    ],
)
def test_every_layout_of_sparse_tensors_is_read(tensor, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=Tensor))
    data = rm.Interactions.of(tensor)
    assert (data.n_users, data.n_items) == (3, 5)
    assert rows(data) == [(0, 1), (0, 3), (1, 0), (2, 2)]
    assert data.values.tolist() == [4, 5, 3, 1]


def test_repeated_entries_of_a_sparse_tensor_cause_a_warning(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=Tensor))
    twice = Tensor(layout="sparse_coo", _indices=[[0, 0], [1, 1]], _values=[1.0, 2])
    with pytest.warns(DataWarning, match="1 of 2 interactions repeat"):
        assert rm.Interactions.of(twice).values.tolist() == [3]
