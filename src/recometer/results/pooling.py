"""Pooled means: the sum of the users' numerators divided by that of their denominators."""

from __future__ import annotations

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.errors import InputError
from recometer.metrics.registry import METRICS, Metric


def denominators(metric: Metric, n_relevant: Int64, n_candidates: Int64) -> Float64:
    """Return what the users' values were divided by: the weights of the pooled mean.

    Parameters
    ----------
    metric
        One that is a ratio: `MetricDefinition.pooled` says of what.
    n_relevant, n_candidates : int64 [n_users]
        Of each user.

    Returns
    -------
    float64 [n_users]

    Raises
    ------
    InputError
        A metric that is no ratio, or whose denominators are not known.
    """
    kind = metric.definition.pooled
    if kind is None or (kind == "cutoff" and metric.cutoff is None):
        ratios = ", ".join(name for name, each in METRICS.items() if each.pooled is not None)
        raise InputError(
            f"There is no pooled mean of {str(metric)!r}: it is no ratio whose denominators are "
            f"kept. Hint: there is one of {ratios}, with a cut-off; or weights='relevant'."
        )
    if kind == "cutoff":
        assert metric.cutoff is not None
        return np.full(len(n_relevant), float(metric.cutoff))
    if kind == "relevant":
        return n_relevant.astype(np.float64)
    if kind == "possible":
        most = np.iinfo(np.int64).max if metric.cutoff is None else metric.cutoff
        return np.minimum(n_relevant, most).astype(np.float64)
    return np.maximum(n_candidates, 0).astype(np.float64)
