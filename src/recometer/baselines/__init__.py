"""Simple models to compare your own with.

Each function fits a model to the training data (`Interactions`, or anything that `Interactions.of`
accepts) and returns a source for `recometer.evaluate` with the same user and item ids. The
functions need only NumPy and SciPy.

==================  ======================================================================
`random_ranking`    a random order for each user, which shows what chance achieves
`most_popular`      one ranking for all users, by each item's number of training users
`item_knn`          items similar to the user's items (cosine similarity)
`truncated_svd`     a low-rank factorisation of the training matrix
`ease`              a linear autoencoder in closed form
==================  ======================================================================

For a user without training items, the last three models give every item the same score.
`most_popular` gives items without training users the lowest score. Neither case raises an error.
Fitting a model again on the same machine gives the same model, bit for bit. On another machine,
the scores of `truncated_svd` and `ease` may differ by rounding errors, because linear algebra
libraries differ.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from recometer.arrays import Float64, Int64, plain_number
from recometer.data.ids import user_keys
from recometer.data.interactions import Interactions, check_positions
from recometer.data.numbers import flag, seed_of
from recometer.draws import mix
from recometer.errors import InputError, brief
from recometer.sources.factors import Factors
from recometer.sources.scores import Scores
from recometer.tasks import Ticker, run_tasks

if TYPE_CHECKING:
    from scipy import sparse

Fitted = TypeVar("Fitted")

__all__ = ["ease", "item_knn", "most_popular", "random_ranking", "truncated_svd"]

# Without this salt, a split with the same seed would draw the same numbers as `random_ranking`, so
# the test items would get the lowest scores.
SALT = 0x72616E6B696E6773


def most_popular(train: Any) -> Factors:
    """Rank the items by their number of training users, in the same order for all users.

    Parameters
    ----------
    train : Interactions, or any input of `Interactions.of`
        The interactions to count. Rows with a value of 0 are ignored, and all other values count
        the same: a song that a user played forty times counts once.

    Returns
    -------
    Factors
        A source without user factors. The bias of each item is its number of training users.

    Raises
    ------
    InputError
        If any training value is infinite.
    """
    train, matrix = user_item_matrix(train)
    popularity = np.bincount(matrix.indices, minlength=train.n_items).astype(np.float64)
    return Factors(None, None, item_bias=popularity, item_ids=train.item_ids)


def random_ranking(train: Any, *, seed: int = 0) -> Scores:
    """Rank the items in a random order, which differs between users.

    The score of an item is a hash of the seed, the user's id and the item's id (or of their
    positions if there are no ids), scaled to [0, 1). A user's order therefore does not depend on
    other users or on the machine.

    Parameters
    ----------
    train : Interactions, or any input of `Interactions.of`
        Only its users and items are read.
    seed
        A whole number from 0 to 2^63 - 1. Different seeds lead to different orders.

    Returns
    -------
    Scores
        Scores computed on request, as float64 [batch, n_items].

    Raises
    ------
    InputError
        If the seed is not a whole number in this range.
    """
    seed = seed_of(seed)
    train = training_interactions(train)
    users = user_keys(train.user_ids, train.n_users)
    items = mix(user_keys(train.item_ids, train.n_items))
    start = mix(mix(np.array([seed], dtype=np.uint64)) ^ np.uint64(SALT))

    def scores(rows: Int64) -> Float64:
        bits = mix(mix(users[rows] ^ start)[:, None] ^ items)
        return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53

    return scores_of(scores, train, f"random ranking, seed {seed}")


BLOCK_ENTRIES = 4_000_000  # number of similarities to compute at a time (about 100 MB of memory)


def item_knn(train: Any, *, neighbours: int = 100, progress: bool | None = None) -> Scores:
    r"""Score items by their similarity to the user's items.

    The similarity of items j and i is the cosine of their columns in the training matrix x,
    :math:`s_{ji} = \sum_u x_{uj} x_{ui} / (\|x_j\| \|x_i\|)`. N(j) is the set of
    up to `neighbours` items that are most similar to item j; it excludes j itself and items with
    zero or negative similarity, and ties go to the lower ids. The score of item i for user u is
    :math:`\sum_{j: i \in N(j)} x_{uj} s_{ji}` (Deshpande & Karypis 2004, "Item-based top-N
    recommendation algorithms", ACM TOIS 22(1), but without their row normalisation).

    Parameters
    ----------
    train : Interactions, or any input of `Interactions.of`
        Values are used if there are any; otherwise, every interaction counts as 1.
    neighbours
        The number of neighbours to keep for each item.
    progress
        As in `recometer.evaluate`.

    Returns
    -------
    Scores
        Scores computed on request, as float64 [batch, n_items]. The training matrix and at most
        ``n_items * neighbours`` similarities stay in memory.

    Raises
    ------
    InputError
        If `neighbours` is below 1, or any training value is infinite.
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
    """Return an upper bound on each item's number of similarities, as int64 [n_items]."""
    pairs = matrix.T.tocsr().astype(bool).astype(np.int64) @ np.diff(matrix.indptr).astype(np.int64)
    work: Int64 = np.minimum(pairs, matrix.shape[1])
    return work


def _truncated_cosine(
    matrix: sparse.csr_array, neighbours: int, work: Int64, ticker: Ticker
) -> sparse.csr_array:
    """Return a float64 [n_items, n_items] matrix with item j's strongest similarities in row j."""
    from scipy import sparse

    n_items = matrix.shape[1]
    by_item = matrix.T.tocsr()
    squares = np.bincount(matrix.indices, weights=matrix.data**2, minlength=n_items)
    # Sort items by their number of possible neighbours, so that blocks waste no memory.
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
    """Keep the `count` largest of each row's positive entries; ties go to the lower column."""
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
    r"""Score items with the low-rank matrix that is closest to the training matrix.

    Let :math:`X = U \Sigma V^T` be the singular value decomposition of the training matrix,
    truncated to the `factors` largest singular values. User u's factors are :math:`x_u V`, item i's
    factors are row i of V, and the score is their product (PureSVD: Cremonesi, Koren & Turrin
    2010, "Performance of recommender algorithms on top-N recommendation tasks", RecSys).

    With `normalise`, :math:`X D^{-1} = U \Sigma V^T` is decomposed instead, where D is the
    diagonal matrix of the column norms; user u's factors are :math:`x_u D^{-1} V`, and item i's are
    row i of :math:`D V`. Every item then has the same weight. Without `normalise`, popular items
    dominate the factors, which works well with many items and long histories, but badly with few
    items and short histories.

    Parameters
    ----------
    train : Interactions, or any input of `Interactions.of`
        Values are used if there are any; otherwise, every interaction counts as 1.
    factors
        The number of singular values to keep, at most ``min(n_users, n_items)``. None keeps 64,
        or a quarter of ``min(n_users, n_items)`` if that is less. With all singular values, the
        scores would merely reproduce the training matrix.
    normalise
        Whether to scale the columns to norm 1.
    seed
        The seed for the start vector of the ARPACK iteration, which is only used if there are more
        than 1,000 users and more than 1,000 items. Otherwise, the seed has no effect.
    progress
        As in `recometer.evaluate`. The progress bar relies on an estimate of the number of
        iterations.

    Returns
    -------
    Factors
        User factors, as float64 [n_users, factors], and item factors, as float64 [n_items,
        factors], in descending order of the singular values. In every column of the item factors,
        the entry of largest magnitude is positive.

    Raises
    ------
    InputError
        If `factors` is not between 1 and ``min(n_users, n_items)``, the seed is not a whole number
        from 0 to 2^64 - 1, or any training value is infinite.
    """
    factors, seed = None if factors is None else check_count(factors, "factors"), seed_of(seed)
    train, matrix = user_item_matrix(train)
    limit = min(matrix.shape)
    if factors is None:
        factors = max(1, min(FACTORS, limit // 4))
    if factors > limit:
        raise InputError(
            f"factors={factors} exceeds the {limit:,} singular values of a matrix of "
            f"{train.n_users:,} users x {train.n_items:,} items. Hint: use at most factors={limit}."
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
    """Return V as float64 [n_items, factors], with mere rounding errors replaced by 0.

    Left in place, they would give nonzero scores to items that are not connected to a user.
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
    """Return the `count` largest eigenvalues of ``left @ right``, with their eigenvectors.

    The product must be symmetric.
    """
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
            # Advance by a share of the remainder, so that the progress bar never exceeds 100 %.
            ticker.advance((1 - ticker.reported) / expected)
            product: Float64 = left @ (right @ vector)
            return product

        product = linalg.LinearOperator((size, size), multiply, dtype=np.float64)
        start = np.random.default_rng(seed).standard_normal(size)
        values, vectors = linalg.eigsh(product, k=count, v0=start)
    order = np.argsort(-values, kind="stable")
    return values[order], np.ascontiguousarray(vectors[:, order])


BLOCK = 512  # number of columns that EASE processes at a time


def ease(
    train: Any,
    *,
    regularisation: float = 250.0,
    max_items: int = 10_000,
    progress: bool | None = None,
) -> Scores:
    r"""Score items with a linear model that predicts each item from all other items.

    The weights B minimise :math:`\|X - XB\|_F^2 + \lambda \|B\|_F^2` subject to a zero diagonal:
    with :math:`P = (X^T X + \lambda I)^{-1}`, :math:`B_{ji} = -P_{ji} / P_{ii}` for
    :math:`j \ne i`. The scores of user u are :math:`x_u B` (Steck 2019, "Embarrassingly
    shallow autoencoders for sparse data", WWW).

    Parameters
    ----------
    train : Interactions, or any input of `Interactions.of`
        Values are used if there are any; otherwise, every interaction counts as 1.
    regularisation
        :math:`\lambda`, above 0. Larger data sets need larger values. Steck used 200 to 1,000.
    max_items
        The maximum number of items. B takes 8 x items² bytes, and the time grows as items³.
    progress
        As in `recometer.evaluate`.

    Returns
    -------
    Scores
        Scores computed on request, as float64 [batch, n_items].

    Raises
    ------
    InputError
        If there are more than `max_items` items (the message says how much memory they would need),
        if `regularisation` is not above 0, or if any training value is infinite.
    """
    max_items = check_count(max_items, "max_items")
    regularisation = plain_number(regularisation)
    number = isinstance(regularisation, int | float) and not isinstance(regularisation, bool)
    if not (number and 0 < regularisation <= sys.float_info.max):
        raise InputError(f"regularisation={brief(regularisation)} must be a number above 0.")
    train, matrix = user_item_matrix(train)
    if train.n_items > max_items:
        raise InputError(
            f"EASE needs an items x items matrix: {_gigabytes(train.n_items)} GB for "
            f"{train.n_items:,} items; the limit is {max_items:,} items ({_gigabytes(max_items)} "
            f"GB). Hint: with enough memory, pass max_items={train.n_items}."
        )
    n_blocks = -(-train.n_items // BLOCK)
    weights = fitted(
        lambda ticker: _weights(matrix, float(regularisation), ticker),
        n_blocks + n_blocks**2,
        "EASE",
        progress,
    )

    def scores(users: Int64) -> Float64:
        return matrix[users] @ weights

    return scores_of(scores, train, f"EASE, regularisation {regularisation:g}")


def _weights(matrix: sparse.csr_array, regularisation: float, ticker: Ticker) -> Float64:
    """Return B as float64 [n_items, n_items], using memory for only one such matrix."""
    n_items = matrix.shape[1]
    by_item = matrix.T.tocsr()
    gram = np.empty((n_items, n_items))
    for start in range(0, n_items, BLOCK):
        block = slice(start, start + BLOCK)
        gram[block] = (by_item[block] @ matrix).toarray()
        ticker.advance(1)
    diagonal = np.diag_indices(n_items)
    gram[diagonal] += regularisation
    weights = _negative_inverse(gram, ticker)
    weights /= -np.diagonal(weights).copy()
    weights[diagonal] = 0.0
    return weights


def _negative_inverse(matrix: Float64, ticker: Ticker) -> Float64:
    """Replace a symmetric positive definite matrix with its negative inverse, in place.

    This applies the sweep operator block by block (Goodnight 1979, "A tutorial on the SWEEP
    operator", The American Statistician 33(3)). It is as fast as LAPACK's inverse, but needs no
    second matrix, and its steps are so short that Ctrl-C takes effect promptly.
    """
    size = len(matrix)
    starts = range(0, size, BLOCK)
    for start in starts:
        swept = slice(start, min(start + BLOCK, size))
        # Only the lower triangle is updated here; the upper one is filled in at the end.
        column = np.concatenate([matrix[swept, : swept.stop].T, matrix[swept.stop :, swept]])
        corner = np.tril(column[swept]) + np.tril(column[swept], -1).T
        column[swept] = corner
        inverse = np.linalg.inv(corner)
        scaled = column @ inverse
        for first in starts:
            last = min(first + BLOCK, size)
            matrix[first:last, :last] -= scaled[first:last] @ column[:last].T
            ticker.advance(1)
        matrix[swept, : swept.start] = scaled[: swept.start].T
        matrix[swept.stop :, swept] = scaled[swept.stop :]
        matrix[swept, swept] = -inverse
    for start in starts:
        block = slice(start, start + BLOCK)
        matrix[block, start + BLOCK :] = matrix[start + BLOCK :, block].T
        matrix[block, block] = np.tril(matrix[block, block]) + np.tril(matrix[block, block], -1).T
    return matrix


def _gigabytes(n_items: int) -> str:
    return f"{8 * n_items**2 / 1e9:,.1f}"


def training_interactions(train: Any) -> Interactions:
    """Return training data, in any accepted form, as `Interactions`."""
    interactions = train if isinstance(train, Interactions) else Interactions.of(train)
    if interactions.item_ids is None:
        check_positions(interactions.n_items, len(interactions), "The items of train")
    return interactions


def scores_of(function: Callable[[Int64], Float64], train: Interactions, name: str) -> Scores:
    """Wrap a scoring function in `Scores` with the users and items of `train`.

    Messages call the function `name`.
    """
    function.__qualname__ = name
    return Scores(
        function,
        n_users=train.n_users,
        n_items=train.n_items,
        user_ids=train.user_ids,
        item_ids=train.item_ids,
    )


def user_item_matrix(data: Any) -> tuple[Interactions, sparse.csr_array]:
    """Return the training interactions and a float64 matrix of their values (or of ones)."""
    train = training_interactions(data)
    if train.values is not None and not np.isfinite(train.values).all():
        raise InputError(
            f"{np.count_nonzero(np.isinf(train.values)):,} training values are infinite. Hint: a "
            "model can only be fitted to finite values; drop or clip these."
        )
    matrix = train.to_csr()
    matrix.eliminate_zeros()
    return train, matrix


def fitted(
    fit: Callable[[Ticker], Fitted], work: float, name: str, progress: bool | None
) -> Fitted:
    """Fit a model on a separate thread, so that a progress bar is shown and Ctrl-C takes effect.

    `work` is the total amount of work, in any unit; `fit` reports how much of it is done.
    """
    (model,) = run_tasks(
        lambda _, ticker: fit(ticker),
        [None],
        weights=[work],
        progress=progress,
        label=f"Fitting {name}",
    )
    return model


def check_count(value: object, name: str) -> int:
    """Return `value` if it is a whole number of at least 1; otherwise raise InputError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name}={value!r} must be a whole number, 1 or more.")
    return int(value)
