"""PyTorch Geometric models can be evaluated with lists, and with batches of scores."""

from __future__ import annotations

import numpy as np
import pytest

import recometer as rm

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

N_USERS, N_ITEMS = 25, 40


@pytest.fixture(scope="module")
def graph(torch):
    """Return training and test edges, in which item nodes are numbered after user nodes."""
    rng = np.random.default_rng(0)
    kind = rng.random((N_USERS, N_ITEMS))
    train, test = (
        torch.from_numpy(np.stack(np.nonzero(part))) for part in (kind < 0.2, kind > 0.9)
    )
    offset = torch.tensor([[0], [N_USERS]])
    return train + offset, test + offset


@pytest.fixture(scope="module")
def evaluator(graph):
    train, test = (
        rm.Interactions.of(edges, n_users=N_USERS, n_items=N_ITEMS, item_offset=N_USERS)
        for edges in graph
    )
    return rm.Evaluator(test, train=train, metrics="ndcg@5 recall@5 roc_auc")


@pytest.fixture(scope="module")
def model(torch, geometric):
    torch.manual_seed(0)
    return geometric.nn.LightGCN(N_USERS + N_ITEMS, 8, 2)


@pytest.fixture(scope="module")
def embeddings(torch, model, graph):
    with torch.no_grad():
        return model.get_embedding(torch.cat([graph[0], graph[0].flip(0)], 1))


def test_stream_accepts_users_from_a_loader(torch, embeddings, evaluator):
    """A loader yields batches of source nodes, as in the examples for link prediction."""
    users, items = embeddings[:N_USERS], embeddings[N_USERS:]
    stream = evaluator.stream()
    for rows in torch.utils.data.DataLoader(range(N_USERS), batch_size=7, shuffle=True):
        stream.update(users[rows] @ items.T, users=rows)
    expected = evaluator(rm.Scores(users @ items.T))
    np.testing.assert_allclose(stream.compute()["roc_auc"], expected["roc_auc"], atol=1e-9)


def test_stream_accepts_lists_of_a_neighbour_search(torch, geometric, graph, embeddings, evaluator):
    """Lists can be the ``pred_index_mat`` that ``LinkPredMetric.update`` takes for a batch."""
    users, items = embeddings[:N_USERS], embeddings[N_USERS:]
    scores = users @ items.T
    train = graph[0] - torch.tensor([[0], [N_USERS]])
    scores[train[0], train[1]] = -torch.inf
    items_found = scores.topk(5).indices
    lists = rm.Evaluator(
        evaluator.sides.test_as_passed, train=evaluator.arguments.train, metrics="ndcg@5 recall@5"
    )
    stream = lists.stream()
    theirs = geometric.metrics.LinkPredNDCG(5)
    edges = graph[1] - torch.tensor([[0], [N_USERS]])
    for rows in torch.arange(N_USERS).split(9):
        stream.update(items=items_found[rows], users=rows)
        inside = (edges[0] >= rows[0]) & (edges[0] <= rows[-1])
        theirs.update(items_found[rows], edges[:, inside] - torch.tensor([[int(rows[0])], [0]]))
    result = stream.compute()
    np.testing.assert_array_equal(result["ndcg@5"], lists(rm.Lists(items_found))["ndcg@5"])
    assert result.mean()["ndcg@5"] == pytest.approx(float(theirs.compute()), abs=1e-6)


def test_stream_accepts_labelled_edges(torch, geometric, embeddings):
    """Labelled edges are candidates with labels; each batch contains all edges of its users."""
    rng = np.random.default_rng(1)
    users = np.repeat(np.arange(N_USERS), 6)
    items = np.concatenate([rng.choice(N_ITEMS, 6, replace=False) for _ in range(N_USERS)])
    edges = torch.from_numpy(np.stack([users, items + N_USERS]))
    labels = torch.from_numpy((rng.random(len(users)) < 0.4).astype(np.float32))
    data = geometric.data.Data(edge_label_index=edges, edge_label=labels)
    stream = rm.Evaluator(metrics="ndcg@3 roc_auc").stream()
    scores = (embeddings[edges[0]] * embeddings[edges[1]]).sum(1)
    for batch_users in torch.arange(N_USERS).split(10):
        rows = torch.isin(data.edge_label_index[0], batch_users)
        stream.update(scores[rows], data.edge_label[rows], users=data.edge_label_index[0][rows])
    expected = rm.evaluate(rm.Pairs.of(labels, scores, users), metrics="ndcg@3 roc_auc")
    np.testing.assert_array_equal(stream.compute()["roc_auc"], expected["roc_auc"])
