"""EASE, a linear autoencoder in closed form."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.arrays import Float64, Int64, plain_number
from recometer.baselines._matrix import check_count, fitted, scores_of, user_item_matrix
from recometer.errors import InputError, brief
from recometer.sources.scores import Scores
from recometer.tasks import Ticker

if TYPE_CHECKING:
    from scipy import sparse


EASE_MAX_ITEMS = 10_000
BLOCK = 512  # number of columns to process at a time


def ease(
    train: Any,
    *,
    regularisation: float = 250.0,
    max_items: int = EASE_MAX_ITEMS,
    progress: bool | None = None,
) -> Scores:
    r"""Score items by a linear model that predicts each item from all other items.

    The weights B minimise :math:`\|X - XB\|_F^2 + \lambda \|B\|_F^2` with a diagonal of 0:
    with :math:`P = (X^T X + \lambda I)^{-1}`, :math:`B_{ji} = -P_{ji} / P_{ii}` for
    :math:`j \ne i`. The scores of user u are :math:`x_u B` (Steck 2019, "Embarrassingly
    shallow autoencoders for sparse data", WWW).

    Parameters
    ----------
    train : Interactions, or any input of `Interactions.of`
        Values are used if there are any; otherwise, every interaction counts 1.
    regularisation
        :math:`\lambda`, above 0. Larger data need larger values. Steck used 200 to 1,000.
    max_items
        The maximum number of items. B takes 8 bytes x items², and the time grows with items³.
    progress
        Whether to show a progress bar on standard error. None shows one only on a terminal, and
        only if the work takes a while.

    Returns
    -------
    Scores
        float64 scores [batch, n_items], computed on request.

    Raises
    ------
    InputError
        If there are more than `max_items` items (the message says how much memory they need), if
        `regularisation` is not above 0, or if training values are infinite.
    """
    max_items = check_count(max_items, "max_items")
    regularisation = plain_number(regularisation)
    number = isinstance(regularisation, int | float) and not isinstance(regularisation, bool)
    if not (number and 0 < regularisation <= sys.float_info.max):
        raise InputError(f"regularisation={brief(regularisation)} must be a number above 0.")
    train, matrix = user_item_matrix(train)
    if train.n_items > max_items:
        raise InputError(
            f"EASE needs a matrix of items x items: {_gigabytes(train.n_items)} GB for "
            f"{train.n_items:,} items; up to {max_items:,} ({_gigabytes(max_items)} GB) are "
            f"fitted. Hint: with enough memory, pass max_items={train.n_items}."
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
    """Return B, float64 [n_items, n_items], using memory for only one such matrix."""
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
    """Replace a symmetric positive definite matrix by its negative inverse, in place.

    This is the sweep operator, a block at a time (Goodnight 1979, "A tutorial on the SWEEP
    operator", The American Statistician 33(3)). It is as fast as LAPACK's inverse, but needs no
    second matrix, and its steps are so short that Ctrl-C takes effect promptly.
    """
    size = len(matrix)
    starts = range(0, size, BLOCK)
    for start in starts:
        swept = slice(start, min(start + BLOCK, size))
        # Only the lower triangle is kept up to date until the end.
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
