"""Item-based nearest neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.baselines._matrix import check_count, fitted, scores_of, user_item_matrix
from recometer.sources.scores import Scores
from recometer.tasks import Ticker

if TYPE_CHECKING:
    from scipy import sparse

BLOCK_ENTRIES = 4_000_000  # number of similarities to compute at a time, in about 100 MB of memory


def item_knn(train: Any, *, neighbours: int = 100, progress: bool | None = None) -> Scores:
    r"""Score items by their similarity to the user's items.

    The similarity of items j and i is the cosine of their columns in the training matrix x,
    :math:`s_{ji} = \sum_u x_{uj} x_{ui} / (\|x_j\| \|x_i\|)`. N(j) is the set of the
    `neighbours` other items that are most similar to item j, without those of zero or negative
    similarity (ties go to the lower ids). The score of item i for user u is
    :math:`\sum_{j: i \in N(j)} x_{uj} s_{ji}` (Deshpande & Karypis 2004, "Item-based top-N
    recommendation algorithms", ACM TOIS 22(1), without their normalisations of rows).

    Parameters
    ----------
    train : Interactions, or any input of `Interactions.of`
        Values are used if there are any; otherwise, every interaction counts 1.
    neighbours
        The number of neighbours that an item keeps.
    progress
        Whether to show a progress bar on standard error. None shows one only on a terminal, and
        only if the work takes a while.

    Returns
    -------
    Scores
        float64 scores [batch, n_items], computed on request. The training matrix and at most
        ``n_items * neighbours`` similarities stay in memory.

    Raises
    ------
    InputError
        If `neighbours` is below 1, or training values are infinite.
    """
    neighbours = check_count(neighbours, "neighbours")
    train, matrix = user_item_matrix(train)
    work = _work(matrix)
    similarity = fitted(
        lambda ticker: _truncated_cosine(matrix, neighbours, work, ticker),
        float(work.sum()),
        "item-kNN",
        progress,
    )

    def scores(users: Int64) -> Float64:
        dense: Float64 = (matrix[users] @ similarity).toarray()
        return dense

    return scores_of(scores, train, f"item-kNN, {neighbours} neighbours")


def _work(matrix: sparse.csr_array) -> Int64:
    """Return an upper bound on the number of similarities of each item: int64 [n_items]."""
    pairs = matrix.T.tocsr().astype(bool).astype(np.int64) @ np.diff(matrix.indptr).astype(np.int64)
    work: Int64 = np.minimum(pairs, matrix.shape[1])
    return work


def _truncated_cosine(
    matrix: sparse.csr_array, neighbours: int, work: Int64, ticker: Ticker
) -> sparse.csr_array:
    """Return similarities, float64 [n_items, n_items], with the strongest of item j in row j."""
    from scipy import sparse

    n_items = matrix.shape[1]
    by_item = matrix.T.tocsr()
    squares = np.bincount(matrix.indices, weights=matrix.data**2, minlength=n_items)
    # Sort items by the number of their possible neighbours, so that blocks waste no memory.
    order = np.argsort(-work, kind="stable")

    rows, columns, values = [], [], []
    start = 0
    while start < n_items and work[order[start]] > 0:
        stop = start + max(1, int(BLOCK_ENTRIES // work[order[start]]))
        block = order[start:stop]
        similar = (by_item[block] @ matrix).tocoo()
        item, other = block[similar.row], similar.col
        positive = (similar.data > 0) & (item != other)
        item, other = item[positive], other[positive]
        cosine = similar.data[positive] / np.sqrt(squares[item] * squares[other])
        strong = _strongest(
            sparse.csr_array((cosine, (similar.row[positive], other)), shape=(len(block), n_items)),
            neighbours,
        ).tocoo()
        rows.append(block[strong.row])
        columns.append(strong.col)
        values.append(strong.data)
        start = stop
        ticker.advance(float(work[block].sum()))
    if not rows:
        return sparse.csr_array((n_items, n_items), dtype=np.float64)
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sparse.csr_array(entries, shape=(n_items, n_items))


def _strongest(similar: sparse.csr_array, count: int) -> sparse.csr_array:
    """Keep the `count` largest (positive) entries of each row; ties go to the lower column."""
    from scipy import sparse

    similar.sort_indices()
    lengths = np.diff(similar.indptr)
    width = int(lengths.max(initial=0))
    if width <= count:
        return similar
    inside = np.arange(width) < lengths[:, None]
    padded = np.zeros(inside.shape)
    padded[inside] = similar.data
    threshold = np.partition(padded, width - count, axis=1)[:, width - count, None]
    above = padded > threshold
    tied = inside & (padded == threshold)
    room = count - above.sum(axis=1, keepdims=True)
    keep = above | (tied & (np.cumsum(tied, axis=1) <= room))
    indptr = np.concatenate([[0], np.cumsum(keep.sum(axis=1))])
    kept = keep[inside]
    return sparse.csr_array(
        (similar.data[kept], similar.indices[kept], indptr), shape=similar.shape
    )
