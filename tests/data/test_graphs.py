"""Stand-ins for PyTorch Geometric's graphs and sparse tensors; tests/live has real ones."""

import sys
import types

import numpy as np
import pytest

import recometer as rm
from recometer.errors import ColumnError, DataWarning, InputError, InputTypeError

EDGES = np.array([[0, 0, 1, 2], [1, 3, 0, 2]])


class Store(dict):
    """A stand-in for an edge store: a mapping whose entries are also attributes."""

    def __getattr__(self, name):
        if name not in self:
            raise AttributeError(name)
        return self[name]

    def size(self):
        return self["_size"]

    def is_bipartite(self):
        return self["_size"] is not None


def store(**attributes):
    return Store(edge_index=EDGES, _size=(3, 5), **attributes)


class Graph(dict):
    """A stand-in for a graph with several kinds of edges."""

    @property
    def edge_types(self):
        return list(self)


def rows(data):
    users = np.repeat(np.arange(data.n_users), np.diff(data.indptr))
    return [*zip(users.tolist(), data.items.tolist(), strict=True)]


def test_an_edge_store():
    data = rm.Interactions.of(store(rating=np.array([4.0, 5, 3, 1]), time=np.arange(4), name="x"))
    assert (data.n_users, data.n_items) == (3, 5)
    assert rows(data) == [(0, 1), (0, 3), (1, 0), (2, 2)]
    assert data.values.tolist() == [4, 5, 3, 1]
    assert data.times.tolist() == [0, 1, 2, 3]
    with_ids = rm.Interactions.of(store(), user_ids=["a", "b", "c"], item_ids=range(10, 15))
    assert with_ids.user_ids.tolist() == ["a", "b", "c"]


def test_edge_attributes_as_values_and_times():
    wide = store(edge_attr=np.array([[4.0], [5], [3], [1]]), features=np.ones((4, 2)))
    assert rm.Interactions.of(wide).values.tolist() == [4, 5, 3, 1]
    assert rm.Interactions.of(wide, value=False).values is None
    store_with_values = store(rating=np.ones(4), label=np.arange(4.0), seen_at=np.arange(4))
    with pytest.raises(ColumnError, match="'rating', 'label'"):
        rm.Interactions.of(store_with_values)
    data = rm.Interactions.of(store_with_values, value="label", time="seen_at")
    assert data.values.tolist() == data.times.tolist() == [0, 1, 2, 3]
    with pytest.raises(ColumnError, match="no column 'stars'"):
        rm.Interactions.of(store_with_values, value="stars")
    with pytest.raises(InputTypeError, match="value= of a graph must be the name of an attribute"):
        rm.Interactions.of(store_with_values, value=np.ones(4))


def test_labelled_edges_are_test_and_the_rest_are_train():
    labelled = store(
        edge_label_index=np.array([[0, 1, 2], [4, 4, 0]]),
        edge_label=np.array([1.0, 1.0, 0.0]),
        rating=np.full(4, 5.0),
    )
    data = rm.Interactions.of(labelled)
    assert rows(data) == [(0, 4), (1, 4), (2, 0)]
    assert data.values.tolist() == [1, 1, 0]
    scores = rm.Scores(np.tile(np.arange(5.0), (3, 1)))
    result = rm.evaluate(scores, labelled, train=labelled, metrics="rr")
    np.testing.assert_array_equal(result["rr"], [1, 1, np.nan])
    assert result.n_excluded.tolist() == [2, 1, 1]


def test_a_graph_with_one_kind_of_edges():
    graph = Graph({("user", "rates", "movie"): store(), ("movie", "rev_rates", "user"): store()})
    assert rows(rm.Interactions.of(graph)) == [(0, 1), (0, 3), (1, 0), (2, 2)]
    graph["user", "likes", "movie"] = store()
    with pytest.raises(InputError, match=r"2 kinds of edges: .*data\['user', 'rates', 'movie'\]"):
        rm.Interactions.of(graph)
    with pytest.raises(InputError, match="0 kinds of edges"):
        rm.Interactions.of(Graph())


def test_a_graph_of_nodes_of_one_kind():
    graph = Store(edge_index=EDGES + np.array([[0], [3]]), _size=None)
    with pytest.raises(InputError, match=r"does not say how many .*item_offset=n_users"):
        rm.Interactions.of(graph)
    data = rm.Interactions.of(graph, n_users=3, n_items=5, item_offset=3)
    assert rows(data) == [(0, 1), (0, 3), (1, 0), (2, 2)]
    with pytest.raises(InputError, match="has no edge_index"):
        rm.Interactions.of(Graph({("user", "rates", "movie"): Store(adj_t=1, _size=(3, 5))}))
    with pytest.raises(InputError, match="user= does not apply to a graph"):
        rm.Interactions.of(store(), user="user")


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
def test_sparse_tensors(tensor, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=Tensor))
    data = rm.Interactions.of(tensor)
    assert (data.n_users, data.n_items) == (3, 5)
    assert rows(data) == [(0, 1), (0, 3), (1, 0), (2, 2)]
    assert data.values.tolist() == [4, 5, 3, 1]


def test_repeated_entries_of_a_sparse_tensor_are_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=Tensor))
    repeated = Tensor(layout="sparse_coo", _indices=[[0, 0], [1, 1]], _values=[1.0, 2])
    with pytest.warns(DataWarning, match="1 of 2 interactions repeat"):
        assert rm.Interactions.of(repeated).values.tolist() == [3]
