"""Intervals that may be looked at after every batch of users."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recometer.errors import InputError
from recometer.stats.ends import Interval, check_confidence
from recometer.stats.grouping import column

__all__ = ["ConfidenceSequence"]

Float64 = npt.NDArray[np.float64]

LARGEST_BET = 0.75  # of what would lose everything
STEPS = 30
ROUNDING = 1e-9


class ConfidenceSequence:
    """An interval of a mean that holds at all times at once: stop whenever it says enough.

    An ordinary interval that is looked at again and again errs more and more often; here the chance
    that the mean ever lies outside is at most 1 - confidence. For each candidate m, somebody bets
    on values above m and somebody else below, with stakes that depend on earlier values only; m is
    excluded once one of them has multiplied his capital by 2 / (1 - confidence). Waudby-Smith &
    Ramdas, "Estimating means of bounded random variables by betting", Journal of the Royal
    Statistical Society B 86, 2024 (the hedged capital process with predictable stakes).

    The users have to come in random order. Which interval results depends on that order, but not on
    when it is looked at.

    Parameters
    ----------
    bounds
        The lowest and the highest value; of differences of two models, lo - hi and hi - lo.
    confidence
        Coverage, in (0, 1).
    population
        Number of users in all, if the mean of these users is asked for, from which the users seen
        are drawn without replacement; None: they stand for users without end.

    Examples
    --------
    >>> import numpy as np
    >>> from recometer.stats import ConfidenceSequence
    >>> sequence = ConfidenceSequence((0, 1))
    >>> generator = np.random.default_rng(0)
    >>> for _ in range(10):
    ...     found = sequence.update(generator.random(200) < 0.3)
    >>> print(f"{found.low:.2f} {found.high:.2f} {found.n}")
    0.25 0.34 2000
    """

    def __init__(
        self,
        bounds: tuple[float, float],
        confidence: float = 0.95,
        population: int | None = None,
    ) -> None:
        low, high = bounds
        if not -np.inf < low < high < np.inf:
            raise InputError(
                f"bounds={bounds!r} are no range: bets need a lowest and a highest value that are "
                "finite."
            )
        self.bounds = float(low), float(high)
        self.confidence = check_confidence(confidence)
        self.population = population
        self._x = np.empty(0)
        self._stakes = np.empty(0)
        self._sum, self._squares = 0.0, 0.0
        self._ends = 0.0, 1.0

    @property
    def interval(self) -> Interval:
        """Return the interval after all users so far."""
        low, high = self.bounds
        ends = [low + (high - low) * end for end in self._ends]
        n, note = len(self._x), ""
        if n == 0:
            note = "Nobody has been seen yet."
        return Interval(ends[0], ends[1], "betting", self.confidence, n, note)

    def update(self, values: npt.ArrayLike) -> Interval:
        """Add the next users, and return the interval.

        Parameters
        ----------
        values : [n_users]
            NaN leaves a user out.

        Raises
        ------
        InputError
            A value outside of the bounds, or more users than the population has.
        """
        given = column(values)
        given = given[~np.isnan(given)]
        low, high = self.bounds
        x = (given - low) / (high - low)
        outside = (x < -ROUNDING) | (x > 1 + ROUNDING)
        if outside.any():
            raise InputError(
                f"The value {given[outside][0]:g} lies outside the range from {low:g} to {high:g}."
            )
        if self.population is not None and len(self._x) + len(x) > self.population:
            raise InputError(
                f"{len(self._x) + len(x):,} users have been seen, more than the population of "
                f"{self.population:,}."
            )
        self._add(np.clip(x, 0.0, 1.0))
        if len(x):
            self._narrow()
        return self.interval

    def _add(self, x: Float64) -> None:
        """Stake on each value by what was known before it."""
        n = len(self._x)
        t = np.arange(n + 1, n + len(x) + 1)
        means = (0.5 + self._sum + np.cumsum(x)) / (t + 1)
        squares = self._squares + np.cumsum((x - means) ** 2)
        before = np.append(self._squares, squares)[:-1]
        variances = (0.25 + before) / t
        level = 2 * np.log(2 / (1 - self.confidence))
        self._stakes = np.append(self._stakes, np.sqrt(level / (variances * t * np.log(t + 1))))
        self._x = np.append(self._x, x)
        self._sum += float(x.sum())
        self._squares = float(squares[-1]) if len(x) else self._squares

    def _narrow(self) -> None:
        """Move the ends inwards, to candidates that are not excluded yet."""
        low, high = self._ends
        mean = float(np.clip(self._sum / len(self._x), low, high))
        below = self._end(low, mean, 1.0)
        above = self._end(high, mean, -1.0)
        self._ends = max(low, below), min(high, above)

    def _end(self, excluded: float, allowed: float, sign: float) -> float:
        if not self._is_excluded(excluded, sign):
            return excluded
        for _ in range(STEPS):
            middle = (excluded + allowed) / 2
            if self._is_excluded(middle, sign):
                excluded = middle
            else:
                allowed = middle
        return excluded

    def _is_excluded(self, m: float, sign: float) -> bool:
        """Return whether he who bets on values above m (+1) or below (-1) was ever rich enough."""
        x = self._x
        # The mean of the users who are still to come, if m is that of all.
        rest = np.full(len(x), m)
        if self.population is not None:
            seen = np.append(0.0, np.cumsum(x)[:-1])
            rest = (self.population * m - seen) / (self.population - np.arange(len(x)))
        rest = rest if sign > 0 else 1 - rest
        if (rest < -ROUNDING).any():
            return True
        if (rest > 1).any():
            # Not possible either, which the other side finds; the bets end here.
            x = x[: int(np.argmax(rest > 1))]
        rest = np.maximum(rest[: len(x)], 0.0)
        values = x if sign > 0 else 1 - x
        with np.errstate(divide="ignore"):
            stakes = np.minimum(self._stakes[: len(x)], LARGEST_BET / rest)
        capital = np.cumsum(np.log1p(stakes * (values - rest)))
        return bool(capital.max(initial=0.0) >= np.log(2 / (1 - self.confidence)))
