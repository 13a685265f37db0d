"""Confidence intervals, and the printed names of the methods that compute them."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Iterator

import numpy as np

from recometer.errors import InputError, brief, python_or_command

METHODS = {
    "gaffke": "Gaffke's",
    "clopper-pearson": "Clopper and Pearson's",
    "t": "Student's t",
    "percentile": "bootstrap percentiles, without resampling",
    "bca": "bootstrap BCa, without resampling",
    "bootstrap": "by resampling users",
    "welch": "Welch's t",
    "randomisation": "by inversion of the randomisation test",
    "random effects": "with the variance between users and between runs",
}
"""The printed name of each interval method."""


@dataclasses.dataclass(frozen=True)
class Interval:
    """A confidence interval, which unpacks into its ends: ``low, high = interval``.

    Attributes
    ----------
    low, high
        The ends, or NaN if there is no interval; `note` then says why.
    method
        The method that computed the interval: a key of `METHODS`, or ``"none"``.
    confidence
        The share of such intervals that should contain the true value.
    n
        The number of values (users, or clusters of rows) on which the interval is based.
    note
        A remark for the reader, or an empty string.
    """

    low: float
    high: float
    method: str
    confidence: float
    n: int
    note: str = ""

    def __iter__(self) -> Iterator[float]:
        return iter((self.low, self.high))

    def __getitem__(self, end: int) -> float:
        return (self.low, self.high)[end]

    def __len__(self) -> int:
        return 2

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def width(self) -> float:
        """Return the distance between the two ends."""
        return self.high - self.low

    @classmethod
    def unknown(cls, confidence: float, n: int, note: str) -> Interval:
        """Return an interval whose ends are unknown, with the reason as its note."""
        return cls(np.nan, np.nan, "none", confidence, n, note)

    def within(self, bounds: tuple[float, float] | None) -> Interval:
        """Return the interval with its ends clipped to the bounds."""
        if bounds is None:
            return self
        low, high = (float(end) for end in np.clip((self.low, self.high), *bounds))
        return dataclasses.replace(self, low=low, high=high)


def check_confidence(confidence: float) -> float:
    """Check that a confidence level is above 0 and below 1, and return it as a float."""
    if not isinstance(confidence, numbers.Real) or not 0 < confidence < 1:
        shown = brief(confidence)
        named = python_or_command(f"confidence={shown}", f"--confidence {shown}")
        raise InputError(f"{named} must be above 0 and below 1. Hint: the usual value is 0.95.")
    return float(confidence)
