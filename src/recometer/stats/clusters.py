"""Clusters of rows that belong together, and sums over whole clusters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer import ragged
from recometer.errors import InputError, InputTypeError

__all__ = ["by_cluster", "labels_of"]

Float64 = npt.NDArray[np.float64]


def labels_of(clusters: npt.ArrayLike) -> npt.NDArray[np.generic]:
    """Return the cluster of each row; InputError: a masked array hides some."""
    if np.ma.is_masked(clusters):
        raise InputError(
            "clusters are a masked array that hides some: every row needs its cluster. Hint: leave "
            "these rows out, or give each a cluster of its own."
        )
    return np.asarray(clusters)


def by_cluster(values: npt.ArrayLike, clusters: npt.ArrayLike) -> Float64:
    """Return the sum of each cluster's rows, in the order of the sorted clusters.

    Parameters
    ----------
    values : [n_rows]
        The values, without NaN.
    clusters : [n_rows]
        Anything that NumPy can sort; rows with equal entries belong together.

    Returns
    -------
    float64 [n_clusters]

    Raises
    ------
    InputError
        If the lengths differ.
    """
    x, labels = np.asarray(values, np.float64), labels_of(clusters)
    if labels.shape != x.shape:
        raise InputError(
            f"clusters must have one entry for each of the {len(x):,} rows, but has the shape "
            f"{labels.shape}."
        )
    try:
        names, which = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise InputTypeError(
            f"clusters hold what cannot be sorted: {error}. Hint: numbers or texts, for each row."
        ) from None
    return ragged.sums_of(which, x, len(names))
