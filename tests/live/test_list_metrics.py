"""List metrics agree with PyTorch Geometric's metrics on random cases."""

import numpy as np
import pytest
import scipy.sparse as sp

import recometer as rm

pytestmark = pytest.mark.live

K = 5


@pytest.mark.parametrize("as_lists", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_list_metrics_match_pytorch_geometric(torch, link_prediction, seed, as_lists):
    rng = np.random.default_rng(seed)
    n_users, n_items = int(rng.integers(3, 12)), int(rng.integers(15, 40))
    scores = rng.random((n_users, n_items)).astype(np.float32)
    train = rng.random(scores.shape) < 0.2
    test = np.zeros(scores.shape)
    test[np.arange(n_users), (~train).argmax(axis=1)] = 1
    group = rng.integers(0, 4, n_items)

    best = torch.tensor(np.where(train, -np.inf, scores)).topk(K, dim=1).indices
    popularity = torch.tensor(train.sum(axis=0), dtype=torch.float32)
    expected = {
        f"coverage@{K}": link_prediction.LinkPredCoverage(K, n_items),
        f"popularity@{K}": link_prediction.LinkPredAveragePopularity(K, popularity),
        f"personalization@{K}": link_prediction.LinkPredPersonalization(K),
        f"ild@{K}": link_prediction.LinkPredDiversity(K, torch.tensor(group)),
    }
    edges = torch.tensor(np.array(np.nonzero(test)))
    for metric in expected.values():
        metric.update(best, edges)

    # The distance between two items is 0 if they are in the same group, and 1 otherwise.
    catalogue = rm.Catalogue(n_items, features=np.eye(4)[group])
    result = rm.evaluate(
        rm.Lists(best) if as_lists else rm.Scores(scores),
        test,
        train=sp.csr_array(train.astype(float)),
        catalogue=catalogue,
        metrics=list(expected),
    )
    for name, metric in expected.items():
        assert result.mean()[name] == pytest.approx(float(metric.compute()), rel=1e-5), name
