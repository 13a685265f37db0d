"""Truncated singular value decomposition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.arrays import Float64
from recometer.baselines._matrix import check_count, check_seed, fitted, user_item_matrix
from recometer.data.numbers import flag
from recometer.errors import InputError
from recometer.sources.factors import Factors
from recometer.tasks import Ticker

if TYPE_CHECKING:
    from scipy import sparse


FACTORS = 64  # the default number of factors, unless there are few users or items
PRODUCTS = 4  # estimated number of matrix-vector products per vector of the ARPACK iteration
DENSE_SIZE = 1_000  # all eigenvectors are computed if the Gram matrix has at most this many rows


def truncated_svd(
    train: Any,
    *,
    factors: int | None = None,
    normalise: bool = False,
    seed: int = 0,
    progress: bool | None = None,
) -> Factors:
    r"""Score items by the low-rank matrix that is closest to the training matrix.

    With the singular value decomposition :math:`X = U \Sigma V^T` of the training matrix
    and the `factors` largest singular values, user u's factors are :math:`x_u V`, item i's
    factors are row i of V, and the score is their product (PureSVD: Cremonesi, Koren & Turrin
    2010, "Performance of recommender algorithms on top-N recommendation tasks", RecSys).

    With `normalise`, :math:`X D^{-1} = U \Sigma V^T` is decomposed instead, where D is the
    diagonal matrix of the column norms; user u's factors are :math:`x_u D^{-1} V`, and item i's are
    row i of :math:`D V`. Every item then has the same weight. Without `normalise`, popular items
    dominate the factors, which works well for many items and long histories, but badly for few
    items and short histories.

    Parameters
    ----------
    train : Interactions, or any input of `Interactions.of`
        Values are used if there are any; otherwise, every interaction counts 1.
    factors
        The number of singular values to keep, at most ``min(n_users, n_items)``. None keeps 64,
        or a quarter of the number of users or items if that is less. With all singular values, the
        scores would only repeat the training matrix.
    normalise
        Whether to scale columns to norm 1.
    seed
        The seed for the start vector of the iteration (ARPACK), which is only used if there are
        more than 1,000 users and more than 1,000 items. Otherwise, the seed has no effect.
    progress
        Whether to show a progress bar on standard error. None shows one only on a terminal, and
        only if the work takes a while. The bar estimates the number of iterations.

    Returns
    -------
    Factors
        float64 [n_users, factors] and [n_items, factors], largest singular value first. In
        every column of the item factors, the entry of largest magnitude is positive.

    Raises
    ------
    InputError
        If `factors` is not from 1 to ``min(n_users, n_items)``, the seed is not a whole number
        from 0 to 2^64 - 1, or training values are infinite.
    """
    factors, seed = None if factors is None else check_count(factors, "factors"), check_seed(seed)
    train, matrix = user_item_matrix(train)
    most = min(matrix.shape)
    if factors is None:
        factors = max(1, min(FACTORS, most // 4))
    if factors > most:
        raise InputError(
            f"factors={factors} is more than the {most:,} singular values of a matrix of "
            f"{train.n_users:,} users x {train.n_items:,} items. Hint: factors={most} at most."
        )
    norms = np.ones(train.n_items)
    if flag("normalise", normalise):
        norms = np.sqrt(np.bincount(matrix.indices, matrix.data**2, minlength=train.n_items))
        matrix.data /= norms[matrix.indices]
    vectors = fitted(
        lambda ticker: _right_singular_vectors(matrix, factors, seed, ticker),
        1.0,
        "the singular value decomposition",
        progress,
    )
    item_factors = vectors * norms[:, None]
    largest = np.argmax(np.abs(item_factors), axis=0)
    signs = np.where(item_factors[largest, np.arange(factors)] < 0, -1.0, 1.0)
    return Factors(
        matrix @ (vectors * signs),
        item_factors * signs,
        user_ids=train.user_ids,
        item_ids=train.item_ids,
    )


def _right_singular_vectors(
    matrix: sparse.csr_array, factors: int, seed: int, ticker: Ticker
) -> Float64:
    """Return V, float64 [n_items, factors]; numbers that are 0 up to rounding errors become 0.

    Otherwise, rounding errors would give scores to items that are not connected to a user.
    """
    n_users, n_items = matrix.shape
    if n_items <= n_users:
        squares, vectors = _largest_eigenvectors(matrix.T.tocsr(), matrix, factors, seed, ticker)
    else:
        squares, vectors = _largest_eigenvectors(matrix, matrix.T.tocsr(), factors, seed, ticker)
        vectors = matrix.T @ vectors / np.sqrt(np.where(squares > 0, squares, 1.0))
    rounding = max(matrix.shape) * np.finfo(np.float64).eps
    vectors[:, squares <= rounding * squares[0]] = 0.0
    vectors[np.abs(vectors) <= rounding] = 0.0
    return vectors


def _largest_eigenvectors(
    left: sparse.csr_array, right: sparse.csr_array, count: int, seed: int, ticker: Ticker
) -> tuple[Float64, Float64]:
    """Return the largest eigenvalues and eigenvectors of the symmetric ``left @ right``."""
    size = left.shape[0]
    if left.nnz == 0:
        return np.zeros(count), np.zeros((size, count))
    if size <= DENSE_SIZE or count == size:
        values, vectors = np.linalg.eigh((left @ right).toarray())
        values, vectors = values[-count:], vectors[:, -count:]
    else:
        from scipy.sparse import linalg

        expected = PRODUCTS * max(2 * count + 1, 20)

        def multiply(vector: Float64) -> Float64:
            # Advance by a share of the rest, so that the bar never passes its end.
            ticker.advance((1 - ticker.reported) / expected)
            product: Float64 = left @ (right @ vector)
            return product

        product = linalg.LinearOperator((size, size), multiply, dtype=np.float64)
        start = np.random.default_rng(seed).standard_normal(size)
        values, vectors = linalg.eigsh(product, k=count, v0=start)
    order = np.argsort(-values, kind="stable")
    return values[order], np.ascontiguousarray(vectors[:, order])
