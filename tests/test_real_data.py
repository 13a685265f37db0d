"""Published and measured numbers on data that are not part of the repository."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import recometer as rm

SHARED = Path(os.environ.get("RECOMETER_SHARED", Path(__file__).parents[2] / "shared"))

# implicit's ALS (64 factors) on MovieLens 1M in the UltraGCN split; binary, train excluded.
ML1M_ALS = {
    "precision@10": 0.16102624,
    "recall@10": 0.16519065,
    "ndcg@10": 0.20975482,
    "hit@10": 0.77831285,
    "precision@20": 0.13796911,
    "recall@20": 0.26004395,
    "ndcg@20": 0.23476952,
    "hit@20": 0.88674859,
    "precision@50": 0.10253072,
    "recall@50": 0.42978466,
    "ndcg@50": 0.29181608,
    "hit@50": 0.96014613,
}


@pytest.mark.shared
def test_movielens_1m():
    folder = SHARED / "data" / "ml1m_als"
    users, items = (np.load(folder / f"ml-1m_{name}_factors.npy") for name in ("user", "item"))
    train, test = (sp.load_npz(folder / f"{name}.npz") for name in ("train", "test"))
    test.data[:] = 1
    result = rm.evaluate(rm.Factors(users, items), test, train=train, metrics=list(ML1M_ALS))
    assert result.n_users == 6022
    for name, value in ML1M_ALS.items():
        assert result.mean()[name] == pytest.approx(value, abs=5e-9)
        assert not np.isnan(result[name]).any()
