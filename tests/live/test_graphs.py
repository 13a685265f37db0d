"""PyTorch Geometric's graphs and torch's sparse tensors can be read as interactions."""

import numpy as np
import pytest

import recometer as rm

pytestmark = [
    pytest.mark.live,
    pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks"),
]

N_USERS, N_ITEMS = 30, 20
LINKS = np.random.default_rng(0).random((N_USERS, N_ITEMS)) < 0.4
KIND = ("user", "rates", "movie")


@pytest.fixture
def graph(torch, geometric):
    data = geometric.data.HeteroData()
    data["user"].num_nodes, data["movie"].x = N_USERS, torch.zeros(N_ITEMS, 2)
    data[KIND].edge_index = torch.tensor(np.array(LINKS.nonzero()))
    data[KIND].rating = torch.arange(LINKS.sum()) % 5 + 1
    return data


def test_link_splits_are_evaluated(graph, geometric):
    split = geometric.transforms.RandomLinkSplit(
        0.1, 0.3, edge_types=[KIND], neg_sampling_ratio=1.0
    )
    *_, held_out = split(graph)
    scores = np.random.default_rng(1).random((N_USERS, N_ITEMS))
    links, sizes = held_out[KIND], {"n_users": N_USERS, "n_items": N_ITEMS}
    test = rm.Interactions.of(links.edge_label_index, value=links.edge_label, **sizes)
    train = rm.Interactions.of(links.edge_index, **sizes)
    result = rm.evaluate(rm.Scores(scores), test, train=train, metrics="recall@5")
    of_test, of_train = np.zeros_like(LINKS), np.zeros_like(LINKS)
    positive = held_out[KIND].edge_label.numpy() > 0
    of_test[tuple(held_out[KIND].edge_label_index.numpy()[:, positive])] = True
    of_train[tuple(held_out[KIND].edge_index.numpy())] = True
    assert not (of_test & of_train).any()
    expected = rm.evaluate(rm.Scores(scores), of_test, train=of_train, metrics="recall@5")
    np.testing.assert_array_equal(result["recall@5"], expected["recall@5"])


def test_sparse_tensors_are_read_as_interactions(torch):
    dense = torch.tensor(LINKS).float()
    for tensor in (dense.to_sparse(), dense.to_sparse_csr(), dense.to_sparse_csc()):
        np.testing.assert_array_equal(rm.Interactions.of(tensor).to_csr().toarray(), LINKS)
        result = rm.evaluate(rm.Scores(LINKS), tensor, metrics="recall@3")
        assert result.mean()["recall@3"] > 0
