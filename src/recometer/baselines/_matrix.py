"""The training matrix, and the checks and functions that the models share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.data.interactions import Interactions
from recometer.data.matching import check_number_of_positions
from recometer.errors import InputError
from recometer.sources.scores import Scores
from recometer.tasks import Ticker, run_tasks

if TYPE_CHECKING:
    from scipy import sparse

Fitted = TypeVar("Fitted")


def training_interactions(train: Any) -> Interactions:
    """Return training data as Interactions, reading frames, matrices, dicts and files."""
    interactions = train if isinstance(train, Interactions) else Interactions.of(train)
    if interactions.item_ids is None:
        check_number_of_positions(interactions.n_items, len(interactions), "train")
    return interactions


def scores_of(function: Callable[[Int64], Float64], train: Interactions, name: str) -> Scores:
    """Wrap a function in `Scores` for the users and items of train; messages show `name`."""
    function.__qualname__ = name
    return Scores(
        function,
        n_users=train.n_users,
        n_items=train.n_items,
        user_ids=train.user_ids,
        item_ids=train.item_ids,
    )


def user_item_matrix(data: Any) -> tuple[Interactions, sparse.csr_array]:
    """Return training interactions, and a matrix of their values (or ones) in float64."""
    train = training_interactions(data)
    if train.values is not None and not np.isfinite(train.values).all():
        raise InputError(
            f"{np.count_nonzero(np.isinf(train.values)):,} values of train are infinite. "
            "Hint: a model can only be fitted on finite values; drop or clip these."
        )
    matrix = train.to_csr()
    matrix.eliminate_zeros()
    return train, matrix


def fitted(
    fit: Callable[[Ticker], Fitted], work: float, name: str, progress: bool | None
) -> Fitted:
    """Fit a model on a separate thread, so that a progress bar is shown and Ctrl-C takes effect.

    Parameters
    ----------
    fit
        A function that fits the model, and reports how much of `work` is done.
    work
        The total amount of work, in any unit.
    name
        The name of the model.
    progress
        As in `recometer.evaluate`.
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


def check_seed(value: object) -> int:
    """Return `value` if it is a whole number of 64 bits; otherwise raise InputError."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value < 2**64:
        return int(value)
    raise InputError(f"seed={value!r} must be a whole number from 0 to 2^64 - 1.")
