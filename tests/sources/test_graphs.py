"""Tests that a bipartite graph gives the same values as its dense adjacency matrix."""

import numpy as np
import pytest

import recometer as rm


def graph(seed, n_users=30, n_items=25):
    """Draw a graph: embeddings of users and items, edges, and a mask of the training edges."""
    rng = np.random.default_rng(seed)
    emb = rng.normal(size=(n_users + n_items, 4)).astype(np.float32)
    user, item = np.nonzero(rng.random((n_users, n_items)) < 0.25)
    edge_index = np.stack([user, item + n_users])[:, rng.permutation(len(user))]
    return emb[:n_users], emb[n_users:], edge_index, rng.random(len(user)) < 0.5


def from_adjacency(user_emb, item_emb, edge_index, training, k):
    """Compute every user's R-precision, precision and recall at k from the adjacency matrix."""
    n_users, n_items = len(user_emb), len(item_emb)
    adjacency = np.zeros((2, n_users, n_items), bool)
    for (user, node), trains in zip(edge_index.T, training, strict=True):
        adjacency[int(trains), user, node - n_users] = True
    test, train = adjacency
    values = np.full((3, n_users), np.nan)
    for user in range(n_users):
        scores = item_emb.astype(np.float64) @ user_emb[user].astype(np.float64)
        scores[train[user]] = -np.inf
        hits = test[user][np.argsort(-scores)]
        n_relevant = hits.sum()
        if n_relevant:
            values[0, user] = hits[:n_relevant].sum() / n_relevant
            values[1, user] = hits[:k].sum() / k
            values[2, user] = hits[:k].sum() / n_relevant
    return values


@pytest.mark.parametrize("seed", range(10))
def test_graph_agrees_with_its_adjacency_matrix(seed):
    user_emb, item_emb, edge_index, training = graph(seed)
    n_users, n_items, k = len(user_emb), len(item_emb), 5

    layout = {"n_users": n_users, "n_items": n_items, "item_offset": n_users}
    test, train = (
        rm.Interactions.of(edge_index[:, edges], **layout) for edges in (~training, training)
    )
    result = rm.evaluate(
        rm.Factors(user_emb, item_emb), test, train=train, metrics="rprecision precision@5 recall@5"
    )

    expected = from_adjacency(user_emb, item_emb, edge_index, training, k)
    for name, values in zip(("rprecision", "precision@5", "recall@5"), expected, strict=True):
        np.testing.assert_allclose(result[name], values, rtol=1e-12, err_msg=name)
