"""How many interactions a share is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer.arrays import Int64
from recometer.split.checks import check_share


def holdout_sizes(n_interactions: npt.ArrayLike, fraction: float) -> Int64:
    """Return how many of so many interactions a share is: rounded half away from zero.

    Parameters
    ----------
    n_interactions : array_like of int [n_users]
    fraction : float
        In (0, 1).

    Returns
    -------
    int64 [n_users]

    Raises
    ------
    InputError
        A share outside (0, 1).
    """
    exact = np.asarray(n_interactions) * check_share("fraction", fraction)
    below = np.floor(exact)
    return (below + (exact - below >= 0.5)).astype(np.int64)
