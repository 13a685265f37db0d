"""What laws share: how many cases they draw, and how they compare the values of metrics.

Values are float64 [n_users, n_metrics].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import settings

from recometer.arrays import Bool, Float64
from recometer.metrics import Metric


def holds(metrics: Sequence[Metric], what: Bool) -> None:
    """Check what holds, and name the metrics that break it."""
    columns = zip(metrics, what.T, strict=True)
    broken = [str(metric) for metric, column in columns if not column.all()]
    assert not broken, f"The law does not hold for {', '.join(broken)}."


def near(left: Float64, right: Float64, slack: float) -> Bool:
    """Tell where two values are the same but for rounding, or both undefined."""
    both_undefined = np.isnan(left) & np.isnan(right)
    return both_undefined | (np.abs(left - right) <= slack * (1 + np.abs(right)))


def same_bits(left: Float64, right: Float64) -> Bool:
    """Tell where two values have the same bits; undefined is undefined, whatever the NaN's sign."""
    return np.asarray(left.view(np.uint64) == right.view(np.uint64))


def some_cases() -> settings:
    """Return settings for a law: a fifth of the generated cases of the profile in force.

    A case is checked for all metrics and, mostly, all rules for ties. Without a profile it is 20.
    """
    most = settings.default.max_examples if settings.default else 100
    return settings(deadline=None, max_examples=max(most // 5, 1))
