"""Written by tests/helpers/dropin_stubs.py from the module of the same name."""

from collections.abc import Sequence
from typing import Any

def fcp(predictions: Sequence[Any], verbose: bool = True) -> float:
    """Calculate the fraction of concordant pairs, as ``surprise.accuracy.fcp`` does.

    A pair of ratings of one user is right if the estimates have the same order. The value is the
    mean number of right pairs over users who have one, divided by the sum of itself and the mean
    number of wrong pairs over users who have one.

    Parameters
    ----------
    predictions, verbose
        As for `rmse`.

    Returns
    -------
    float

    Raises
    ------
    InputError
        If there is no prediction, or no user has two different ratings (a ValueError).
    """

def mae(predictions: Sequence[Any], verbose: bool = True) -> float:
    """Calculate the mean absolute error: see `rmse`."""

def mse(predictions: Sequence[Any], verbose: bool = True) -> float:
    """Calculate the mean squared error: see `rmse`."""

def rmse(predictions: Sequence[Any], verbose: bool = True) -> float:
    """Calculate the root of the mean squared error, as ``surprise.accuracy.rmse`` does.

    Parameters
    ----------
    predictions : sequence of tuple
        Tuples of user, item, true rating, estimate and details, as ``test()`` of an algorithm of
        Surprise returns them.
    verbose : bool
        Whether to print the value.

    Returns
    -------
    float

    Raises
    ------
    InputError
        If there is no prediction (a ValueError).

    Examples
    --------
    >>> from recometer.compat.surprise import rmse
    >>> rmse([("ann", "film", 4.0, 3.0, {}), ("bob", "film", 2.0, 3.0, {})])
    RMSE: 1.0000
    1.0
    """
