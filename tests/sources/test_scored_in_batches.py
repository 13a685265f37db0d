"""Tests of a custom source that reads scores from a sparse matrix in batches of users."""

import numpy as np
import pytest

import recometer as rm
from recometer.data.matching import SourceIndex
from recometer.sources._score_batches import Batches, ScoredInBatches
from recometer.sources.base import Facts
from recometer.testing import check_source

sparse = pytest.importorskip("scipy.sparse")


class SparseScores(ScoredInBatches):
    """Scores in a sparse matrix [n_users, n_items]; the stored entries are the candidates."""

    def __init__(self, matrix, *, user_ids=None, item_ids=None):
        self.matrix = matrix.tocsr()
        self.index = SourceIndex.of("SparseScores", *matrix.shape, user_ids, item_ids)

    @property
    def facts(self):
        arrays = {name: getattr(self.matrix, name) for name in ("indptr", "indices", "data")}
        return Facts({**arrays, **self.index.ids})

    def describe(self):
        return f"SparseScores: {self.index.n_users:,} users x {self.index.n_items:,} items"

    def scores(self, rows):
        cells = self.matrix[rows].tocoo()
        scores = np.full(cells.shape, -np.inf)
        scores[cells.row, cells.col] = cells.data
        return scores

    def batches(self, aligned, request):
        return Batches(lambda u: self.scores(aligned.rows[u]), request, self.index.n_items)


def stored(scores):
    """Return a sparse matrix that stores every score above -inf, including zeros."""
    cells = np.nonzero(scores > -np.inf)
    return sparse.coo_array((scores[cells], cells), shape=scores.shape)


def test_sparse_scores_obey_the_laws_of_sources():
    check_source(
        lambda scores, users, items: SparseScores(stored(scores), user_ids=users, item_ids=items)
    )


def test_sparse_scores_give_the_same_values_as_a_dense_matrix():
    rng = np.random.default_rng(0)
    scores = np.where(rng.random((30, 40)) < 0.3, rng.integers(0, 9, (30, 40)), -np.inf)
    test, train = rng.random((30, 40)) < 0.1, rng.random((30, 40)) < 0.1
    options = {"train": train, "metrics": "ndcg@5 recall@3 coverage@4 roc_auc"}
    result = rm.evaluate(SparseScores(stored(scores)), test, **options)
    assert result.mean() == rm.evaluate(rm.Scores(scores), test, **options).mean()
