"""Student's t interval of means and ratios of means."""

from __future__ import annotations

from recometer.stats.ends import Interval
from recometer.stats.grouping import Grouped

__all__ = ["student"]


def student(values: Grouped, confidence: float) -> Interval:
    """Return Student's t interval of a mean, or of a ratio of means linearised.

    estimate ± t(n - 1, (1 + confidence) / 2) · standard error, see `Grouped.standard_error`.
    Student, "The probable error of a mean", Biometrika 6, 1908.

    Parameters
    ----------
    values
        From `group`.
    confidence
        Coverage, in (0, 1).
    """
    n = values.n
    if n < 2:
        found = "One user has a value" if n else "No user has a value"
        return Interval.unknown(confidence, n, f"{found}; Student's t interval needs two.")
    from scipy.special import stdtrit

    half = float(stdtrit(n - 1, (1 + confidence) / 2)) * values.standard_error
    note = ""
    if values.constant:
        half = 0.0
        note = (
            f"All {n:,} values are {values.estimate:g}: Student's t interval has no width then. "
            "Where the range of the values is known, Gaffke's interval has one."
        )
    return Interval(values.estimate - half, values.estimate + half, "t", confidence, n, note)
