"""Differences that are followed while users are read, and hold at all times."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from recometer.arrays import Float64, Int64
from recometer.comparing.rows import PairRow
from recometer.errors import InputError
from recometer.evaluating.until import Until
from recometer.results.users_read import UsersRead
from recometer.stats import ConfidenceSequence, Interval, TestResult

Ends = tuple[float, float]

ROUNDING = 1e-14
NO_RANGE = "The metric has no known range, without which nothing is known of users not read."
EXACT = (
    "All users were read: this is the difference of their means, exactly. Whether other users "
    "would show it is what rm.compare tests without until=."
)


@dataclasses.dataclass(frozen=True, eq=False)
class Sequences:
    """What is known of all users of test from those that were read.

    Attributes
    ----------
    read
        How many users were read, and why no more.
    order
        The places of the users that were read, in the order in which they were.
    confidence
        Coverage of intervals.
    metrics
        Those that were followed.
    """

    read: UsersRead
    until: Until
    order: Int64
    confidence: float
    metrics: tuple[str, ...]

    def _aim(self, metric: str) -> float | Literal["any"]:
        """Return what stakes on a difference aim at."""
        width = self.until.width
        return width if width is not None and metric in self.metrics else "any"

    @property
    def complete(self) -> bool:
        """Whether all users were read."""
        return self.read.n_read == self.read.n_users

    def interval(self, values: Float64, bounds: Ends) -> Interval:
        """Return the interval of the mean of values within bounds, NaN where there is none."""
        n = int(np.count_nonzero(~np.isnan(values)))
        if self.complete and n:
            mean = float(values[~np.isnan(values)].mean())
            return Interval(mean, mean, "betting", self.confidence, n, EXACT)
        if not np.isfinite(bounds).all():
            return Interval.unknown(self.confidence, n, NO_RANGE)
        return self._followed(values, bounds, "any", self.confidence).interval

    def p_value(self, values: Float64, bounds: Ends) -> float:
        """Return p of a mean difference of 0; NaN without a range."""
        if self.complete:
            known = values[~np.isnan(values)]
            size = np.abs(known).max(initial=0.0)
            # Sums of differences that cancel are 0 except for their rounding.
            return float(not abs(known.sum()) > ROUNDING * len(known) * size)
        if not np.isfinite(bounds).all():
            return np.nan
        low, high = bounds
        return self._followed(values, (low - high, high - low), "any", self.confidence).p_value()

    def held(self, row: PairRow, one: Float64, other: Float64, bounds: Ends) -> PairRow:
        """Return a row whose statistics are valid at all times, from values within bounds."""
        difference, known = one - other, bool(np.isfinite(bounds).all())
        low, high = bounds
        if self.complete:
            interval = Interval(
                row.difference, row.difference, "betting", self.confidence, row.n, EXACT
            )
            p = self.p_value(difference, bounds)
        elif known:
            span = low - high, high - low
            sequence = self._followed(difference, span, self._aim(row.metric), self.confidence)
            interval, p = sequence.interval, sequence.p_value()
        else:
            interval, p = Interval.unknown(self.confidence, row.n, NO_RANGE), np.nan
        relative = self._relative(row, difference, other, bounds)
        method = "none" if np.isnan(p) else "betting"
        note = NO_RANGE if np.isnan(p) else ""
        test = TestResult(p, "betting", method, row.n, row.test.n_differ, 0.0, note)
        chance = Interval.unknown(self.confidence, row.n, "It is that of the users read.")
        return dataclasses.replace(
            row,
            interval=interval,
            relative_interval=relative,
            test=test,
            probability_interval=chance,
            unit=0.0,
            error=np.nan,
            equivalence=None,
            notes=tuple(dict.fromkeys(filter(None, (note, interval.note)))),
        )

    def check_per_group(self) -> None:
        """Refuse statistics of groups of users, whose sizes among all users are not known."""
        raise InputError(
            "Users were read until enough was known of all of them, and of groups nothing follows "
            "that holds then. Hint: rm.compare(..., evaluator=...) without until=."
        )

    def _relative(
        self, row: PairRow, difference: Float64, other: Float64, bounds: Ends
    ) -> Interval:
        """Return the interval of the relative difference: from those of both means at once."""
        if self.complete and np.isfinite(row.relative):
            return Interval(row.relative, row.relative, "betting", self.confidence, row.n, EXACT)
        (low, high), confidence = bounds, (1 + self.confidence) / 2
        if not np.isfinite(bounds).all():
            return Interval.unknown(self.confidence, row.n, NO_RANGE)
        span, aim = (low - high, high - low), self._aim(row.metric)
        top = self._followed(difference, span, aim, confidence).interval
        other = np.where(np.isnan(difference), np.nan, other)
        base = self._followed(other, bounds, "any", confidence).interval
        if not base.low > 0:
            return Interval.unknown(
                self.confidence, row.n, f"The mean of {row.other} may be 0, or below."
            )
        ends = [end / mean for end in top for mean in base]
        return Interval(min(ends), max(ends), "betting", self.confidence, row.n)

    def _followed(
        self, values: Float64, bounds: Ends, aim: float | Literal["any"], confidence: float
    ) -> ConfidenceSequence:
        found = ConfidenceSequence(
            bounds, confidence, self.read.n_users, aim=aim, some_undefined=True
        )
        found.add(values[self.order])
        return found
